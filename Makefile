# `make` alone lists the commands. The first two are the README's; both work without make, too.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: frameworks launched launching layouts checked campaign-rehearsal help run test long fuzz check house rows site versions schema mutants lint types surface readme examples claims claimnumerics startup calibrate accuracy clean images imagefit imagemodels

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

run: ## set up mpplan and plan a 70B model in FP8: a table here and plan.html
	$(PYTHON) -m venv .venv && .venv/bin/pip install --quiet . && .venv/bin/mpplan estimate --params 70B --precision fp8 --report plan.html

test: ## set up everything for the tests and run them
	VENV=$(VENV) PYTHON=$(PYTHON) sh tests/run.sh

long: ## the tests that repeat at length what the others show, which `make test` leaves out: minutes
	VENV=$(VENV) PYTHON=$(PYTHON) sh tests/run.sh -m long

check: lint types ## style, types and the import contract, after `make test` has set up

SEED ?= $(shell date +%s)
SECONDS ?= 600
fuzz: ## the property tests with thirty times the examples, then hostile input: SEED=1 SECONDS=600
	$(BIN)/python -m pytest --hypothesis-profile=fuzz tests/planner tests/pricing tests/reports tests/probes/timing/test_statistics.py
	$(BIN)/python -m tests.fuzz --seed $(SEED) --seconds $(SECONDS)

house: ## the layers of every package, imports against them (0) and modules per folder
	$(BIN)/python -m tools.house

rows: ## check every row of the data files: source, date, key, range, names
	$(BIN)/python -m tools.rows

site: ## the documentation as a site in build/site, with the Python API; needs no net
	$(BIN)/python -m tools.site

versions: ## the main job on every Python that is here, with the lowest and the newest dependencies (needs uv)
	$(BIN)/python -m tools.versions

mutants: ## a sample of mutated equations, and which of them no test notices (needs mutmut; hours)
	$(BIN)/python -m tools.mutants

lint: ## style, format and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: ## mypy --strict
	$(BIN)/mypy

surface: ## write down the commands and flags anew, after a change that is meant
	$(BIN)/python tests/contracts/test_cli_surface.py

readme: ## write the capture of the README and the help blocks of docs/commands.md anew
	$(BIN)/python tests/contracts/test_docs.py

examples: ## write docs/examples/ anew: runs the commands of the worked examples
	$(BIN)/python -m tools.pages

claims: ## judge every claim of the literature anew: docs/claims.md and the verdicts that reports show
	$(BIN)/python -m tools.claims

claimnumerics: ## train for real in FP16 and BF16 (15 minutes, a CPU) and keep what claims read of it
	$(BIN)/python -m tools.claim_numerics

startup: ## cold start of the program as a ratio to `import numpy`
	$(BIN)/python -m benchmarks.startup

schema: ## write the JSON Schemas of the documents anew from the types
	$(BIN)/python -m tools.schemas.documents

MEGATRON ?=
frameworks: ## record what the frameworks of `export --launch` take, of those importable here (MEGATRON=a checkout)
	$(BIN)/python -m tools.launching.settings $(if $(MEGATRON),--megatron $(MEGATRON) --commit $(shell git -C $(MEGATRON) rev-parse HEAD))

launched: ## give the files of `export --launch` to the frameworks' own parsers, of those importable here
	rm -rf build/launched && $(BIN)/python -m tests.reports.launch.grid build/launched
	$(BIN)/python -m tools.launching.parsers build/launched $(if $(MEGATRON),--megatron $(MEGATRON))

launching: ## write the tables of docs/launching.md anew from the code
	$(BIN)/python -m tools.launching.page

calibrate: ## fit the parameters to the shipped published runs and write them down
	$(BIN)/python -m tools.calibrate

images: ## how close vision models are to timed training steps, whole families left out
	$(BIN)/python -m benchmarks.images.accuracy

imagefit: ## fit the terms of vision models to timed training steps and write them down
	$(BIN)/python -m tools.images.fit

imagemodels: ## write the operations of timm's models anew (needs torch and timm)
	$(BIN)/python -m tools.images.models

accuracy: ## write docs/accuracy.md and its chart anew from the shipped published runs
	$(BIN)/python -m benchmarks.accuracy

checked: ## write docs/checked.md anew: well-known runs, asked as a person would ask
	$(BIN)/python -m benchmarks.checked

campaign-rehearsal: ## the commands of a GPU session on the fake GPU, each cut off once: minutes
	$(BIN)/python -m tests.benchmarks.rehearsal build/campaign --cut

layouts: ## layouts evaluated per second on one core
	$(BIN)/python -m benchmarks.layouts

clean: ## remove what the commands above made
	rm -rf .venv build dist plan.html .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
