# Every target does its own set-up; a second call only does what has changed.

PYTHON ?= python3
VENV ?= .venv
BUILD ?= build/{wheel_tag}
EXTRAS ?= dev

BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/*)
SANITIZE_VENV := .venv-sanitize

# The compiler that is checked is the one that builds: $CXX if given, else the first one found.
ifeq ($(filter default undefined,$(origin CXX)),)
  COMPILER := $(CXX)
else
  COMPILER := $(firstword $(foreach name,c++ g++ clang++,$(shell command -v $(name) 2>/dev/null)))
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint types bench docs sanitize clean

help: ## print this list
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'
	@echo "Variables: PYTHON=$(PYTHON)  VENV=$(VENV)  CXX=$(COMPILER)"

demo: $(VENV)/.installed ## build, cluster sample data, write a report
	@$(BIN)/python examples/demo.py

test: $(VENV)/.installed ## build and run the tests
	@$(BIN)/python -m pytest

lint: $(VENV)/.installed ## check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.installed ## check the type annotations
	@$(BIN)/mypy

bench: $(VENV)/.installed-bench ## run the benchmarks
	@$(BIN)/python -m benchmarks

docs: $(VENV)/.installed ## run every example in the docstrings, docs/ and the README
	@$(BIN)/python -m pytest --quiet --doctest-modules --doctest-glob='*.md' src/mercer docs README.md

sanitize: $(SANITIZE_VENV)/.installed ## test the core under the address and undefined-behaviour sanitizers
	@for name in $(SANITIZERS); do test -e "$$name" || { echo $(NO_SANITIZERS) >&2; exit 1; }; done
	@LD_PRELOAD="$(SANITIZERS)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
	  $(SANITIZE_VENV)/bin/python -m pytest --capture=no tests/core

clean: ## remove everything the other targets made
	@rm -rf .venv .venv-sanitize build dist site demo .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# libstdc++ comes along so that the sanitizer's runtime sees exceptions thrown by an extension module.
SANITIZERS = $(foreach name,asan ubsan stdc++,$(shell $(COMPILER) -print-file-name=lib$(name).so))

# ---- set-up ---------------------------------------------------------------------------------------------

NO_PYTHON = "Mercer needs Python 3.11 or newer, and '$(PYTHON)' is not: install one, or name one with 'make PYTHON=...', and run make again."
NO_VENV = "Mercer needs Python's venv module with pip: install it, for example with 'apt install python3-venv', and run make again."
NO_COMPILER = "Mercer needs a C++17 compiler (g++ or clang++): install one, for example with 'apt install g++', and run make again."
NO_HEADERS = "Mercer needs Python's C headers (Python.h): install them, for example with 'apt install python3-dev', and run make again."
NO_SANITIZERS = "'make sanitize' needs g++ with its sanitizer libraries (libasan, libubsan): install them, or name one with 'make sanitize CXX=g++'."

# $(call require,command,message): the message is all that is printed when the command fails.
require = $(1) >/dev/null 2>&1 || { echo $(2) >&2; exit 1; }

# $(call install,venv,extras,build folder,more settings of the build)
define install
	@$(call require,$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3$(,) 11))',$(NO_PYTHON))
	@$(call require,$(PYTHON) -c 'import ensurepip; import venv',$(NO_VENV))
	@$(call require,printf 'int main() { if constexpr (true) return 0; }' | $(COMPILER) -std=c++17 -x c++ -fsyntax-only -,$(NO_COMPILER))
	@$(call require,$(PYTHON) -c 'import pathlib; import sysconfig; (pathlib.Path(sysconfig.get_path("include")) / "Python.h").stat()',$(NO_HEADERS))
	@echo "Building Mercer in $(1) (the first time takes a few minutes) ..."
	@test -x $(1)/bin/pip || $(PYTHON) -m venv $(1)
	@CXX="$(COMPILER)" $(1)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(2)]' \
	  '--config-settings=build-dir=$(3)' $(4)
	@touch $@
endef
, := ,

$(VENV)/.installed: $(SOURCES)
	$(call install,$(VENV),$(EXTRAS),$(BUILD))

$(VENV)/.installed-bench: $(VENV)/.installed
	$(call install,$(VENV),$(EXTRAS)$(,)bench,$(BUILD))

$(SANITIZE_VENV)/.installed: $(SOURCES)
	$(call install,$(SANITIZE_VENV),dev,build/sanitize,--config-settings=cmake.define.MERCER_SANITIZE=ON)
