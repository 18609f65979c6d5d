"""Tables for decisions: costs, net benefit, groups put together, and other prevalences."""
