"""Disk only: stage, verify and publish immutable runs; read them back."""
