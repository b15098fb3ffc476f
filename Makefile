# Every target sets up what it needs. Nothing has to be activated; Python 3.11 and make are enough.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DOCS_INSTALLED := $(VENV)/.installed-docs
PEERS := .venv-peers
PEERS_INSTALLED := $(PEERS)/.installed
FLOWER := .venv-flower
FLOWER_INSTALLED := $(FLOWER)/.installed
SPARK := .venv-spark
SPARK_INSTALLED := $(SPARK)/.installed
BROWSER_INSTALLED := $(VENV)/.installed-browser
DELEGATE_INSTALLED := delegate/node_modules/.installed
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet
WORKERS ?= 2
APART := --ignore=tests/integration --ignore=tests/flower --ignore=tests/spark --ignore=tests/browser

.DEFAULT_GOAL := help

.PHONY: help
help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | awk -F '\t' '{printf "  make %-13s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tacit needs Python 3.11 or newer; say make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up $(VENV) (once; a minute or two) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) -c constraints.txt -e '.[dev]'
	@touch $@

$(DOCS_INSTALLED): $(INSTALLED)
	@$(PIP) -c constraints.txt -e '.[docs]'
	@touch $@

$(BROWSER_INSTALLED): $(INSTALLED)
	@$(PIP) -c constraints.txt -e '.[browser]'
	@touch $@

# The page comes built: only who works on the delegate, or tests it, needs Node.
$(DELEGATE_INSTALLED): delegate/package.json delegate/package-lock.json
	@command -v npm >/dev/null && node -e 'process.exit(+process.versions.node.split(".")[0] < 20 ? 1 : 0)' \
	  || { echo "The delegate is tested with Node 20 or newer and npm, and they are not here: install them." >&2; exit 1; }
	@cd delegate && npm ci --silent --no-audit --no-fund
	@touch $@

# The browser tests drive the system's Chromium. Where there is none and packages may be installed, Debian's is.
CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
.PHONY: chromium
chromium:
	@[ -n "$(CHROMIUM)" ] || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && echo "Installing Chromium ..." && apt-get -qq update >/dev/null \
	  && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install chromium >/dev/null; } \
	  || { echo "The browser tests need Chromium, and there is none: install the package chromium." >&2; exit 1; }

# Peers that cannot live beside our own versions have an environment of their own; only the benchmarks use it.
$(PEERS_INSTALLED): benchmarks/peers-requirements.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(PEERS)/bin/python -m pip install --quiet -r benchmarks/peers-requirements.txt
	@touch $@

# Flower asks for older versions of what the service and the command line use: it has an environment of its own too.
$(FLOWER_INSTALLED): pyproject.toml flower-constraints.txt
	@echo "Setting up $(FLOWER) (once; a minute or two) ..."
	@test -x $(FLOWER)/bin/python || $(PYTHON) -m venv $(FLOWER)
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(FLOWER)/bin/python -m pip install --quiet -c flower-constraints.txt -e '.[fast,flower]' 'flwr[simulation]' pytest
	@touch $@

# Spark asks for an older pandas, and brings half a gigabyte: nothing else should carry it.
$(SPARK_INSTALLED): pyproject.toml spark-constraints.txt
	@echo "Setting up $(SPARK) (once; a minute or two) ..."
	@test -x $(SPARK)/bin/python || $(PYTHON) -m venv $(SPARK)
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(SPARK)/bin/python -m pip install --quiet -c spark-constraints.txt -e '.[fast,spark]' pytest
	@touch $@

