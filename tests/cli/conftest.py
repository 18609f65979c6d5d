from inputs.workplace import place

__all__ = ["place"]
