"""Two systems on the same units: tests, intervals and posteriors."""
