# Every target sets up what it needs (Debian packages, .venv); `make` alone lists them.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/sh

# `make scenario KERNEL=debian:6.1` and `AGELAB_HOME=/big make test`: what is set here or in the
# environment reaches the commands as environment variables, so no value needs quoting.
# The options of a run, made of their table in agelab/: what each verb takes of them, and as its arguments.
include options.mk
export AGELAB_HOME NAME KERNELS PATCH ON PLAN STALE TRACES SINCE $(OPTIONS_run)

# The packages of a date, a directory or an address, for whatever any target makes; SNAPSHOT= alone means those of today.
ifneq ($(origin SNAPSHOT),undefined)
export AGELAB_SNAPSHOT = $(SNAPSHOT)
endif

# A misspelt target or variable is told, with the nearest name, before anything runs.
nearest = $(shell awk -v word="$(1)" -v names="$(2)" -f agelab/nearest.awk)
TARGETS := $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' Makefile)
UNKNOWN := $(firstword $(filter-out $(TARGETS),$(MAKECMDGOALS)))
ifneq ($(UNKNOWN),)
NEAR := $(call nearest,$(UNKNOWN),$(TARGETS))
$(error agelab: no target $(UNKNOWN)$(if $(NEAR),; did you mean make $(NEAR)?,: make alone lists them))
endif

# What each target takes.
TAKEN_scenario := NAME PATCH $(OPTIONS_run)
TAKEN_plan := NAME PATCH $(OPTIONS_calibrate)
TAKEN_calibrate := $(TAKEN_plan)
TAKEN_sweep := NAME PATCH KERNELS $(filter-out KERNEL,$(OPTIONS_sweep))
TAKEN_cluster-demo := NAME SEEDS WORKERS
TAKEN_image := KERNEL PATCH
TAKEN_tables := NAME JOBS ON PLAN STALE FRESH TRACES
TAKEN_bench := TRACES
TAKEN_test-container := BASE
TAKEN_test-changed := SINCE
TAKEN_lock := UPGRADE
TAKEN := $(strip AGELAB_HOME SNAPSHOT BIN $(foreach goal,$(MAKECMDGOALS),$(TAKEN_$(goal))))
GIVEN := $(foreach name,$(.VARIABLES),$(if $(findstring command line,$(origin $(name))),$(name)))
STRANGE := $(firstword $(filter-out $(TAKEN),$(GIVEN)))
ifneq ($(STRANGE),)
NEAR := $(call nearest,$(STRANGE),$(TAKEN))
$(error agelab: make $(MAKECMDGOALS) takes no $(STRANGE)=$(if $(NEAR),; did you mean $(NEAR)=?,: it takes $(TAKEN)))
endif

