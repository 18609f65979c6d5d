"""Results folders on object stores: their mirrors here, and the publication of runs in them."""
