"""A command works in a child process; its parent waits for it, and tells what happened if the child crashed."""
