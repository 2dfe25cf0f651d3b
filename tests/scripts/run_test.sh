#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run_test.sh SCRIPTS - scripts/bench and scripts/test tell what went wrong, and nothing else.
#
# Benchmarks, meson and make are played by commands that do what the test wants.
set -u

scripts=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
status=0

# play FILE SCRIPT - a command that does what the test wants.
play() {
	mkdir -p "$(dirname "$work/$1")"
	printf '#!/bin/sh\n%s\n' "$2" >"$work/$1"
	chmod +x "$work/$1"
}

# ok NAME EXPECTED SEEN - one line of TAP.
ok() {
	number=$((number + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		echo "$1: expected '$2', seen '$3'" >&2
		status=1
	fi
}

bench() {
	"$scripts/bench" "$work/$1" >"$work/out" 2>&1
	echo "$? $(tr '\n' ' ' <"$work/out")"
}

# run_tests LINT - the last line and the exit status, when lint ends with that status.
run_tests() {
	play bin/make "exit $1"
	CI=true PATH="$work/bin:$PATH" "$scripts/test" "$work/build" >"$work/out" 2>/dev/null
	echo "$? $(tail -n 1 "$work/out")"
}

echo 1..7

play none/tests/bench/readme 'exit 0'
ok "no benchmark is a failure" 1 "$(bench none | cut -c1)"
play skip/tests/bench/a_bench 'echo a is skipped; exit 77'
play skip/tests/bench/b_bench 'echo b'
ok "the others run when one lacks its data" "0 a is skipped b " "$(bench skip)"
play miss/tests/bench/a_bench 'echo a; exit 1'
play miss/tests/bench/b_bench 'echo b'
ok "the others run when one misses its target, which fails" "1 a b " "$(bench miss)"
play crash/tests/bench/a_bench 'kill -9 $$'
ok "a crash is a failure" 1 "$(bench crash 2>/dev/null | cut -c1)"

mkdir -p "$work/build/meson-logs"
play bin/meson "echo '{\"result\": \"OK\"}' >$work/build/meson-logs/testlog.json"
ok "lint is one more test" "0 2 passed, 0 failed" "$(run_tests 0)"
ok "that can fail" "1 1 passed, 1 failed" "$(run_tests 1)"
play bin/meson 'exit 1'
ok "nothing ran is a failure, whatever lint says" "1 0 passed, 0 failed" "$(run_tests 0)"
exit $status
