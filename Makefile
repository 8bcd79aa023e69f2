# SPDX-License-Identifier: MIT
# The verbs of the project. Each installs what it needs, then builds, then does its work.

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
# Regular expressions: which tests to run (TESTS=^src/sched), and which not (SKIP=@ leaves the
# variants out).
TESTS ?=
SKIP ?=
# As they were written, whatever make sees in a dollar sign.
override TESTS := $(value TESTS)
override SKIP := $(value SKIP)
# Changes with every package that is installed or removed. The configuration looks for packages.
PACKAGES = /var/lib/dpkg/status
chosen = $(if $(TESTS),-R "$$TESTS") $(if $(SKIP),-E "$$SKIP")
export TESTS SKIP
# What `make test` leaves to `make test-all`: variants (NAME@c is a test of its own), models, what
# installs or packs, what compiles headers and programs of others, what takes long or needs others'
# servers and libraries.
EXTRA = @([^c]|c.)|_model$$|/headers|^bench/|^tests/(abi|bench|builds|clients|consumer|many_cpus|packaging)|\
^tests/(python|stress|valgrind|windows/programs)

.DEFAULT_GOAL := help
.PHONY: help build library docs demo peers figures test test-all builds bench debug asan tsan ubsan \
	faults fuzz mpi kernel-test install install-bench install-debug deb fmt tidy clean
.NOTPARALLEL:

help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## /\1 /p' $(MAKEFILE_LIST) | \
		while read -r verb text; do printf '  make %-13s %s\n' "$$verb" "$$text"; done

# $(call configure,PRESET). Only when it has to: ninja sees changed CMake files and new sources by
# itself, but not a compiler or a library that was installed since.
define configure
@tools/setup $(filter-out release debug,$1)
@if ! [ build/$1/build.ninja -nt CMakePresets.json ] || \
		[ $(PACKAGES) -nt build/$1/build.ninja ]; then \
	cmake --preset $1 >/dev/null && touch build/$1/build.ninja; fi
endef

# $(call compile,PRESET[,TARGETS])
define compile
$(configure)
@[ -t 1 ] || quiet='-- --quiet'; cmake --build --preset $1 -j $(JOBS) $(if $2,--target $2) $$quiet
endef

# $(call check,PRESET): builds what the chosen tests need, and runs them. First build.ninja, because
# with it the configuration writes tests.targets.
define check
$(configure)
@[ -t 1 ] || quiet=--quiet; targets=all; \
if [ -n "$$TESTS$$SKIP" ]; then \
	ninja -C build/$1 --quiet build.ninja && \
	targets=$$(cmake -Dmap=build/$1/tests.targets "-Dtests=$$TESTS" "-Dskip=$$SKIP" \
		-P cmake/chosen_targets.cmake) || exit 1; \
	[ -n "$$targets" ] || { echo "No test has such a name; build/$1/tests.targets lists them." >&2; exit 1; }; \
