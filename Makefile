# Convenience only: every target is one plain line, python3 dev.py TASK.
PYTHON ?= python3

.PHONY: help demo test test-all test-changed test-touched coverage spark schedulers search faults lowest check site bench
help demo test test-all test-changed test-touched coverage spark schedulers search faults lowest check site bench:
	@$(PYTHON) dev.py $@
