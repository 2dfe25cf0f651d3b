# SPDX-License-Identifier: Apache-2.0
#
# A front for meson.  Each target installs what it lacks, builds and runs; see
# CONTRIBUTING.md.  CI=true makes `make test` lint as well.

BUILD ?= build
FUZZ_SECONDS ?= 60
MESON_FLAGS ?=

.PHONY: build test e2e e2e-programs e2e-releases e2e-remote demo bench bench-kube fuzz lint format
.PHONY: bench-schedule bench-webhook memcheck clean distclean
.DEFAULT_GOAL := build

# ninja uses all cores already.
.NOTPARALLEL:

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

test: build $(BUILD)/asan/build.ninja $(BUILD)/tsan/build.ninja
	@ninja -C $(BUILD)/asan --quiet
	@ninja -C $(BUILD)/tsan --quiet unit-tests
	@scripts/test $(BUILD) $(BUILD)/asan $(BUILD)/tsan

# Needs the programs of Kubernetes, or Go to build them; TESTS=smoke runs one file.  Our
# programs run under the sanitizers.
e2e: e2e-programs
	@BUILD=$(BUILD)/asan tests/kube/run $(TESTS)

# On every release of Kubernetes in tests/kube/tools, one after another and side by side.
e2e-releases: e2e-programs
	@BUILD=$(BUILD)/asan tests/kube/releases $(TESTS)

# In a namespace of the cluster that KUBECONFIG names, which is deleted afterwards.
e2e-remote:
	@tests/kube/namespace --check
	@$(MAKE) --no-print-directory e2e-programs
	@BUILD=$(BUILD)/asan tests/kube/namespace tests/kube/run --any $(TESTS)

e2e-programs: build $(BUILD)/asan/build.ninja
	@scripts/setup e2e
	@ninja -C $(BUILD)/asan --quiet

demo: build
	@$(BUILD)/gpu-scheduler demo

bench: build
	@scripts/bench $(BUILD)

# The client on a real API server that is filled with 50,000 pods first: some minutes.
bench-kube: build
	@tests/kube/cluster run -- $(BUILD)/tests/kube/bench/client_bench

# Our scheduler, kube-scheduler and bare clients by turns: five minutes of two idle cores.
bench-schedule: build
	@tests/kube/cluster run -- tests/kube/bench/schedule.py --build $(BUILD) $(BENCH)

# The webhook as a process, over TLS: speed, latency, memory, certificates that change.
bench-webhook: build
	@scripts/setup e2e
	@tests/bench/webhook_load $(BUILD)/gpu-scheduler

fuzz:
	@scripts/setup fuzz
	@[ -e $(BUILD)/fuzz/build.ninja ] || CC=$$(scripts/tool clang) \
		meson setup $(BUILD)/fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
	@ninja -C $(BUILD)/fuzz --quiet
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz $(BUILD)/fuzz

lint: $(BUILD)/build.ninja
	@scripts/setup lint
	@scripts/lint $(BUILD)

format:
	@scripts/setup lint
	@find src tests -name '*.[ch]' | xargs $$(scripts/tool clang-format) -i

memcheck: build
	@scripts/setup all
	@meson test -C $(BUILD) --no-rebuild --suite unit --timeout-multiplier 20 \
		--wrapper 'valgrind --quiet --leak-check=full --error-exitcode=9'

clean:
	rm -rf $(BUILD)

# Also what scripts/setup has fetched.
distclean: clean
	rm -rf .deps

.PHONY: setup
setup:
	@scripts/setup build

$(BUILD)/build.ninja: | setup
	@meson setup $(BUILD) $(MESON_FLAGS)

$(BUILD)/asan/build.ninja: | setup
	@meson setup $(BUILD)/asan -Db_sanitize=address,undefined -Doptimization=1 $(MESON_FLAGS)

$(BUILD)/tsan/build.ninja: | setup
	@meson setup $(BUILD)/tsan -Db_sanitize=thread -Doptimization=1 $(MESON_FLAGS)
