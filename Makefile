# SPDX-License-Identifier: Apache-2.0
# Everything is made in build/. 'make help' lists the targets.
PYTHON ?= python3
ENVIRONMENT = build/venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
RUN_TESTS = $(PYTHON) tools/run_tests.py
# One version for 'make pytest', for example VERSION=3.12; empty: all that are found.
VERSION =
# For each fuzzer of 'make fuzz'.
SECONDS = 600

.PHONY: help demo test bench lint ctest sanitize memcheck pytest matrix targets wheels life fuzz soak
.PHONY: format clean

help:
	@echo 'make demo      fit a model with JAX, compile it, minimise it from C++ and Cython threads'
	@echo 'make test      lint to soak, on Python 3.11 to 3.13; matrix, fuzz and soak are short'
	@echo 'make lint      layer check, formatters, ruff, mypy, cppcheck, clang-tidy'
	@echo 'make ctest     the C++ tests'
	@echo 'make sanitize  the C++ tests under the sanitizers, the extension under AddressSanitizer'
	@echo 'make memcheck  calls on every route under Valgrind'
	@echo 'make pytest    the Python tests; VERSION=3.12 for one interpreter, ARGS="-k name" for pytest'
	@echo 'make matrix    programs of every kind on three versions of JAX with three plugins'
	@echo 'make targets   a third of the programs as libraries for other machines, under emulators'
	@echo 'make wheels    find and load the plugins of JAX for GPUs and TPUs; downloads 700 MB'
	@echo 'make life      end a process a hundred times while threads execute, on each interpreter'
	@echo 'make fuzz      the fuzzers, 10 minutes each; SECONDS=60 for another time'
	@echo 'make soak      ten million calls, thousands of compilations, memory measured'
	@echo 'make format    rewrite the sources as the formatters want them'
	@echo 'make bench     time calls beside other ways to call; ARGS=--quick for a minute'
	@echo 'make clean     remove build/'

demo:
	@tools/bootstrap demo
	@$(PYTHON) tools/package.py demo
	@$(ENVIRONMENT)/bin/python examples/demo/demo.py

test:
	@tools/bootstrap
	@$(RUN_TESTS)

lint ctest sanitize memcheck format:
	@tools/bootstrap
	@$(RUN_TESTS) $@

pytest:
	@tools/bootstrap
	@$(RUN_TESTS) pytest --version '$(VERSION)' -- $(ARGS)

matrix:
	@tools/bootstrap
	@$(PYTHON) tools/matrix.py $(ARGS)

targets:
	@tools/bootstrap
	@$(RUN_TESTS) targets --version '$(VERSION)'

wheels:
	@tools/bootstrap
	@$(RUN_TESTS) wheels --version '$(VERSION)'

life:
	@tools/bootstrap
	@CYXLA_REPETITIONS=100 $(RUN_TESTS) pytest --version '$(VERSION)' -- -k test_process_exit

fuzz:
	@tools/bootstrap
	@$(RUN_TESTS) fuzz --seconds '$(SECONDS)'

soak:
	@tools/bootstrap
	@$(RUN_TESTS) soak --full

bench:
	@tools/bootstrap demo
	@$(PYTHON) tools/package.py demo
	@$(ENVIRONMENT)/bin/python -m pip install --quiet -r benchmarks/requirements.txt
	@$(ENVIRONMENT)/bin/python benchmarks/run.py $(ARGS)

clean:
	rm -rf build
