# make demo | test | bench | lint | format | clean. See CONTRIBUTING.md.
#
# Everything lives in .venv and build/. A file build/stamp/X says that step X is up to date.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= $(shell for p in python3 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && echo $$p && exit; done; echo python3)
TORCH ?= -r requirements/torch.txt
JOBS ?= 2
PYTEST_ARGS ?=

VENV := $(CURDIR)/.venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
STAMP := build/stamp
# The tools of the venv first, so that no cmake or ninja of the system is mixed in.
export PATH := $(VENV)/bin:$(PATH)
unexport PYTHONPATH PYTHONHOME

SOURCES := $(shell find core adapter bindings include python cmake build_backend CMakeLists.txt pyproject.toml -type f \
  -not -name '*.pyc' -not -name '*_test.cpp')
CPP_FILES = $(shell find core adapter bindings include bench tests examples -name '*.h' -o -name '*.cpp' -o -name '*.c')
PY_PATHS = python build_backend scripts tests bench examples

.PHONY: demo test core-test sanitizer-test adapter-test python-test bench lint format clean install dev

# --- Set-up -----------------------------------------------------------------------------------------------------------

$(STAMP)/venv: requirements/torch.txt requirements/build.txt
	bash scripts/system_packages.sh $(PYTHON) build
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -q $(TORCH)
	$(PIP) install -q -r requirements/build.txt
	mkdir -p $(@D) && touch $@

$(STAMP)/dev: $(STAMP)/venv requirements/dev.txt
	bash scripts/system_packages.sh $(PYTHON) test
	$(PIP) install -q -r requirements/dev.txt
	touch $@

# A regular install, not an editable one: the tests see what users get. The build folder is kept, so only what changed is
# compiled. Without isolation: nothing is downloaded for it.
$(STAMP)/install: $(STAMP)/venv $(SOURCES)
	$(PIP) install -q --no-build-isolation --no-deps --force-reinstall \
	  --config-settings=build-dir=build/wheel \
	  --config-settings=cmake.define.SHERLORCH_WERROR=$(if $(WERROR),ON,OFF) \
	  --config-settings=cmake.define.SHERLORCH_TESTS=$(if $(wildcard /usr/include/gtest/gtest.h),ON,OFF) .
	touch $@

install: $(STAMP)/install
dev: $(STAMP)/dev $(STAMP)/install

# --- What to run ------------------------------------------------------------------------------------------------------

demo: $(STAMP)/install
	$(VENV)/bin/python examples/find_nan_in_transformer.py

# The order is the cheapest first, and pytest's closing line last.
test: export WERROR := 1
test: $(STAMP)/dev core-test lint sanitizer-test adapter-test python-test

core-test: $(STAMP)/dev
	cmake --workflow --preset core

sanitizer-test: $(STAMP)/dev
	cmake --workflow --preset core-asan
	cmake --workflow --preset core-tsan

adapter-test: $(STAMP)/dev $(STAMP)/install
	cmake --build build/wheel --target adapter_tests -j $(JOBS)
	ctest --test-dir build/wheel --output-on-failure -j $(JOBS)

python-test: $(STAMP)/dev $(STAMP)/install
	cmake --preset core >/dev/null && cmake --build --preset core --target make_pages
	cmake --build build/wheel --target count_probe -j $(JOBS)
	SHERLORCH_MAKE_PAGES=$(CURDIR)/build/core/tests/page/make_pages \
	SHERLORCH_COUNT_PROBE=$(CURDIR)/build/wheel/tests/counts/count_probe \
	  $(VENV)/bin/python -m pytest $(PYTEST_ARGS)

# BENCH_QUICK=1: few rounds and small sizes, into build/bench/quick, to see that it runs. BENCH_README=1: the table into
# README.md, too.
export BENCH_QUICK
BENCH_OUT := $(if $(BENCH_QUICK),build/bench/quick,bench/results)
bench: $(STAMP)/dev $(STAMP)/install
	bash scripts/system_packages.sh $(PYTHON) bench
	$(PIP) install -q -r requirements/bench.txt
	cmake --preset core-bench && cmake --build --preset core-bench
	mkdir -p $(BENCH_OUT)
	build/core-bench/bench/core/sherlorch_core_bench \
	  --benchmark_filter='^(read|scan|census_1%_bad)(/(float16|bfloat16|float32|float64))?/[0-9]+$$' \
	  --benchmark_min_time=$(if $(BENCH_QUICK),0.01 --benchmark_repetitions=2,0.05 --benchmark_repetitions=9) \
	  --benchmark_report_aggregates_only=true --benchmark_enable_random_interleaving=true \
	  --benchmark_out=$(BENCH_OUT)/core.json --benchmark_out_format=json
	for script in bench/python/bench_*.py; do $(VENV)/bin/python $$script --out $(BENCH_OUT); done
	$(VENV)/bin/python bench/python/report.py --results $(BENCH_OUT) $(if $(BENCH_README),--readme)

lint: $(STAMP)/dev
	$(VENV)/bin/python scripts/check_layers.py
	clang-format --dry-run --Werror $(CPP_FILES)
	cmake --preset core >/dev/null && cmake --build --preset core --target generated_sources >/dev/null
	$(VENV)/bin/python scripts/tidy.py $(VENV)/bin/clang-tidy build/core
	ruff format --check $(PY_PATHS)
	ruff check $(PY_PATHS)
	mypy

format: $(STAMP)/dev
	clang-format -i $(CPP_FILES)
	ruff format $(PY_PATHS)
	ruff check --fix $(PY_PATHS)

clean:
	rm -rf build dist .venv .mypy_cache .ruff_cache .pytest_cache
