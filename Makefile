# The two commands of a newcomer are `make demo` and `make test`; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PREFIX ?= /usr/local
# Compiled objects are kept outside the clone, so that a fresh clone builds in a fraction of the time.
HOME ?= /root
export CCACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hotlap-ccache
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
export CCACHE_MAXSIZE ?= 3G
PYTHON = $(shell cat build/python-for-tests 2>/dev/null || echo /usr/bin/python3)
JOBS ?= $(shell nproc)
# tools/setup.sh takes a fraction of a second when nothing is missing.
say = @printf '\n== %s\n' "$(1)"

.PHONY: help demo test sanitize proof test-frameworks install dist check setup release dev clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24
	@echo "  first: make demo (a training job recorded, explained, made faster), make test"

setup:
	$(call say,what is needed)
	@tools/setup.sh

release: setup ## build build/release/hotlap
	$(call say,building build/release/hotlap)
	@cmake --preset release -DHOTLAP_PYTHON=$(PYTHON) >build/release.log || { cat build/release.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target hotlap

dev: setup
	$(call say,building the tests (checks on; warnings are errors))
	@cmake --preset dev -DHOTLAP_PYTHON=$(PYTHON) >build/dev.log || { cat build/dev.log; exit 1; }
	@cmake --build --preset dev -j $(JOBS)

demo: release ## record a PyTorch job, name what holds it back, take the advice, prove the gain
	$(call say,recording a training job)
	@if [ -x examples/demo.sh ]; then PYTHON=$(PYTHON) HOTLAP=$(CURDIR)/build/release/hotlap examples/demo.sh; \
	else echo "hotlap: examples/demo.sh is not there yet; the program is build/release/hotlap"; fi

test: dev ## build and run every test but the long proofs
	$(call say,running the tests)
	@ctest --preset dev -LE 'proof|frameworks' -j $(JOBS) $(CTEST_ARGS)

sanitize: setup ## the fast tests under the address and undefined-behaviour sanitizers
	$(call say,building and running the fast tests under the address sanitizer)
	@tools/check.sh sanitize asan

check: ## format, lints, layers, headers, Python types (tools/check.sh lint and tidy)
	@tools/setup.sh --developer
	@tools/check.sh lint
	@tools/check.sh tidy

test-frameworks: dev ## the hook under current PyTorch, Lightning, Transformers, Accelerate, Keras, JAX (from PyPI)
	@tools/test_frameworks.sh

proof: ## what takes long: kills, fuzzing, sanitizers over everything, a newcomer's machine
	@tools/setup.sh --proof
	@$(MAKE) release dev
	$(call say,long tests)
	@ctest --preset dev -L proof -j 1 --no-tests=ignore $(CTEST_ARGS)
	$(call say,diagnosis of real jobs)
	@$(PYTHON) -B tests/diagnosis/real/prove.py --hotlap build/release/hotlap --table docs/diagnosis.md
	$(call say,200 kills)
	@HOTLAP_KILLS=200 ctest --preset dev -R '^fault\.kill$$' --no-tests=error $(CTEST_ARGS)
	$(call say,sanitizers)
	@tools/check.sh sanitize
	$(call say,fuzzing)
	@tools/check.sh fuzz-smoke 120
	$(call say,start-up time)
	@bench/startup.sh build/release/hotlap
	$(call say,a newcomer's machine)
	@tools/proof_minimal.sh

install: release ## install into PREFIX (/usr/local)
	$(call say,installing into $(PREFIX))
	@cmake --install build/release --prefix "$(PREFIX)" --strip

dist: release ## dist/: a tarball, a Debian package, and a wheel that carries the program
	$(call say,packing)
	@rm -rf build/stage && cmake --install build/release --prefix build/stage --strip >/dev/null
	@$(PYTHON) -B tools/make_dist.py build/stage dist

clean: ## remove what was built
	rm -rf build dist
