"""Precision and recall without gold labels, from matches before and after the event."""
