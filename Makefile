# `make` lists the targets. Each sets up what it needs first; a second run finds it done.
# Variables: PYTHON (interpreter the environment is made from), VENV (the environment; your own may be named),
# TORCH_INDEX (further package index for torch), LAB_ARGS and PYTEST_ARGS (passed on).

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?= -n 2
LAB_ARGS ?= $(if $(filter 0,$(shell id -u)),--allow-root)
RUN := $(VENV)/bin/python -m
INSTALLED := $(VENV)/.nnsight-lab-installed
SMOLLM2 := $(VENV)/.nnsight-lab-smollm2

export PYTHON TORCH_INDEX

.PHONY: help lab test demo bench lint format clean

help:
	@echo 'make lab     set up, then open the quickstart in JupyterLab'
	@echo 'make test    set up, then run every check and test'
	@echo 'make demo    set up, then run the main job in the terminal'
	@echo 'make bench   set up, then run the benchmarks'
	@echo 'make lint    check style and types'
	@echo 'make format  format the code and fix what can be fixed'
	@echo 'make clean   delete .venv, build products and tool caches'

$(INSTALLED): pyproject.toml constraints-dev.txt scripts/setup.sh
	scripts/setup.sh $(VENV)
	@touch $@

$(SMOLLM2): nnsight_lab/demo/smollm2.py $(INSTALLED)
	$(VENV)/bin/python -c 'from nnsight_lab.demo.smollm2 import smollm2_folder; print(smollm2_folder())'
	@touch $@

lab: $(INSTALLED)
	$(RUN) jupyter lab $(LAB_ARGS) examples/quickstart.ipynb

test: lint $(SMOLLM2)
	$(RUN) pytest $(PYTEST_ARGS)

demo: $(INSTALLED)
	$(RUN) nnsight_lab.demo

bench: $(INSTALLED)
	$(RUN) pytest benchmarks

lint: $(INSTALLED)
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy

format: $(INSTALLED)
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
