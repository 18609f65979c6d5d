# Convenience only: every target is one plain line, python3 dev.py TASK.
PYTHON ?= python3

.PHONY: help demo test coverage spark schedulers search faults lowest check site bench
help demo test coverage spark schedulers search faults lowest check site bench:
	@$(PYTHON) dev.py $@
