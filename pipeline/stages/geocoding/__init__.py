"""Predicted places beside gold places: counts within every tolerance, and the errors in kilometres."""
