# `make` alone lists the commands. The first two are those of the README, which also work without make.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: frameworks launched launching layouts checked campaign-rehearsal help run test long fuzz check house rows site versions schema mutants lint types surface readme examples claims claimnumerics startup calibrate accuracy clean images imagefit imagemodels

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

run: ## install mpplan and plan a 70B model in FP8: prints a table and writes plan.html
	$(PYTHON) -m venv .venv && .venv/bin/pip install --quiet . && .venv/bin/mpplan estimate --params 70B --precision fp8 --report plan.html

test: ## set up everything that the tests need, and run them
	VENV=$(VENV) PYTHON=$(PYTHON) sh tests/run.sh

long: ## run the slow tests that `make test` leaves out: minutes
	VENV=$(VENV) PYTHON=$(PYTHON) sh tests/run.sh -m long

check: lint types ## check style, types and the import contract; run `make test` once before

SEED ?= $(shell date +%s)
SECONDS ?= 600
fuzz: ## run the property tests with 30 times the examples, then hostile input: SEED=1 SECONDS=600
	$(BIN)/python -m pytest --hypothesis-profile=fuzz tests/planner tests/pricing tests/reports tests/probes/timing/test_statistics.py
	$(BIN)/python -m tests.fuzz --seed $(SEED) --seconds $(SECONDS)

house: ## print the layers of every package, the imports that break them (0) and the modules per folder
	$(BIN)/python -m tools.house

rows: ## check every row of the data files: source, date, key, range, names
	$(BIN)/python -m tools.rows

site: ## build the documentation as a website in build/site, with the Python API; needs no network
	$(BIN)/python -m tools.site

versions: ## run the main job on every installed Python, with the lowest and the newest dependencies (needs uv)
	$(BIN)/python -m tools.versions

mutants: ## test a sample of mutated equations, and list those that no test notices (needs mutmut; hours)
	$(BIN)/python -m tools.mutants

lint: ## check style, format and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: ## run mypy --strict
	$(BIN)/mypy

surface: ## record the commands and flags again, after an intended change
	$(BIN)/python tests/contracts/test_cli_surface.py

readme: ## regenerate the example output in the README and the help blocks of docs/commands.md
	$(BIN)/python tests/contracts/test_docs.py

examples: ## regenerate docs/examples/: runs the commands of the worked examples
	$(BIN)/python -m tools.pages

claims: ## judge every published claim again: docs/claims.md and the verdicts that reports show
	$(BIN)/python -m tools.claims

claimnumerics: ## train in FP16 and BF16 (15 minutes, a CPU) and keep the results that claims use
	$(BIN)/python -m tools.claim_numerics

startup: ## measure the program's start-up time relative to `import numpy`
	$(BIN)/python -m benchmarks.startup

schema: ## regenerate the JSON Schemas of the documents from the types
	$(BIN)/python -m tools.schemas.documents

MEGATRON ?=
frameworks: ## record the settings that the frameworks of `export --launch` accept, for those importable here (MEGATRON=a checkout)
	$(BIN)/python -m tools.launching.settings $(if $(MEGATRON),--megatron $(MEGATRON) --commit $(shell git -C $(MEGATRON) rev-parse HEAD))

launched: ## pass the files of `export --launch` to the frameworks' own parsers, for those importable here
	rm -rf build/launched && $(BIN)/python -m tests.reports.launch.grid build/launched
	$(BIN)/python -m tools.launching.parsers build/launched $(if $(MEGATRON),--megatron $(MEGATRON))

launching: ## regenerate the tables of docs/launching.md from the code
	$(BIN)/python -m tools.launching.page

calibrate: ## fit the parameters to the shipped published runs and write them to the catalogue
	$(BIN)/python -m tools.calibrate

images: ## measure the accuracy for vision models on timed training steps, with whole families left out
	$(BIN)/python -m benchmarks.images.accuracy

imagefit: ## fit the terms of vision models to timed training steps and write them to the catalogue
	$(BIN)/python -m tools.images.fit

imagemodels: ## record the operations of timm's models again (needs torch and timm)
	$(BIN)/python -m tools.images.models

accuracy: ## regenerate docs/accuracy.md and its chart from the shipped published runs
	$(BIN)/python -m benchmarks.accuracy

checked: ## regenerate docs/checked.md: well-known runs, predicted from a short question
	$(BIN)/python -m benchmarks.checked

campaign-rehearsal: ## rehearse a GPU session on the fake GPU, with each command cut off once: minutes
	$(BIN)/python -m tests.benchmarks.rehearsal build/campaign --cut

layouts: ## measure how many layouts one core evaluates per second
	$(BIN)/python -m benchmarks.layouts

clean: ## remove what these commands have made
	rm -rf .venv build dist plan.html .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