# Spark runs on the system's Java, 17 or newer. Where there is none and packages may be installed, Debian's headless one is.
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
.PHONY: java
java:
	@command -v $(JAVA) >/dev/null || { [ -z "$(JAVA_HOME)" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && echo "Installing Java (openjdk-17-jre-headless) ..." && apt-get -qq update >/dev/null \
	  && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install openjdk-17-jre-headless >/dev/null; } \
	  || { echo "Spark needs Java 17 or newer, and there is no $(JAVA): install openjdk-17-jre-headless, or set JAVA_HOME." >&2; exit 1; }
	@found=$$($(JAVA) -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1); \
	  [ "$${found:-0}" -ge 17 ] || { echo "Spark needs Java 17 or newer, and $(JAVA) says $${found:-no version}: set JAVA_HOME to a newer one." >&2; exit 1; }

.PHONY: setup
setup: $(INSTALLED) ## install tacit and its tools into .venv

.PHONY: demo
demo: $(INSTALLED) ## the main job: five systems end to end on real ratings, the audit, one table, report.html
	@$(BIN)/tacit demo

.PHONY: serve
serve: $(INSTALLED) ## fit the embedded ratings if need be, and serve them: a page to try, on this machine
	@$(BIN)/tacit serve

.PHONY: check
check: $(INSTALLED) ## lint, format, types, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: test
test: check ## check, then unit, property and statistical tests
	@$(BIN)/pytest -n $(WORKERS) -q $(APART) tests

.PHONY: unit
unit: $(INSTALLED) ## unit and property tests only
	@$(BIN)/pytest -n $(WORKERS) -q -m "not statistical" $(APART) tests

.PHONY: statistical
statistical: $(INSTALLED) ## only the tests that draw many samples; TACIT_SEED=fresh for new ones
	@$(BIN)/pytest -n $(WORKERS) -q -m statistical $(APART) tests

.PHONY: coverage
coverage: $(INSTALLED) ## lines and branches that the tests of `make test` do not reach; htmlcov/ shows where
	@$(BIN)/pytest -n $(WORKERS) -q $(APART) --cov --cov-report=term-missing:skip-covered --cov-report=html tests

.PHONY: integration
integration: $(INSTALLED) ## ledger and service with restarts, several processes, load, a real PostgreSQL
	@TACIT_REQUIRE_POSTGRESQL=1 $(BIN)/pytest -n $(WORKERS) -q tests/integration

.PHONY: delegate
delegate: $(DELEGATE_INSTALLED) ## types, tests and size of the delegate; that the page has its latest build
	@cd delegate && npm test --silent && npm run --silent check-bundle && npm pack --silent --dry-run >/dev/null

.PHONY: browser
browser: chromium $(BROWSER_INSTALLED) ## the page in a real browser against a real server: what left it, and what did not
	@$(BIN)/pytest -q tests/browser

.PHONY: flower
flower: $(FLOWER_INSTALLED) ## federations over Flower: simulated, and as processes with TLS and keys
	@FLWR_TELEMETRY_ENABLED=0 RAY_USAGE_STATS_ENABLED=0 $(FLOWER)/bin/pytest -q -W ignore::DeprecationWarning tests/flower

.PHONY: spark
spark: java $(SPARK_INSTALLED) ## cross-domain on Spark: equal to one machine, on a cluster of several workers
	@$(SPARK)/bin/pytest -q -W ignore::DeprecationWarning tests/spark

.PHONY: bench
bench: $(INSTALLED) $(PEERS_INSTALLED) ## speed and memory as ratios; ONLY=name runs a part
	@TACIT_PEERS=$(PEERS)/bin/python $(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY))

.PHONY: house
house: $(INSTALLED) ## the house: its rooms in numbers, who imports whom, how far a call walks; JSON=file writes it there, too
	@$(BIN)/python -m tools.house $(if $(JSON),--json $(JSON))

.PHONY: results
results: $(INSTALLED) ## measure every system anew (an hour or two), and write the README's table and what `tacit advise` expects
	@$(BIN)/tacit report --results kept-results --json report.json
	@$(BIN)/python -m tacit.evaluation.advice.gather report.json --out src/tacit/evaluation/advice/measured.json
	@$(BIN)/python docs/write_results.py

.PHONY: docs
docs: $(DOCS_INSTALLED) ## spelling of the pages, then the site into site/: every link, anchor and name in it exists
	@$(BIN)/codespell
	@$(BIN)/python -m docs.spelling
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@! grep -rnE '<(script|img|link|iframe)[^>]+(src|href)="https?:' site --include='*.html' || { echo "The site asks other hosts for something." >&2; exit 1; }
	@echo "Open site/index.html; it asks no other host for anything. (To search: $(BIN)/python -m http.server -d site)"

.PHONY: pictures
pictures: $(INSTALLED) ## draw the pictures of the documentation anew
	@$(BIN)/python -m docs.pictures.draw

.PHONY: clean
clean: ## remove everything that was built or installed
	@rm -rf $(VENV) $(PEERS) $(FLOWER) $(SPARK) delegate/node_modules delegate/dist site build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
