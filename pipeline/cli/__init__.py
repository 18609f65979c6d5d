"""What people type and read: commands, progress, summaries and queries on results."""
