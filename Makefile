# README names `make demo` and `make test`; each sets up everything it needs from nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COVERAGE_FLOOR := 95
FUZZ_SECONDS ?= 30
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SPHINX := OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -b html
# A file's tests run in one process, so that what they share, such as Spark, is started once.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadfile
CORE := counts metrics uncertainty _validation
CHECKED := src tests benchmarks docs examples

# Every process of a test would compile the package anew where the environment keeps Python from writing what it compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint unit coverage coverage-floor instructions pages docs dist nightly test-slow mutants test-versions faults campaign fuzz bench \
	bench-scale promises results clean

demo: $(VENV)/.runtime
	@echo "An audit of 20,000 invented people, then of two models trained on others: half a minute on two quiet cores."
	$(BIN)/localparity demo

# Stops at the first stage that fails; ends with how long each stage took. Linters and pages use a core each.
test: $(VENV)/.docs
	@echo "Linters and pages, then all quick tests: some eight minutes on two quiet cores."
	@took=; for stage in "lint pages" unit; do \
		start=$$(date +%s); \
		$(MAKE) --no-print-directory -j2 $$stage || exit 1; \
		took="$$took$$(printf '%6d s  %s' $$(($$(date +%s) - start)) "$$stage")\n"; \
	done; printf "$$took"

lint: $(VENV)/.development
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/codespell $(CHECKED) *.md Makefile pyproject.toml .github .ci

unit: $(VENV)/.development
	$(PYTEST) -m "not slow" --durations=20

# Every branch of the core. Compiled kernels are invisible to coverage, so its tests run once more with the compiler off.
coverage: $(VENV)/.development
	COVERAGE_FILE=.coverage.core NUMBA_DISABLE_JIT=1 $(PYTEST) \
		-m "not slow and not compiled" $(foreach room,$(CORE),tests/$(room) src/localparity/$(room)) --cov --cov-report=
	COVERAGE_FILE=.coverage.core $(BIN)/coverage report --show-missing --skip-covered --fail-under=100 \
		--include="src/localparity/counts/*,src/localparity/metrics/*,src/localparity/uncertainty/*,src/localparity/_validation/*"

# The floor of the whole package, after every branch of the core.
coverage-floor: coverage
	$(PYTEST) -m "not slow" --cov --cov-report=
	$(BIN)/coverage combine --quiet --append .coverage.core
	$(BIN)/coverage report --skip-covered --omit="*/_kernels.py" --fail-under=$(COVERAGE_FLOOR)

instructions: $(VENV)/.development
	$(BIN)/python -m benchmarks.instructions

# The documentation with warnings as errors, without running the gallery.
pages: $(VENV)/.docs
	rm -rf docs/_build/pages docs/gallery docs/reference/generated
	$(SPHINX) -t pages_only docs docs/_build/pages

# From nothing, so that a page or a figure that nothing makes any more is missed.
docs: $(VENV)/.docs
	rm -rf docs/_build docs/gallery docs/reference/generated
	$(SPHINX) docs docs/_build/html
	@echo "the documentation is in docs/_build/html/index.html"

