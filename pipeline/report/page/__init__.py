"""The report, one page that needs nothing but itself."""
