# SPDX-License-Identifier: GPL-2.0
# What a person types. What the kernel's build reads is Kbuild.

ONLY ?=
CM ?= rust
KERNEL ?= stock
SEEDS ?= 20000
MINUTES ?= 10
export ONLY CM KERNEL NO_DEBUG SERIES CLIPPY KDIR V

.PHONY: build demo test test-all test-readme test-dkms bench sim fuzz mutants coverage check docs
.PHONY: soak cmstat deb install uninstall clean clean-cache help

build: ## the module, out/ib_cm.ko (KDIR=... takes another prepared kernel, SERIES=7.2 Debian's Linux 7.2)
	@scripts/build

demo: build ## boots a guest with the module under rdma_cm and shows it at work
	@scripts/demo

test: ## host tests and guest scenarios (ONLY='rping*' picks scenarios, CM=c: C module, KERNEL=debug or NO_DEBUG=1)
	@scripts/test

test-all: ## all scenarios, the long ones too, also on the C module and on the debug kernel
	@LONG=1 scripts/test both

bench: build ## compares speed and memory with the C module (QUICK=1: a short look, SCALE=1: 100,000 connections)
	@scripts/bench

sim: ## simulates whole hosts, a world for each seed (SEEDS=20000)
	@scripts/sim $(SEEDS)

fuzz: ## lets cargo-fuzz look for inputs that break the protocol crate (MINUTES=10)
	@scripts/fuzz $(MINUTES)

mutants: ## breaks copies of the code on purpose and shows that simulation or models find each
	@scripts/mutants

soak: MINUTES = 60
soak: build ## connections come and go in a guest, with processes, device and modules (MINUTES=60)
	@scripts/soak $(MINUTES)

coverage: ## how much of the protocol and the simulation the tests on the host reach
	@scripts/coverage

check: ## formatting, lints, documentation, commit messages
	@scripts/check

docs: ## the documentation as HTML, out/docs/index.html
	@scripts/docs

cmstat: ## builds out/cmstat, which shows what the module does
	@scripts/cmstat

deb: build cmstat ## Debian packages of the module, its source for DKMS, and cmstat, in out/deb
	@scripts/deb

test-readme: ## follows the README's section on use to the letter, in a system with systemd
	@scripts/test-readme

test-dkms: deb ## takes the source package through Debian's DKMS
	@scripts/test-dkms

install: build ## the module into the running kernel's tree, in the place of the C one
	@scripts/install

uninstall: ## takes it out again; the C module is used as before
	@scripts/install --uninstall

clean: ## removes out/
	rm -rf out

clean-cache: ## removes everything the set-up made, for all checkouts
	@scripts/clean-cache

help: ## this text
	@sed -n 's/^\([a-z-]*\):[^#]*## /  \1|/p' Makefile | \
		awk -F '|' '{ printf "make %-12s %s\n", $$1, $$2 }' | sed 's/make   /make /'
