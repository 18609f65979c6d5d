from runs.inputs.workplace import workplace

__all__ = ["workplace"]
