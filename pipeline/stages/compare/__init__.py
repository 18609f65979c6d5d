"""Two or more systems on the same units: tests, intervals and posteriors."""
