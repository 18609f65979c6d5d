"""before_after: precision and recall of event-article matching without gold labels.

`contract` says what goes in and out, `planning` what to count, `results` what follows from the counts.
"""
