"""Questions to an engine: nodes that run and show themselves, checks, and the account of every row."""
