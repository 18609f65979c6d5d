"""Gates: limits on published numbers, judged with their sampling error."""
