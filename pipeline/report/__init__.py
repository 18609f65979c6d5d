"""What people look at after a run: a published run read back, and what is shown of it."""
