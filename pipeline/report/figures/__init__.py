"""Figures drawn: as charts of the page, and as files."""
