"""The whole curve from few labels: which rows to label, and what they say of all rows."""