# Builds the wheel and the sdist, installs each into an environment of its own and audits a file there: the wheel on
# every Python that pyproject.toml names and this machine has. The list of what a user installs with them (SBOM,
# CycloneDX) is of an environment whose every file had its checksum. An archive has the results of the commit.
dist: $(VENV)/.release
	rm -rf dist .venvs/dist
	$(BIN)/python -m hatchling build -d dist
	git archive --output dist/localparity-results.zip HEAD results
	$(PYTHON) -m venv .venvs/dist
	.venvs/dist/bin/python -m pip install --quiet --require-hashes -r requirements.txt
	.venvs/dist/bin/python -m pip install --quiet --no-deps dist/*.whl
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --mc-type library --output-reproducible \
		-o dist/localparity.cdx.json .venvs/dist/bin/python
	$(BIN)/python tests/support/versions.py --pythons
	LOCALPARITY_DIST=dist $(BIN)/pytest -v -m slow tests/install

# What the package itself needs, with checksums: pip install --require-hashes -r requirements.txt
requirements.txt: pyproject.toml constraints.txt | $(VENV)/.release
	$(BIN)/uv pip compile --quiet pyproject.toml --constraint constraints.txt --generate-hashes --universal --no-annotate \
		--custom-compile-command "make requirements.txt" --python-version 3.11.7 --output-file $@

nightly: test-slow coverage-floor test-versions docs dist fuzz instructions
	$(MAKE) mutants MUTANTS="--sample 150"

# The simulations of the statistical guarantees, and every property with many more examples than in `make test`.
test-slow: $(VENV)/.development
	HYPOTHESIS_PROFILE=many $(BIN)/pytest -q -n auto -m "slow or hypothesis" --durations=20

# Takes long; goes on where it was stopped, and tries again only what has changed or survived.
# A few minutes' worth, the same mutants each time: make mutants MUTANTS="--sample 150"
mutants: $(VENV)/.development
	PYTHONPATH=tests:tests/support $(BIN)/python -m mutation --jobs 2 $(MUTANTS)

test-versions: $(VENV)/.development
	$(BIN)/python tests/support/versions.py

# Every command that writes, with every change that it makes to files failing in every way; results/faults.md.
faults: $(VENV)/.development
	PYTHONPATH=tests:tests/support $(BIN)/python -m faults --write

# Ten thousand generated bad files and argument lists, and files that lie with fitting checksums; results/campaign.md.
campaign: $(VENV)/.development
	PYTHONPATH=tests:tests/support $(BIN)/python -m campaign --write
	PYTHONPATH=tests:tests/support $(BIN)/python -m campaign --lies 3000 --write

fuzz: $(VENV)/.development
	OMP_NUM_THREADS=1 LOCALPARITY_FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/pytest -n auto -m "not slow" tests/fuzz

# The curves first: the others end with an error where a bar is not met. Each waits until the machine is quiet.
bench: $(VENV)/.development
	$(BIN)/python -m benchmarks.curves
	$(BIN)/python -m benchmarks.cold_start
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.speed

# How often every promise fails in a thousand draws from a known truth; results/promises.md, intervals.md, impact.md
# and selection.md.
promises: $(VENV)/.development
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.intervals
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.impact
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.selection
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.promises

bench-scale: $(VENV)/.development
	$(BIN)/python -m benchmarks.duckdb_scale
	$(BIN)/python -m benchmarks.spark_scale

# What can be computed from the runs under results/ is made anew; the rest is listed with its age and its command.
results: $(VENV)/.development
	$(BIN)/python -m benchmarks.results

$(VENV)/.runtime: $(BIN)/pip pyproject.toml constraints.txt
	$(PIP) --editable ".[report,train]"
	touch $@

$(VENV)/.development: $(VENV)/dev.txt
	$(PIP) --editable ".[all]" --requirement $<
	touch $@ $(VENV)/.runtime

$(VENV)/.docs: $(VENV)/docs.txt $(VENV)/.development
	$(PIP) --requirement $<
	touch $@

$(VENV)/.release: $(VENV)/release.txt $(VENV)/.development
	$(PIP) --requirement $<
	touch $@

# A dependency group of pyproject.toml as a file: the pip that comes with Python 3.11 does not know `--group`.
$(VENV)/%.txt: $(BIN)/pip pyproject.toml constraints.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["$*"], sep="\n")' > $@

$(BIN)/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@echo "Setting up $(VENV) with constraints.txt's versions. The first time this takes minutes, most of it downloads."
	$(PYTHON) -m venv --clear $(VENV)

clean:
	rm -rf docs/_build docs/gallery docs/reference/generated
	rm -rf $(VENV) .venvs .trials .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* dist build