BIN := .venv/bin
SCENARIOS := $(sort $(patsubst scenarios/%.toml,%,$(wildcard scenarios/*.toml)))

.PHONY: help setup setup-site setup-test scenario plan cluster-demo sweep calibrate name-given patched-given image doctor site tables test test-full test-changed test-container fuzz bench check lint format lock clean

help: ## list the targets
	@echo "agelab: a reproducibility sandbox for filesystem benchmarks"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1	\2/p' Makefile | expand -t 14
	@echo
	@echo "Scenarios: $(SCENARIOS)"
	@echo "Options of make scenario: PATCH $(OPTIONS_run) (see: $(BIN)/agelab run --help)"
	@echo "AGELAB_HOME=<directory> moves the store of kernels, images and runs (default: .agelab)."
	@echo "SNAPSHOT=<date or directory> takes Debian packages from there (docs/capsules.md)."
	@echo "make exits 2 whenever a command fails; $(BIN)/agelab itself exits 1 when a cell is not ok,"
	@echo "2 on wrong input, 3 when this host cannot do it, 130 when interrupted."

setup: ## install what is missing: Debian packages, and Python packages into .venv
	@sh agelab/setup.sh run

setup-test:
	@sh agelab/setup.sh test

setup-site:
	@sh agelab/setup.sh site

# PATCH is a part of each kernel's spec.
PATCHED = $${PATCH:+,patches=$$PATCH}

scenario: name-given setup ## run NAME=<scenario>[-<variant>], e.g. make scenario NAME=aging-reiserfs
	@$(BIN)/agelab run "$$NAME" $(ASKED_run)

plan: name-given setup ## say what NAME=<scenario>[-<variant>] would take: its cells and their time
	@$(BIN)/agelab plan "$$NAME" $(ASKED_calibrate)

sweep: name-given setup ## run NAME=<scenario>[-<variant>] on several kernels, into one table: KERNELS="5.10 6.1 6.12 7.2"
	@test -n "$$KERNELS" || { echo 'agelab: say which kernels: make sweep NAME=aging-ext4 KERNELS="5.10 6.1 6.12 7.2"' >&2; exit 2; }
	@set -f; for kernel in $$KERNELS; do set -- "$$@" --kernel "$$kernel$(PATCHED)"; done; KERNEL=; $(BIN)/agelab run "$$NAME" "$$@" $(ASKED_sweep)

cluster-demo: setup-test ## several machines on one: a scheduler and WORKERS=3 workers here, each with a store of its own, run aging-ext4 SEEDS=1,2,3, or NAME= with SEEDS=
	@$(BIN)/python -m bench.cluster_demo "$${WORKERS:-3}" "$${NAME:-aging-ext4}" --seeds "$${SEEDS:-1,2,3}"

calibrate: name-given setup ## measure the floor of NAME=<scenario>[-<variant>]: five run seeds, the first twice
	@$(BIN)/agelab calibrate "$$NAME" $(ASKED_calibrate)

name-given: patched-given
	@test -n "$$NAME" || { echo "agelab: say which scenario: make $(firstword $(MAKECMDGOALS)) NAME=<scenario>[-<variant>];" \
	  "there are: $(SCENARIOS)" >&2; exit 2; }

patched-given:
	@test -z "$$PATCH" || test -n "$$KERNEL$$KERNELS" || { echo "agelab: say which kernel PATCH changes, one that is built: KERNEL=source:5.10" >&2; exit 2; }

image: patched-given setup ## build the guest image (KERNEL=<kernel spec>, default: the newest Debian 6.1)
	@$(BIN)/agelab image build $${KERNEL:+--kernel "$$KERNEL$(PATCHED)"}

doctor: setup ## say what this host can do, and what to install
	@$(BIN)/agelab doctor

site: setup-site ## build the documentation as a site: build/site/index.html
	@$(BIN)/python -m sphinx -W --keep-going -n -q -E -b html -d build/doctrees docs build/site
	@echo "agelab: build/site/index.html"

tables: setup-test ## make the tables and pictures of the pages again from runs: all, or NAME=; PLAN=1 says what it takes, STALE=1 proves or marks those of an earlier code
	@$(BIN)/python -m docs.make --name "$$NAME" $${JOBS:+--jobs "$$JOBS"} $${ON:+--on "$$ON"} $${PLAN:+--plan} $${STALE:+--stale} $${FRESH:+--fresh}

# Two files of tests at a time, begun in the order of tests/conftest.py.
PYTEST := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --durations 30

test: check ## all checks and tests but the long ones
	@$(PYTEST) -m "not full"

test-full: check ## all checks and all tests
	@$(PYTEST)

test-changed: setup-test ## the tests of what has changed since SINCE=HEAD: those in its package's folder, and changed ones
	@tests=$$($(BIN)/python -m tests.changed "$${SINCE:-HEAD}") && if test -n "$$tests"; then $(PYTEST) -m "not full" $$tests; fi

test-container: ## a cell outside and in a container: one key, one digest (buildah, no root; BASE=IMAGE)
	@.ci/container.sh $(BASE)

fuzz: setup-test ## 100,000 made-up inputs for each reader of what comes from outside (tests/fuzz; half an hour)
	@set -e; for target in tests/fuzz/[!_]*.py; do $(BIN)/python -m tests.fuzz "$$(basename "$$target" .py)"; done

bench: setup-test ## time agelab (bench/), and hold its models and verdicts against reality (validation/): docs/bench.md (an hour)
	@$(BIN)/python -m validation.validate
	@$(BIN)/python -m validation.press
	@$(BIN)/python -m bench.cost
	@$(BIN)/python -m validation.machines
	@$(BIN)/python -m bench.history
	@$(BIN)/python -m validation.bisect_rules
	@$(BIN)/python -m validation.decide
	@$(BIN)/python -m validation.track
	@$(BIN)/python -m bench.report
	@$(BIN)/python -m bench.boot
	@$(BIN)/python -m bench.repeat --load --pauses aging-reiserfs "aging-ext4 --layout raid0" aging-xfs aging-btrfs aging-jfs
	@$(BIN)/python -m bench.peer
	@$(BIN)/python -m bench.first

# Side by side: mypy alone takes about as long as the others together.
check: setup-test ## lint, format, types, import layers, the pages' style, and whether their tables are of this code
	@said=$$(mktemp -d) && trap 'rm -r "$$said"' EXIT; number=0; \
	for part in "ruff check" "ruff format --check" mypy lint-imports "python -m docs.make --check" "python -m docs.make.style"; do number=$$((number + 1)); \
	  { $(BIN)/$$part >"$$said/$$number" 2>&1 || touch "$$said/failed"; } & done; wait; \
	cat "$$said"/[1-9]; test ! -e "$$said/failed"

lint: check ## the same as check

format: setup-test ## rewrite the sources in the one format, and in the pages what they say of verbs, keys and metrics
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format
	@$(BIN)/python -m docs.make --generated

PIP_COMPILE := build/lock/bin/pip-compile --quiet --strip-extras --allow-unsafe --all-build-deps \
  --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
  --no-header --annotation-style=line $(if $(UPGRADE),--upgrade)
lock: ## bring the lock files up to pyproject.toml (UPGRADE=1: newest versions of all)
	@rm -rf build/lock
	@/usr/bin/python3 -m venv build/lock
	@build/lock/bin/pip install --quiet pip-tools
	@$(PIP_COMPILE) --output-file requirements.txt pyproject.toml
	@$(PIP_COMPILE) --constraint requirements.txt --extra cluster --output-file requirements-cluster.txt pyproject.toml
	@$(PIP_COMPILE) --constraint requirements.txt --extra parquet --output-file requirements-parquet.txt pyproject.toml
	@$(PIP_COMPILE) --constraint requirements.txt --extra site --output-file requirements-site.txt pyproject.toml
	@$(PIP_COMPILE) --constraint requirements-cluster.txt --constraint requirements-parquet.txt --constraint requirements-site.txt --extra test --output-file requirements-test.txt pyproject.toml
	@rm -rf build/lock

clean: ## remove .venv and caches; kernels, images and runs stay
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@store="$${AGELAB_HOME:-.agelab}"; if test -d "$$store"; then \
	  echo "kept: kernels, images and runs in $$store (to remove them too: rm -r $$store)"; fi
