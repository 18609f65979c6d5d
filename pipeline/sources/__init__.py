"""Inputs as canonical relations: names, types, finite scores, every row accounted for."""
