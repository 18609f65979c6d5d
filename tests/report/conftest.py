from report.two_runs import two_runs

__all__ = ["two_runs"]