fi; \
targets=$${targets#:}; [ -z "$${targets# }" ] || ninja -C build/$1 -j $(JOBS) $$quiet $$targets
@ctest --preset $1 $(chosen)
endef

build: ## build/release: the library, the command build/release/ums, the tests
	$(call compile,release)

# What README's first program needs, without the command, the tests and what those need.
library: ## build the library alone and install it under PREFIX: a minute or two
	$(call compile,library)
	@DESTDIR='$(DESTDIR)' cmake --install build/library --prefix '$(PREFIX)' >/dev/null
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
	@echo 'installed under $(DESTDIR)$(PREFIX)'

docs: ## the documentation as a site with a search; the page is build/docs/index.html
	@tools/setup docs
	@tools/docs/build

# Other projects' servers and libraries, and the second compiler, for the benchmarks and tests that
# need them. Both do without those that are missing, and ctest lists the tests that it skipped.
peers:
	@tools/setup bench clients clang page || echo 'Going on without what is missing.' >&2

demo: ## the main comparison with the peers as a page, in five minutes with the build
	$(call compile,release,ums_bench_alone bench-demo)
	@mkdir -p build/demo
	@build/release/ums-bench demo --html build/demo/report.html
	@echo "The page is file://$(CURDIR)/build/demo/report.html"

ifeq ($(TESTS),)
test: override SKIP := $(subst $() ,,$(EXTRA))$(if $(SKIP),|$(SKIP))
endif
test: ## the tests of the release build, each behaviour once; or TESTS=^src/sched
	$(call check,release)

test-all: peers ## every test of the release build
	$(call check,release)

debug: ## the tests of the debug build: no optimisation, more checks
	$(call check,debug)

builds: build ## programs and projects as users build them: compilers, flags, libraries
	@tools/setup builds
	@tests/builds/check.py build/release
	@tests/builds/check.py build/release subprojects

bench: peers build ## run every benchmark; the page is build/report.html
	@build/release/ums bench all --html build/report.html
	@echo "The page is file://$(CURDIR)/build/report.html"

figures: PAGE = README.md
figures: peers build ## every figure of README made again, and compared: ten minutes; or PAGE=docs/results.md
	@tools/figures build/release/ums $(PAGE)

asan: ## the tests under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer
	$(call check,asan)

tsan: ## the tests under ThreadSanitizer
	$(call check,tsan)

ubsan: ## the tests under UndefinedBehaviorSanitizer alone
	$(call check,ubsan)

faults: ## each system call of the runtime fails, with each error: thousands of runs, some minutes
	$(call compile,release,src-runtime-faults_test)
	@UMS_TEST_FAULTS=2 build/release/src/runtime/faults_test --gtest_brief=1

mpi: override TESTS := ^tests/mpi/
mpi: ## task-aware MPI: its libraries and tests, with OpenMPI and MPICH
	@tools/setup mpi
	$(call check,release)

kernel-test: ## the kernel module, built for Debian's kernels and tested in QEMU
	@tests/kernel/check.py; status=$$?; [ $$status = 77 ] || exit $$status

fuzz: ## the servers' protocols, and what the command reads, under libFuzzer, FUZZ_SECONDS (60) each
	$(call compile,fuzz)
	@for name in http memcached image core trace unwind; do \
		case $$name in \
			http | memcached) limits='-timeout=10 -max_len=4096' ;; \
			*) limits='-timeout=1 -max_len=1048576 -rss_limit_mb=256 -malloc_limit_mb=256' ;; esac; \
		echo "== fuzz $$name, $(FUZZ_SECONDS) s"; mkdir -p build/fuzz/corpus/$$name; \
		ASAN_OPTIONS=quarantine_size_mb=8 build/fuzz/fuzz/$$name $$limits \
			-max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_final_stats=1 \
			-artifact_prefix=build/fuzz/$$name- \
			build/fuzz/corpus/$$name $$(ls -d tests/fuzz/$$name 2>/dev/null) || exit 1; done

# $(call put,COMPONENT): stripped.
put = @DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)' --component $1 --strip \
	>/dev/null

install: ## install library, command and manual pages under PREFIX (/usr/local), staged in DESTDIR
	$(call compile,release,ums_static ums_shared ums_compat ums_compat_shared ums_command ums_man)
	$(call put,libums)
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
	@echo 'installed under $(DESTDIR)$(PREFIX)'

install-bench: install build ## the same, and the programs that `ums bench` runs
	$(call put,bench)

install-debug: install ## the same, and the debug information of library and command
	$(call put,debug)

deb: ## the Debian packages of the last commit, in build/deb, with lintian
	@packaging/build-deb build/deb

fmt: ## format the C++ files that git knows; CHECK=1 only says what it would change
	@tools/setup fmt
	@tools/format $(if $(CHECK),--check)

tidy: build ## clang-tidy over the library, the command and the examples
	@tools/setup tidy
	@git ls-files -z -- 'src/*.cpp' 'compat/*.cpp' 'tools/ums/*.cpp' 'examples/*.cpp' ':!*_test.cpp' | \
		xargs -0r -n1 -P$(JOBS) clang-tidy-19 --quiet -p build/release --extra-arg=-Wno-unknown-warning-option

clean: ## remove build/
	@rm -rf build
