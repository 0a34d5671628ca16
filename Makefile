# The commands for developers. `make` alone prints them.
.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
ARGS ?=
ENGINE ?= docker
# Python keeps what it compiled, whatever the caller has set: a service starts in half the time then.
export PYTHONDONTWRITEBYTECODE :=
MINUTES ?= 10
# One more than processors: whole agents, services and browsers wait a lot.
WORKERS ?= $$(($$(nproc) + 1))

.PHONY: help run replicas test test-quick test-machines test-api check format lint types imports golden demo-alerts screenshots secret-table bench bench-queue bench-browser bench-scrub bench-account bench-analytics bench-attack bench-bodies bench-pages bench-start images simulate soak clean

help: ## Print these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

SETUP_FILES := pyproject.toml uv.lock scripts/setup.sh
CLIENT_FILES := $(wildcard tests/clients/checkly/*.json)
RUNTIME_FILES := $(wildcard runners/installation/*.* runners/harness/runtimes/*/* runners/harness/runtimes/*/node/*)

# The last does all that the others do, and a goal wants one of them: what is missing is named once.
# What scripts need comes without the tools of developers, which the other two install.
.venv/.ready: $(SETUP_FILES)
	@sh scripts/setup.sh

.venv/.ready-for-scripts: $(SETUP_FILES) $(RUNTIME_FILES)
	@sh scripts/setup.sh scripts

.venv/.ready-for-tests: $(SETUP_FILES) $(RUNTIME_FILES) $(CLIENT_FILES)
	@sh scripts/setup.sh tests

run: .venv/.ready-for-scripts ## Start service, agent and starter checks; ARGS="--until-results 30" stops by itself
	@$(BIN)/picket up $(ARGS)

replicas: .venv/.ready ## Start PostgreSQL, two services, two agents and starter checks; ARGS="--until-results 30"
	@$(BIN)/python -m deploy.replicas $(ARGS)

test: .venv/.ready-for-tests ## Run every test, including format, lint, type and import checks
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-quick: .venv/.ready-for-tests ## Run the tests that need no browser, no whole agent and no faults: a few minutes
	@HYPOTHESIS_PROFILE=quick $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

test-machines: .venv/.ready ## As root: `make run` and `make test` on bare Debian machines; ARGS="--release trixie --quick"
	@$(BIN)/python -m tests.machines $(ARGS)

test-api: .venv/.ready-for-tests ## Check the API against its OpenAPI document: some 60,000 requests, 300 random ones per operation
	@API_EXAMPLES=300 $(BIN)/pytest -n $$(nproc) -s -p no:randomly tests/service/http/test_contract.py $(ARGS)

check: .venv/.ready-for-tests format test ## Format, then run every test

format: .venv/.ready ## Format the code and fix what ruff can fix
	@$(BIN)/ruff format -q .
	@$(BIN)/ruff check -q --fix .

lint: .venv/.ready ## Check format and lint rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: .venv/.ready ## Check types
	@$(BIN)/mypy

imports: .venv/.ready ## Check the direction of imports
	@$(BIN)/lint-imports

screenshots: .venv/.ready-for-tests ## Take pictures of the main pages into docs/pages
	@$(BIN)/python -m tests.system.page_screenshots

demo-alerts: .venv/.ready ## Close the demo shop and open it again: mail, signed webhook and status page, with their times
	@$(BIN)/python -m tests.system.alert_chain

golden: .venv/.ready ## Rewrite the contract's golden files, after an intended change
	@$(BIN)/python -m tests.contract.samples

secret-table: .venv/.ready ## Rewrite the table of docs/secrets.md, after an intended change
	@$(BIN)/python -m tests.docs.secret_table

bench: .venv/.ready ## Compare the agent with blackbox_exporter on this machine
	@sh bench/setup.sh
	@$(BIN)/python bench/uptime.py

bench-queue: .venv/.ready ## Compare the queue with procrastinate and pgqueuer on this machine
	@UV_PROJECT_ENVIRONMENT=.tools/peers UV_PYTHON_DOWNLOADS=never .tools/bin/uv sync --frozen \
		--quiet --only-group bench --python .venv/bin/python
	@$(BIN)/python bench/queues.py $(ARGS)

bench-browser: .venv/.ready-for-scripts ## Compare browser checks with `npx playwright test` on this machine
	@sh bench/browser_peers/install.sh
	@$(BIN)/python bench/browser.py $(ARGS)

bench-scrub: .venv/.ready ## Measure how fast secrets are redacted
	@$(BIN)/python bench/scrub.py $(ARGS)

bench-account: .venv/.ready ## Measure lists, statuses, triggers and ticks of an account with 10,000 checks
	@$(BIN)/python bench/account.py $(ARGS)

bench-analytics: .venv/.ready ## Measure series, summaries and roll-ups over a million results
	@$(BIN)/python bench/analytics.py $(ARGS)

bench-attack: .venv/.ready ## Measure how fast the service answers while strangers attack its port
	@$(BIN)/python bench/attack.py $(ARGS)

bench-bodies: .venv/.ready ## Measure memory and stalls of 256 API checks on bodies of 25 MB at once
	@$(BIN)/python bench/bodies.py $(ARGS)

bench-pages: .venv/.ready-for-tests ## Measure the first byte, weight and paint of pages over a million results
	@PYTHONPATH=. $(BIN)/python bench/pages.py $(ARGS)

simulate: .venv/.ready ## Run a million checks with 10,000 light agents on two services: 15 minutes; ARGS="--checks 100000 --agents 1000"
	@PYTHONPATH=. $(BIN)/python bench/simulate.py $(ARGS)

bench-start: .venv/.ready ## Measure CPU time and memory of a start of the service
	@$(BIN)/python bench/start.py $(ARGS)

RELEASE = $(shell sed -n 's/^RELEASE: Final = "\(.*\)"/\1/p' contract/release.py)
BUILD = $(ENGINE) build --build-arg VERSION=$(RELEASE) $(ARGS)
images: ## Build the four images; ENGINE=podman uses Podman, ARGS="--build-arg BASE=debian:12-slim" Debian 12
	$(BUILD) -f Dockerfile.uptime -t picket-agent .
	$(BUILD) -f Dockerfile -t picket-agent-full .
	$(BUILD) -f Dockerfile.dev -t picket-agent-dev .
	$(BUILD) -f Dockerfile.service -t picket-service .

soak: .venv/.ready-for-tests ## Inject random faults into agents and services, and count the effects; MINUTES=10 ARGS="--seed 7 --store postgresql"
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) $(ARGS)

clean: ## Remove the virtual environment, caches and demo data
	@chmod -R u+w .tools 2>/dev/null || true
	@rm -rf .venv .tools .picket .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
