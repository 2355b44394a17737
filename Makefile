# Two commands: `make demo` shows the main job on real data, `make test` checks in minutes what can be checked in minutes.
# `make test-all` runs every check: it must pass before a change lands. All install what they need.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all check lint install compile prepare types run-tests pythons bench soak fuzz proof docs lock clean
.DEFAULT_GOAL := test

install: compile prepare

# uv links the files that it has unpacked once into every environment, so that a second installation takes a second, of
# which pip takes most of a minute. It is told where pip is told to look; where it cannot install, pip does.
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
LOCKED := --no-deps --require-hashes --requirement requirements.lock
THIS := --no-deps --no-build-isolation --editable .

# uv leaves it to the first import to compile, which is every import where PYTHONDONTWRITEBYTECODE is set: a quarter of a
# second of each command and test process, for five seconds once. Not these, which are large and which hardly one imports.
UNCOMPILED := /(tests?|pyspark|pip|mypy|mypyc|pygments|setuptools|pkg_resources|rich|hatchling)/|/moto/(?!core|s3/|moto_server)[^/]*/

$(VENV)/.installed: requirements.lock requirements-install.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@settings=$$($(BIN)/python -m pip config list); setting() { printf '%s' "$$settings" | sed -n "s/^[^=]*\.$$1='\(.*\)'$$/\1/p" | head -n 1; }; \
	index=$$(setting index-url); [ -z "$$index" ] || export UV_DEFAULT_INDEX="$$index"; \
	more=$$(setting extra-index-url); [ -z "$$more" ] || export UV_INDEX="$$more"; \
	roots=$$(setting cert); [ -z "$$roots" ] || export SSL_CERT_FILE="$$roots"; \
	export VIRTUAL_ENV=$(CURDIR)/$(VENV); \
	{ $(PIP) install --require-hashes --requirement requirements-install.lock && $(BIN)/uv pip install --quiet $(LOCKED) \
		&& $(BIN)/uv pip install --quiet $(THIS); } \
	|| { echo "uv could not install from here; pip does it now, in a minute or more" >&2; \
		$(PIP) install $(LOCKED) && $(PIP) install $(THIS); }
	$(BIN)/python -m pip check
	@$(BIN)/python -m compileall -q -x '$(UNCOMPILED)' $(VENV)/lib/python3*/site-packages || true
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

# At once: the engine's preparation and the check of types, of one processor each, and the tests. Those that start an
# engine come later and wait for its preparation (tests/conftest.py). Types are told at the end.
test: TIER = HYPOTHESIS_PROFILE=quick
test: TIER_OPTIONS = --quick
test test-all: compile lint
	@mkdir -p build && rm -f build/types.code
	@$(MAKE) --no-print-directory -j3 prepare types run-tests TIER='$(TIER)' TIER_OPTIONS='$(TIER_OPTIONS)'; tests=$$?; \
	echo "types:"; cat build/types.txt; exit $$((tests | $$(cat build/types.code)))

types: $(VENV)/.installed
	@mkdir -p build
	@nice $(BIN)/mypy > build/types.txt 2>&1; echo $$? > build/types.code

# By file, so that what a file's tests share is made once, in the order of tests/conftest.py.
# Python may write what it compiled: plug-ins of pytest, whose assertions it rewrites, are read before tests/conftest.py
# can say so, which takes each process a second.
run-tests: compile
	@PYTHONDONTWRITEBYTECODE= $(TIER) $(BIN)/pytest $(TIER_OPTIONS) -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# What differs between releases of Python: the library, Spark's workers, the sandbox's view of an interpreter.
PYTHONS ?= python3.12 python3.13
pythons:
	@for python in $(PYTHONS); do \
		venv=build/$$(basename $$python); \
		$(MAKE) --no-print-directory PYTHON=$$python VENV=$$venv install || exit 1; \
		$$venv/bin/pytest -m "not spark" tests/unit || exit 1; \
		$$venv/bin/pytest tests/e2e/test_demo.py tests/e2e/test_map_transforms.py tests/e2e/test_python_front.py || exit 1; \
	done

bench: install
	for bench in tests/benchmarks/bench_*.py; do echo "== $$bench"; $(BIN)/python $$bench || exit 1; done

SOAK_S ?= 3600
SOAK_NODES ?= 10

# A thousand honest exchanges over lines that break; then daemons that publish, pull, are cut off and killed. Ends with
# equal heads or with an error.
soak: install
	HONEST_INCREMENTS=1000 $(BIN)/pytest tests/fault/test_honest_exchange.py --timeout=3600
	$(BIN)/python tests/soak/soak.py $(SOAK_S) $(SOAK_NODES)

PROOF_PAIRS ?= 2000
PROOF_SEED ?= 1000

# So many pairs of a query and a history, each against a database of another make, in portions of a hundred: an engine each,
# so that a run that is ended has proved the portions before. The seed that fails is told, and belongs into the tests.
proof: install
	first=$(PROOF_SEED); end=$$(($(PROOF_SEED) + $(PROOF_PAIRS))); failed=0; \
	while [ $$first -lt $$end ]; do \
		left=$$((end - first)); pairs=$$((left < 100 ? left : 100)); \
		echo "== pairs $$first to $$((first + pairs - 1))"; \
		VIEW_SEED=$$first VIEW_EXAMPLES=$$pairs nice -n 15 $(BIN)/pytest tests/property/test_maintained_views.py tests/property/test_large_views.py --timeout=3600 || failed=1; \
		first=$$((first + pairs)); \
	done; exit $$failed

FUZZ_S ?= 120

# What is found lies in build/fuzz; a copy in tests/data/fuzz/TARGET is tried by every test run from then on.
fuzz: install
	$(PIP) install --require-hashes --requirement requirements-fuzz.lock
	$(BIN)/python tests/fuzz/coverage_guided.py all $(FUZZ_S)
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest tests/property --timeout=3600

# All documents as pages in build/site, which can be read from the folder. Links that lead nowhere end it. In an
# environment of its own, so that what is tested is what is locked for it.
docs:
	$(PYTHON) -m venv build/docs-venv
	build/docs-venv/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes \
		--requirement requirements-docs.lock
	rm -rf build/docs && mkdir -p build/docs
	git ls-files -z -- ':(glob)*.md' spec examples | tar -c --null -T - | tar -x -C build/docs
	build/docs-venv/bin/mkdocs build --strict --quiet

lock: install
	$(PIP) install --require-hashes --requirement requirements-install.lock
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --quiet --upgrade --output-file requirements.lock
	$(BIN)/uv pip compile --group fuzz --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --quiet --upgrade --output-file requirements-fuzz.lock
	$(BIN)/uv pip compile --group docs --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --quiet --upgrade --output-file requirements-docs.lock
	$(BIN)/uv pip compile --group install --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --quiet --upgrade --output-file requirements-install.lock

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
