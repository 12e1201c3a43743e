# The one vocabulary: setup, run, test, lint, types, check, bench, size, followed, pictures, figures, and
# campaigns: equality, kills, oracles, races, scale, actors, ray, real-ml-agents.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
REAL := .venv-ml-agents
REAL_OLD := .venv-ml-agents-0.30
CLIENT := protobuf==3.20.3 grpcio numpy==1.23.5 cloudpickle pyyaml filelock Pillow
WORKERS := $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 2 )))

.PHONY: setup run test lint types check bench size followed pictures figures campaigns equality kills oracles races scale actors ray real-ml-agents

setup: $(READY)

# constraints.txt pins what was tested. pip would make byte code on one core: this does on all, of torch while
# pip installs the rest. A package may hold a file for another Python, which is passed over, and some of what is
# installed is hardly ever imported.
UNUSED := tests?|testing|examples|_inductor|databricks|fontTools|gunicorn|mypyc?|networkx
UNUSED := $(UNUSED)|onnxruntime|physics|pip|sklearn|wcwidth
INSTALL := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
COMPILE := $(BIN)/python -W ignore -m compileall -qq -j 0 -x '/($(UNUSED))/' $(VENV)/lib
$(READY): pyproject.toml constraints.txt
	@echo "making $(VENV) with $(PYTHON) (a few minutes the first time)"
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || \
		{ echo "Python 3.11, 3.12 or 3.13 is needed: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip  # an older one takes three times as long to find the rest
	$(INSTALL) torch
	@$(COMPILE) & $(INSTALL) --editable '.[dev]' && wait
	-@$(COMPILE) aimbot_lab
	@touch $(READY)

run: setup
	$(BIN)/aimbot-lab run curricula/goto.yaml

# Tests start many processes, for which compiled modules are kept even where the environment says not to. Torch
# computes on one thread where a test asks for no more, and more of them sleep while they wait: with more processes
# than cores they would spin away most of the time.
test: export PYTHONDONTWRITEBYTECODE =
test: export OMP_NUM_THREADS = 1
test: export OMP_WAIT_POLICY = passive

# A file's tests share what they set up, so they stay together; files begin in the order of tests/conftest.py.
# Many wait for other processes, so there are twice as many workers as processors. One that crashes ends all
# with the test that it ran: pytest-xdist hangs when it gives the rest of a file to another. Kernels of a world share
# parts, which one process compiles once.
test: setup
	$(BIN)/python tests/compile_kernels.py & \
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder \
		--max-worker-restart 0

# What takes too long for every change: run it before a release, and the one that a change concerns.
campaigns: equality kills oracles races scale actors ray real-ml-agents

# Each algorithm of the libraries learns the bits of its own script for 2,000 steps, also after five kills, and the
# same bits with environments in one, two and four processes.
equality: setup
	AIMBOT_LAB_EQUALITY_STEPS=2000 $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 \
		tests/training/test_library_equality.py -k 'learn or script or library_s or resumed'
	$(BIN)/python -m pytest -n 0 -m campaign tests/worlds/test_gymnasium_processes.py
	AIMBOT_LAB_EQUALITY_STEPS=2000 $(BIN)/python -m pytest -n 0 -m 'campaign or not campaign' \
		tests/worlds/test_gymnasium_wrappers.py
	AIMBOT_LAB_LIBRARY_KILLS=5 $(BIN)/python -m pytest -n 2 -m campaign tests/experiment/test_kills.py -k libraries

# Trainings and sweeps killed at random moments and resumed, alone and in several processes.
kills: setup
	AIMBOT_LAB_KILLS=4 AIMBOT_LAB_SWEEP_KILLS=10 $(BIN)/python -m pytest -m 'campaign or not campaign' \
		tests/experiment/test_kills.py tests/cli/test_shared_kills.py tests/cli/test_shared_trainings.py \
		tests/cli/test_seeds.py tests/sweep/test_sweep_deaths.py

# Every number of the simulators against a second program, and hostile files and messages, in large numbers.
oracles: setup
	AIMBOT_LAB_ORACLE_STEPS=430000 AIMBOT_LAB_GORGE_ORACLE_STEPS=3300 AIMBOT_LAB_MUTATIONS=5000 \
		AIMBOT_LAB_MESSAGES=10000 AIMBOT_LAB_STOPPED_LESSONS=1500 \
		$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m 'not real_ml_agents' \
		tests/arena/test_against_oracle.py tests/duel/test_duel_oracle.py tests/gorge/test_gorge_oracle.py \
		tests/gorge/test_gorge_laws.py tests/gorge/test_generator.py tests/gorge/test_optimum.py \
		tests/experiment/test_mutated_curricula.py tests/mlagents tests/curriculum/test_evidence.py

# Several processes, containers and servers at one run, sweep or panel.
races: setup
	AIMBOT_LAB_PAGES=600 $(BIN)/python -m pytest -m campaign tests/cli/test_containers.py \
		tests/cli/test_runs_on_a_server.py tests/cli/test_code_that_files_name.py \
		tests/sweep tests/panel tests/tracking

# Trainings of 1 to 16 processes with one and two threads each, which must all end in the same bits.
scale: setup
	$(BIN)/python -m pytest -n 0 -m 'scale or campaign' \
		tests/training/test_scale_campaign.py tests/training/test_exchange.py \
		tests/training/test_supervisor.py tests/bench/test_scale_bench.py

# What actors bring and cost: the speed of worlds that hang now and then, and the steps to a goal with a lag.
actors: setup
	$(BIN)/python -m pytest -n 0 -s -m campaign tests/training/test_actor_campaigns.py \
		tests/training/test_actors_of_slow_worlds.py tests/training/test_shared_training.py

# Trainings, actors and sweeps that a Ray of this machine places. Ray joins our own environment, with which it
# has no conflict.
ray: setup
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,ray]'
	$(BIN)/python -m pytest -n 0 -m ray tests/sweep tests/cluster tests/training

