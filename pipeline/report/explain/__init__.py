"""Where a published number comes from, and the rows behind it."""
