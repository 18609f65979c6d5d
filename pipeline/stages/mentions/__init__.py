"""Mentions of entities in documents, shared by entity_recognition and geocoding."""
