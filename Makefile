# The one vocabulary: setup, run, test, kills, real-ml-agents, lint, types, bench, check.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
REAL := .venv-ml-agents
WORKERS := $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))

.PHONY: setup run test kills real-ml-agents lint types bench check

setup: $(READY)

# constraints.txt pins what was tested; torch goes first, so that nothing pulls another build.
$(READY): pyproject.toml constraints.txt
	@echo "making $(VENV) with $(PYTHON) (a few minutes the first time)"
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || \
		{ echo "Python 3.11, 3.12 or 3.13 is needed: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

run: setup
	$(BIN)/aimbot-lab run curricula/goto.yaml

# A file's tests share what they set up, so they stay together. Some wait for other processes, so there are
# half as many workers again as processors.
test: setup
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4 --dist loadfile

# Trainings killed at random moments and resumed, far more often than in `make test`.
kills: setup
	AIMBOT_LAB_KILLS=4 $(BIN)/python -m pytest tests/experiment/test_kills.py

# ML-Agents' own client against our player. The client needs packages that ours exclude, so it has an
# environment of its own; setuptools goes last, because others pull a newer one.
real-ml-agents: setup $(REAL)/.ready
	$(BIN)/python -m pytest -n 0 -m real_ml_agents tests/mlagents

$(REAL)/.ready: Makefile
	$(PYTHON) -m venv $(REAL)
	$(REAL)/bin/python -m pip install --quiet wheel
	$(REAL)/bin/python -m pip install --quiet --ignore-requires-python --no-deps mlagents_envs==1.1.0
	$(REAL)/bin/python -m pip install --quiet protobuf==3.20.3 grpcio numpy==1.23.5 cloudpickle \
		pyyaml filelock Pillow
	$(REAL)/bin/python -m pip install --quiet 'setuptools<81'
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/aimbot-lab bench sim

check: test lint types
