"""Reports on a published run: read back, shown, drawn, explained and compared."""
