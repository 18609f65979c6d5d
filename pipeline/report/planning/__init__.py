"""How much more data a wanted interval or test needs, told from a published run or from what is expected."""
