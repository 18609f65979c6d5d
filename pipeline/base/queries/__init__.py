"""SQL text only: the files under sql/, and trees in any dialect."""
