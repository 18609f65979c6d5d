"""before_after: precision and recall of event-article matching without gold labels.

`contract` says what goes in and out, `planning` what is counted, `stage` what follows from the counts. The formulas are
those of `metrics.before_after.formulas`.
"""
