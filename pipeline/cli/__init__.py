"""What people type and read: commands, progress, summaries, queries on results."""
