"""Whether scores are probabilities: sums by cells, their tables, figures and words."""
