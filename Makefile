# `make` lists the targets. Each sets up what it needs first; a second run finds it done.
# Variables: PYTHON (interpreter the environment is made from), VENV (the environment; your own may be named),
# TORCH_INDEX (further package index for torch), LAB_ARGS, PYTEST_ARGS and UITEST_ARGS (passed on).

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?= -n 2
LAB_ARGS ?= $(if $(filter 0,$(shell id -u)),--allow-root)
RUN := $(VENV)/bin/python -m
INSTALLED := $(VENV)/.nnsight-lab-installed
SMOLLM2 := $(VENV)/.nnsight-lab-smollm2
PAGE := nnsight_lab/widgets/static/lab.js
PAGE_SOURCES := $(shell find src -type f) scripts/build-widget.mjs scripts/build-labextension.mjs
EXTENSION := $(VENV)/share/jupyter/labextensions/nnsight-lab
UITEST_ARGS ?=

export PYTHON TORCH_INDEX
# Where the machine has no Node, the set-up puts one into the environment.
export PATH := $(abspath $(VENV)/bin):$(PATH)
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD := 1

.PHONY: help lab test demo bench lint format clean page browser

help:
	@echo 'make lab     set up, then open the quickstart in JupyterLab'
	@echo 'make test    set up, then run every check and test'
	@echo 'make demo    set up, then run the main job in the terminal'
	@echo 'make bench   set up, then run the benchmarks'
	@echo 'make lint    check style and types'
	@echo 'make format  format the code and fix what can be fixed'
	@echo 'make clean   delete .venv, build products and tool caches'

$(INSTALLED): pyproject.toml constraints-dev.txt scripts/setup.sh package-lock.json
	scripts/setup.sh $(VENV)
	@touch $@

$(SMOLLM2): nnsight_lab/demo/smollm2.py $(INSTALLED)
	$(VENV)/bin/python -c 'from nnsight_lab.demo.smollm2 import smollm2_folder; print(smollm2_folder())'
	@touch $@

$(PAGE): $(PAGE_SOURCES) $(INSTALLED)
	npm run --silent build
	rm -rf $(EXTENSION)
	mkdir -p $(dir $(EXTENSION))
	cp -R nnsight_lab/labextension $(EXTENSION)
	cp install.json $(EXTENSION)/
	@touch $@

page: $(PAGE)

browser:
	scripts/browser.sh

lab: $(INSTALLED) $(PAGE)
	$(RUN) jupyter lab $(LAB_ARGS) examples/quickstart.ipynb

test: lint $(SMOLLM2) $(PAGE) browser
	$(RUN) pytest $(PYTEST_ARGS)
	npm test
	$(RUN) pytest ui-tests $(UITEST_ARGS)

demo: $(INSTALLED)
	$(RUN) nnsight_lab.demo

bench: $(INSTALLED)
	$(RUN) pytest -s benchmarks

lint: $(INSTALLED)
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	npm run --silent lint

format: $(INSTALLED)
	$(RUN) ruff check --fix .
	$(RUN) ruff format .
	npm run --silent format

clean:
	rm -rf .venv build dist node_modules nnsight_lab/widgets/static nnsight_lab/labextension ui-tests/screenshots .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
