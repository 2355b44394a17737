# Two commands: `make demo` shows the main job on real data, `make test` runs every check. Both install what they need.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check lint install compile prepare bench soak fuzz lock clean
.DEFAULT_GOAL := test

install: compile prepare

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Where PYTHONDONTWRITEBYTECODE is set, as in many containers, every command would compile this program again, which is
# half of what a short one costs. What engines run is compiled by their preparation.
compile: $(VENV)/.installed
	@$(BIN)/python -m compileall -q engines node protocol

# Starts Spark in half the time; nothing depends on it. Takes most of a minute once, then nothing.
PREPARE := $(BIN)/odf-node engine prepare
prepare: compile
	-@$(PREPARE)

demo: install
	./examples/covid/demo.sh

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

check: lint
	$(BIN)/mypy

# By file, so that what a file's tests share is made once, and in order: the slow folders come first. Types are checked
# meanwhile, on what processor time the engine's preparation and the tests leave, and told at the end.
test: compile lint
	@mkdir -p build
	nice $(BIN)/mypy > build/types.txt 2>&1 & types=$$!; \
	$(PREPARE); \
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder; tests=$$?; \
	wait $$types; types=$$?; echo "types:"; cat build/types.txt; exit $$((tests | types))

bench: install
	for bench in tests/benchmarks/bench_*.py; do echo "== $$bench"; $(BIN)/python $$bench || exit 1; done

SOAK_S ?= 3600
SOAK_NODES ?= 10

# A thousand honest exchanges over lines that break; then daemons that publish, pull, are cut off and killed. Ends with
# equal heads or with an error.
soak: install
	HONEST_INCREMENTS=1000 $(BIN)/pytest tests/fault/test_honest_exchange.py --timeout=3600
	$(BIN)/python tests/soak/soak.py $(SOAK_S) $(SOAK_NODES)

FUZZ_S ?= 120

# What is found lies in build/fuzz; a copy in tests/data/fuzz/TARGET is tried by every test run from then on.
fuzz: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-fuzz.lock
	$(BIN)/python tests/fuzz/coverage_guided.py all $(FUZZ_S)
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest tests/property --timeout=3600

lock: install
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --quiet --upgrade --output-file requirements.lock
	$(BIN)/uv pip compile --group fuzz --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --quiet --upgrade --output-file requirements-fuzz.lock

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
