from runs.inputs.workplace import place

__all__ = ["place"]
