"""One-to-one matching of predictions with the truth."""
