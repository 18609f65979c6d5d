"""The public face for Python: configs run, results opened, and one function for each stage."""
