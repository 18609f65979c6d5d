"""The command line: commands, progress, summaries, and queries on results."""
