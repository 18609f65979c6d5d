"""What everything stands on: errors, interrupts, paths, data classes, SQL as text, and the contracts of tables."""
