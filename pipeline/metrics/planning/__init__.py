"""How many units an interval of a wanted width, or a test of a wanted power, needs."""
