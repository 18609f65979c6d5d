"""Standard errors and intervals from counts: replicates and proportions."""
