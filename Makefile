# The two lines: `make demo` shows what opsieve does, `make test` proves it. Everything is set up in .venv first.
#
#   make demo TORCH="torch==2.13.0 --index-url ..."   another build of PyTorch, pip's options and all
#   make test PYTHON=python3.12 VENV=.venv312         another interpreter

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
# A published model with its weights, to try things on. Nothing of the package is imported, so none of what it needs.
MODEL_PACKAGE ?= silero-vad==6.2.3

RUN := $(VENV)/bin/python
READY := $(VENV)/ready-$(shell echo '$(TORCH) $(MODEL_PACKAGE)' | cksum | cut -d' ' -f1)
SET_UP := $(PYTHON) scripts/set_up.py $(VENV) --torch "$(TORCH)" --model "$(MODEL_PACKAGE)"
PYTEST := $(RUN) -m pytest
BENCHMARKS := startup_time import_time graph_time kept_code build_sizes source_runtime
TOLD_BENCHMARKS := read_models soundness

.PHONY: help demo test lint unit functional docs bench outputs clean
# Threads that wait by spinning make small tests many times slower on a busy machine.
export OMP_WAIT_POLICY ?= PASSIVE

.NOTPARALLEL:

help:  ## show this
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(READY)  ## the main job on a published model: a slim PyTorch, verified
	@$(RUN) examples/demo/demo.py

test: lint unit functional  ## everything that .ci/run runs

lint: $(READY)-test  ## style, types, layers
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy --strict
	$(VENV)/bin/lint-imports

unit: $(READY)-test  ## tests that need no PyTorch
	$(PYTEST) tests/unit

functional: $(READY)-test  ## tests on the real PyTorch and on real models
	$(PYTEST) tests/functional --durations=10

docs: $(READY)-docs  ## HTML pages in docs/_build
	$(VENV)/bin/sphinx-build -W --keep-going -q docs docs/_build
	@echo "open docs/_build/index.html"

bench: $(READY)-test  ## every number of the README, measured on this machine
	@mkdir -p benchmarks/results
	@for name in $(BENCHMARKS); do \
		echo "== $$name"; $(RUN) -m benchmarks.$$name --json benchmarks/results/$$name.json || exit 1; echo; \
	done
	@for name in $(TOLD_BENCHMARKS); do \
		echo "== $$name"; $(RUN) -m benchmarks.$$name > benchmarks/results/$$name.txt || exit 1; \
		cat benchmarks/results/$$name.txt; echo; \
	done
	$(RUN) scripts/fill_docs.py numbers

outputs: demo  ## run the commands that README and docs show, and put in what they print
	$(RUN) scripts/fill_docs.py outputs

clean:  ## remove what was made here, the virtual environment too
	rm -rf $(VENV) demo-out docs/_build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(READY): pyproject.toml scripts/set_up.py
	@$(SET_UP)
	@touch $@

$(READY)-%: pyproject.toml scripts/set_up.py
	@$(SET_UP) --extra $*
	@touch $(READY) $@
