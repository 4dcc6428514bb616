# README names `make demo` and `make test`; each sets up everything it needs from nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint unit coverage test-slow bench clean

demo: $(STAMP)
	$(BIN)/localparity demo

test: lint unit coverage

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/pytest -n auto -m "not slow"

# Compiled kernels are invisible to coverage, so the same tests run once more with the compiler off.
coverage: $(STAMP)
	NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=few $(BIN)/pytest -q -n auto -m "not slow and not compiled" \
		tests/metrics tests/uncertainty tests/test_validation.py --cov --cov-report=
	$(BIN)/coverage report --show-missing --skip-covered --fail-under=100 \
		--include="src/localparity/metrics/*,src/localparity/uncertainty/*,src/localparity/_validation.py"

test-slow: $(STAMP)
	$(BIN)/pytest -n auto -m slow

bench: $(STAMP)
	$(BIN)/python -m benchmarks

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* dist build