# ML-Agents' own clients and trainer against our player and files. They need packages that ours exclude, so
# they have environments of their own, which say that they conflict with their own pins: harmless.
real-ml-agents: setup $(REAL)/.ready $(REAL_OLD)/.ready
	$(BIN)/python -m pytest -n 0 -m real_ml_agents tests/mlagents

# torch goes first, so that nothing pulls another build; setuptools last, because others pull a newer one.
$(REAL)/.ready: Makefile
	$(PYTHON) -m venv $(REAL)
	$(REAL)/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(REAL)/bin/python -m pip install --quiet wheel
	$(REAL)/bin/python -m pip install --quiet --ignore-requires-python --no-deps \
		mlagents_envs==1.1.0 mlagents==1.1.0
	$(REAL)/bin/python -m pip install --quiet $(CLIENT) tensorboard h5py attrs 'cattrs>=1.1.0,<1.7' six \
		onnx==1.17.0
	$(REAL)/bin/python -m pip install --quiet --no-deps onnxscript==0.7.2 onnx_ir==1.1.0 ml_dtypes==0.5.4 \
		onnxruntime==1.19.2
	$(REAL)/bin/python -m pip install --quiet 'setuptools<81'
	@touch $@

$(REAL_OLD)/.ready: Makefile
	$(PYTHON) -m venv $(REAL_OLD)
	$(REAL_OLD)/bin/python -m pip install --quiet 'setuptools<81' wheel
	$(REAL_OLD)/bin/python -m pip install --quiet --ignore-requires-python --no-deps \
		--no-build-isolation mlagents_envs==0.30.0
	$(REAL_OLD)/bin/python -m pip install --quiet $(CLIENT)
	$(REAL_OLD)/bin/python -m pip install --quiet 'setuptools<81'
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/aimbot-lab bench sim

size:
	@$(PYTHON) .ci/size.py

followed: setup
	@$(BIN)/python .ci/followed.py

pictures: setup
	$(BIN)/python .ci/pictures.py

# Hours, in pieces: FIGURES="ablation lessons" measures the commands that hold one of these words.
figures: setup
	$(BIN)/python .ci/figures.py $(FIGURES)

check: test lint types
