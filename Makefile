# Tidegate: build, test, measure, install. `make help` lists what can be asked for.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
PYTHON ?= python3
CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TARGET_DIR
# What lets the compiler do a changed crate again in seconds costs two fifths of the time of the first one. So it is left out
# where nothing has been compiled with it; in the folder of whoever has called cargo directly, all goes on as there.
ifeq ($(wildcard $(CARGO_TARGET_DIR)/debug/incremental/*),)
CARGO_INCREMENTAL ?= 0
export CARGO_INCREMENTAL
endif

LIBRARY := build/lib/libtidegate-fi.so
PROGRAM := build/bin/tidegate
RELEASE := $(CARGO_TARGET_DIR)/release
PYTEST = .mpi/tests/bin/python -m pytest
MAN := $(wildcard docs/man/*.1 docs/man/*.3 docs/man/*.7)
# The library tidegate_bulk: sources, since each MPI needs its own. MPICC is the compiler wrapper of one.
MPICC ?= mpicc
BULK := tidegate_bulk.c exchange.c receiving.c
BULK_SOURCES := $(addprefix bulk/,$(BULK) exchange.h exchange_parts.h tidegate_bulk.h tidegate_decisions.h)

# What administrators use with `tidegate export`.
MONITORING := $(addprefix packaging/monitoring/,grafana-dashboard.json prometheus-rules.yml tidegate-export.service)

.PHONY: build papers papers-test bulk mpi optional demo book bench test test-full quick check shape unit loom miri repeat provider command system install install-files install-documents install-licences uninstall dist dist-check emulated clean help
.DEFAULT_GOAL := build

# Compiled before a commit, sources say "-dirty" until they change (crates/ofi/commit.rs); here they are compiled once more instead.
build: ## build the provider and the command (the default): build/lib/libtidegate-fi.so, build/bin/tidegate
	@if $(PROGRAM) --version 2>/dev/null | grep -q -e -dirty && test -z "$$(git status --porcelain -- Cargo.toml Cargo.lock crates 2>&1)"; then \
		touch crates/ofi/commit.rs; fi
	$(CARGO) build --release --locked
	@mkdir -p build/lib build/bin
	@cmp -s $(RELEASE)/libtidegate_fi.so $(LIBRARY) || install -m 755 $(RELEASE)/libtidegate_fi.so $(LIBRARY)
	@cmp -s $(RELEASE)/tidegate $(PROGRAM) || install -m 755 $(RELEASE)/tidegate $(PROGRAM)

papers: ## build/bin/tidegate-paper, which reproduces figures of papers: `tidegate paper` starts it
	$(CARGO) build --release --locked -p tidegate-papers
	@mkdir -p build/bin
	@cmp -s $(RELEASE)/tidegate-paper build/bin/tidegate-paper || install -m 755 $(RELEASE)/tidegate-paper build/bin/tidegate-paper

# One command, and no make below it: `make -n` and `make -i` would get a stamp for tests that were not run, or that failed.
papers-test: command ## tests of papers/, and a few figures, where something has changed on which they depend
	@$(PYTHON) scripts/setup.py tests
	@TESTED_PRODUCT=$(CURDIR)/$(PRODUCT) $(STAMP) papers -- sh -ec '$(CARGO) clippy -p tidegate-papers --all-targets --locked -- -D warnings; \
		$(CARGO) test --locked -p tidegate-papers; $(PYTEST) tests -m papers'

bulk: build ## build/lib/libtidegate_bulk.a, the library of tidegate_bulk(3), for the MPI whose wrapper is MPICC (default mpicc)
	@mkdir -p build/bulk
	for file in $(BULK:.c=); do $(MPICC) -O2 -std=gnu11 -fPIC -c bulk/$$file.c -o build/bulk/$$file.o || exit 1; done
	$(AR) rcs build/lib/libtidegate_bulk.a $(addprefix build/bulk/,$(BULK:.c=.o))

mpi: ## install MPICH, Open MPI and Intel MPI into .mpi/ (demo, test and bench do it by themselves)
	@$(PYTHON) scripts/setup.py mpi

optional: ## as root: install the system's libfabric and Open MPI, Chromium and promtool too, which the tests use where they find them
	@$(PYTHON) scripts/setup.py optional

demo: ## install what is missing, build, compare all eight schemes on real programs, flood ranks with little memory, a job over two hosts: under 5 minutes
	@$(PYTHON) demo/demo.py

book: ## pages of docs/ with a search of them, in build/book; installs mdBook into build/tools unless it is there
	@CARGO="$(CARGO)" $(PYTHON) scripts/book.py

bench: mpi build ## compare with libfabric's shm and tcp and the MPIs' own shared memory (BENCH=--quick: shorter)
	@$(PYTHON) benches/bench.py $(BENCH)

# What the tests of whole systems try: the provider as it is released, the command as the tests of the crates have it.
PRODUCT := build/test
# Parts with a stamp (tests/stamps/) run when something has changed on which they depend; STAMPS=--always runs them all.
STAMPS ?=
STAMP := $(PYTHON) scripts/stamp.py run $(STAMPS)

# The tests of whole systems and those of `ofi` mostly wait: they begin as soon as there is something to try, and clippy, the
# documentation and the other tests are compiled beside them.
test: ## everything that a change needs, before each merge: 10 minutes on 2 cores from a fresh clone, 3 more with the papers' part
	@$(MAKE) --no-print-directory -j3 beside-system beside-unit system
	@echo "all tests have passed; parts that were left out, if any, are named above (make test-full runs all)"

.PHONY: beside-system beside-unit waiting
beside-system: waiting
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory loom
	@$(MAKE) --no-print-directory miri
	@$(MAKE) --no-print-directory papers-test

beside-unit: waiting
	@$(MAKE) --no-print-directory check

# One cargo at a time builds in a folder: clippy would come before the tests that begin first (EARLY in scripts/unit.py).
waiting: command
	@$(CARGO) test -p tidegate-ofi --test it --no-run --locked

quick: ## what to run before each commit, without root: tests of the crates that have changed, and some jobs under MPICH; 2 minutes
	@CARGO="$(CARGO)" $(PYTHON) scripts/quick.py

check: shape ## format and the shape; clippy and documentation without warnings, where a source has changed
	$(CARGO) fmt --all --check
	@$(STAMP) lint -- sh -ec '$(CARGO) clippy --all-targets --locked -- -D warnings; \
		RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --locked'

shape: ## circles between files, long files, long functions, comment lines over 120 columns
	@$(PYTHON) scripts/shape.py

unit: ## tests of the crates (as root on Debian it installs libfabric-dev, which some of them need)
	@$(PYTHON) scripts/setup.py unit
	@CARGO="$(CARGO)" $(PYTHON) scripts/unit.py $(STAMPS)

loom: ## every interleaving of the mailbox's atomics, where they have changed
	@$(STAMP) loom -- env CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/loom RUSTFLAGS="--cfg loom" $(CARGO) test -p tidegate-link --lib --locked loom

# Miri is a part of nightly toolchains only, so it is used where one is there.
miri: ## undefined behaviour in the mailbox, where it has changed and miri is installed
	@for miri in "$(CARGO) miri" "$(CARGO) +nightly miri"; do \
		if $$miri --version >/dev/null 2>&1; then \
			exec $(STAMP) miri -- env CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/miri $$miri test -p tidegate-link --lib --locked mailbox; fi; \
	done; echo "miri is not installed, its tests are left out (rustup +nightly component add miri)"

repeat: ## run the tests of the crates many times beside a busy loop: hours (REPEAT="--often 50 --only run:: cli/it": fewer times, some tests)
	@CARGO="$(CARGO)" $(PYTHON) scripts/repeat.py $(REPEAT)

provider: ## the provider alone, as it is released
	$(CARGO) build --release --locked -p tidegate-ofi
	@mkdir -p $(PRODUCT)/lib
	@cmp -s $(RELEASE)/libtidegate_fi.so $(PRODUCT)/lib/libtidegate-fi.so || install -m 755 $(RELEASE)/libtidegate_fi.so $(PRODUCT)/lib/libtidegate-fi.so

# All of the product, so that the tests of the crates find it compiled. Some tests are built with it, since what they need has
# other features of what others wrote, with which the command would be compiled once more.
command:
	$(CARGO) build --locked -p tidegate-cli -p tidegate-ofi --lib --bins --test it
	@mkdir -p $(PRODUCT)/bin
	@cmp -s $(CARGO_TARGET_DIR)/debug/tidegate $(PRODUCT)/bin/tidegate || install -m 755 $(CARGO_TARGET_DIR)/debug/tidegate $(PRODUCT)/bin/tidegate

system: provider command ## whole-system tests: real MPI programs over the provider (PYTEST_OPTIONS="-k pressure": some of them)
	@$(PYTHON) scripts/setup.py tests
	@TESTED_PRODUCT=$(CURDIR)/$(PRODUCT) $(PYTEST) tests -m "not papers" -n 3 --dist worksteal $(PYTEST_OPTIONS)

test-full: build ## all parts with stamps, the whole matrix of suites, ranks and schemes, larger worlds of flow control; the table is build/test-full.md
	@$(MAKE) --no-print-directory STAMPS=--always unit loom miri papers-test
	TIDEGATE_EXPLORE=all $(CARGO) test -p tidegate-flow --locked
	TIDEGATE_EXPLORE=all $(CARGO) test -p tidegate-ofi --test it --locked programs::
	@$(PYTHON) scripts/setup.py tests
	@$(PYTEST) tests --full --table build/test-full.md $(PYTEST_OPTIONS)

install: build ## install library, command, module file, completions, manual pages and the book under PREFIX (default /usr/local)
	@$(MAKE) --no-print-directory install-files install-documents
	@echo "installed; tidegate run mpiexec -n 4 ./program runs a program over it. For jobs without \`tidegate run\`, either of:"
	@echo "  module use $(PREFIX)/share/modulefiles && module load tidegate"
	@echo '  eval "$$($(PREFIX)/bin/tidegate env)"'

# Where shells look for completions, below PREFIX; the completions of a program for another machine are left out.
COMPLETIONS := bash:share/bash-completion/completions/tidegate zsh:share/zsh/site-functions/_tidegate fish:share/fish/vendor_completions.d/tidegate.fish
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
MODULEFILE := share/modulefiles/tidegate/$(VERSION)

# In quotes, since a name of a folder may have spaces; and as the other side of a sed expression has it.
PLACE = '$(DESTDIR)$(PREFIX)'
IN_SED = $(subst |,\|,$(subst &,\&,$(subst \,\\,$(PREFIX))))

# The module file and the service name the prefix, so a relative one would lead nowhere. Packages that lie anywhere have an
# empty one; docs/monitor.md says how to name theirs to the service.
.PHONY: check-prefix
check-prefix:
	@case '$(PREFIX)' in "") ;; *"'"*) echo "PREFIX has a quote in it" >&2; exit 2 ;; /*) ;; *) echo "PREFIX has to begin with /: $(PREFIX)" >&2; exit 2 ;; esac

# What install does once everything is built. Packages are laid out by it, from their own LIBRARY and PROGRAM.
install-files: check-prefix
	install -D -m 755 $(LIBRARY) $(PLACE)/lib/tidegate/libtidegate-fi.so
	install -D -m 755 $(PROGRAM) $(PLACE)/bin/tidegate
	install -D -m 644 bulk/tidegate_bulk.h $(PLACE)/include/tidegate_bulk.h
	install -D -m 644 -t $(PLACE)/share/tidegate/bulk $(BULK_SOURCES)
	install -D -m 644 -t $(PLACE)/share/tidegate/examples examples/random_traffic.c tests/programs/holdup.c
	install -D -m 644 -t $(PLACE)/share/tidegate/monitoring $(MONITORING)
	$(if $(PREFIX),sed -i 's|/usr/local/|$(IN_SED)/|' $(PLACE)/share/tidegate/monitoring/tidegate-export.service)
	@for page in $(MAN); do \
		install -D -m 644 $$page $(PLACE)/share/man/man$${page##*.}/$$(basename $$page) || exit 1; \
	done
	@install -D -m 644 packaging/modulefile.in $(PLACE)/$(MODULEFILE)
	@sed -i 's|@VERSION@|$(VERSION)|; s|@PREFIX@|$(IN_SED)|' $(PLACE)/$(MODULEFILE)
	@umask 022; if $(PROGRAM) --version >/dev/null 2>&1; then for pair in $(COMPLETIONS); do \
		file=$(PLACE)/$${pair#*:}; mkdir -p "$$(dirname "$$file")" && $(PROGRAM) completions $${pair%%:*} >"$$file" && chmod 644 "$$file" || exit 1; \
	done; fi

# Packages have these in places of their own.
install-documents: check-prefix
	install -D -m 644 -t $(PLACE)/share/doc/tidegate LICENSE-APACHE LICENSE-MIT
	@umask 022; PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=scripts $(PYTHON) -c 'import sys, pathlib; from packages.pages import write_pages; write_pages(pathlib.Path(sys.argv[1]))' \
		$(PLACE)/share/doc/tidegate
	@find $(PLACE)/share/doc/tidegate -type f -exec chmod 644 {} +

# Packages that others build have the licences of all crates, too; dist.py writes that file itself.
install-licences: check-prefix
	@umask 022; mkdir -p $(PLACE)/share/doc/tidegate
	@CARGO="$(CARGO)" PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=scripts $(PYTHON) -m packages.licences >$(PLACE)/share/doc/tidegate/THIRD-PARTY.txt

# Folders that are empty then go too, inner ones first: Tidegate's, and those that others use as well, but for the system's.
FOLDERS := lib/tidegate share/tidegate share/modulefiles/tidegate share/doc/tidegate
FOLDERS_OF_ALL := bin lib include share/man/man1 share/man/man3 share/man/man7 share/man share/modulefiles share/doc \
	$(foreach pair,$(COMPLETIONS),$(dir $(lastword $(subst :, ,$(pair))))) share/bash-completion share/zsh share/fish share

uninstall: check-prefix ## remove what install put under PREFIX
	rm -f $(PLACE)/lib/tidegate/libtidegate-fi.so $(PLACE)/bin/tidegate $(PLACE)/include/tidegate_bulk.h
	rm -rf $(PLACE)/share/tidegate/bulk $(PLACE)/share/tidegate/examples $(PLACE)/share/tidegate/monitoring $(PLACE)/share/doc/tidegate
	@rm -f $(foreach pair,$(COMPLETIONS),$(PLACE)/$(lastword $(subst :, ,$(pair)))) $(PLACE)/$(MODULEFILE)
	@for page in $(MAN); do rm -f $(PLACE)/share/man/man$${page##*.}/$$(basename $$page); done
	@for folder in $(FOLDERS); do rmdir $(PLACE)/$$folder 2>/dev/null || true; done
	@case '$(DESTDIR)$(PREFIX:/=)' in ""|/usr|/usr/local) ;; *) \
		for folder in $(FOLDERS_OF_ALL) ""; do rmdir $(PLACE)/$$folder 2>/dev/null || true; done ;; esac

dist: ## build the packages into build/dist: a wheel, a .deb, a tar that works anywhere (DIST="--machine aarch64", DIST=--twice: docs/packages.md)
	@$(PYTHON) scripts/dist.py $(DIST)

dist-check: dist ## as root: install each package on fresh systems without compilers, and run jobs there
	@$(PYTHON) scripts/try_packages.py

emulated: mpi ## on x86-64: the packages for aarch64, and tests of crates and MPI jobs over them under qemu: half an hour (docs/aarch64.md)
	@$(PYTHON) scripts/try_aarch64.py

clean: ## remove what was built; the MPIs in .mpi/ stay (rm -r .mpi removes them)
	$(CARGO) clean
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
