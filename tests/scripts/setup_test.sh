#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# setup_test.sh SETUP TOOL - scripts/setup on systems that are not this one.
#
# Each test runs a copy of the script with a PATH that holds only what the test
# puts there: plain tools, and commands that play a package manager.
set -u

setup=$1
tool=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
status=0
plain_tools="sh env dirname mktemp rm mkdir mv cat sed grep awk sort head tail tr touch ls"

# system VERSION CODENAME [ID] - a fresh checkout and a PATH of plain tools.
system() {
	rm -rf "${work:?}"/*
	mkdir -p "$work/checkout/scripts" "$work/bin" "$work/apt/sources.list.d" "$work/keyrings"
	cp "$setup" "$tool" "$work/checkout/scripts/"
	for name in $plain_tools; do
		ln -s "$(command -v "$name")" "$work/bin/$name"
	done
	play id 'echo 0'
	printf 'ID=%s\nVERSION_ID=%s\nVERSION_CODENAME=%s\n' "${3:-debian}" "$1" "$2" \
		>"$work/os-release"
}

# play NAME SCRIPT - a command that does what the test wants.
play() {
	printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}

# Everything that the group `build` looks for, except yyjson.
play_build_tools() {
	for name in gcc make nm meson ninja python3 spin; do
		play "$name" 'exit 0'
	done
	play pkg-config '[ "$2" != yyjson ]'
}

run() {
	PATH=$work/bin OS_RELEASE=$work/os-release APT_DIR=$work/apt KEYRINGS=$work/keyrings \
		WORK=$work "$work/checkout/scripts/setup" build >"$work/out" 2>"$work/err" </dev/null
	result=$?
}

# ok NAME CONDITION... - one line of TAP, with what was seen when it failed.
ok() {
	number=$((number + 1))
	name=$1
	shift
	if "$@"; then
		echo "ok $number - $name"
		return
	fi
	echo "not ok $number - $name"
	status=1
	{
		echo "$name: exit status $result"
		cat "$work/out" "$work/err"
	} >&2
}

failed_with_one_line() {
	[ "$result" -ne 0 ] && [ "$(grep -c '' "$work/err")" = 1 ] && grep -q -- "$1" "$work/err"
}

silent() {
	[ "$result" = 0 ] && [ ! -s "$work/out" ] && [ ! -s "$work/err" ]
}

succeeded() {
	[ "$result" = 0 ] && [ ! -s "$work/err" ]
}

echo 1..17

system 13 trixie
play_build_tools
play pkg-config 'exit 0'
run
ok "with all there it is silent and calls no package manager" silent

system 13 trixie
printf 'ID=plan9\nVERSION_ID=4\n' >"$work/os-release"
play apt-get 'exit 1'
run
ok "an unknown system gets a sentence with the packages" \
	failed_with_one_line 'plan9 4.*Debian 12.* meson .*libyaml-dev .*libyyjson-dev$'

system 11 bullseye
play apt-get 'exit 1'
run
ok "so does a system that is too old" failed_with_one_line 'debian 11.* meson '

system 13 trixie
play apt-get 'exit 1'
play id 'echo 1000'
run
ok "without root or sudo the packages are listed" \
	failed_with_one_line 'not root.* meson .*libyaml-dev .*libyyjson-dev$'

system 13 trixie
play apt-get 'echo "E: Unable to fetch some archives" >&2; exit 100'
run
ok "without a network the packages are listed, with the reason" \
	failed_with_one_line ' meson .*libyyjson-dev.*(Unable to fetch some archives)'

system 13 trixie
play_build_tools
play pkg-config '[ "$2" != yyjson ] || [ -e $WORK/installed ]'
play apt-get 'echo "$@" >>$WORK/calls; case "$*" in *install*) touch $WORK/installed;; esac'
run
ok "what is missing is installed, and nothing else" \
	grep -q 'install libyyjson-dev$' "$work/calls"
ok "and then all is well" succeeded

# A system without yyjson: a package manager that keeps the sources it was given, and
# packages that hold a library and a header.  Nobody is root.
borrower() {
	system "$@"
	play_build_tools
	play id 'echo 1000'
	play apt-get 'for word; do case $word in Dir::Etc::sourcelist=*)
		cat "${word#*=}" >$WORK/sources;; download) touch a.deb b.deb;; esac; done'
	play dpkg-deb 'mkdir -p $3/usr/include $3/usr/lib/some-linux-gnu
		touch $3/usr/include/yyjson.h $3/usr/lib/some-linux-gnu/libyyjson.so'
	touch "$work/keyrings/debian-archive-trixie-stable.gpg"
}

# borrowed DISTRIBUTION SUITE... - from that one source, and signed by its maker.
borrowed() {
	succeeded && [ "$(cat "$work/sources")" = \
		"deb [signed-by=$work/keyrings/$1-archive-keyring.gpg] http://mirror.test/x $2" ]
}

borrower 12 bookworm
cat >"$work/apt/sources.list" <<'END'
# deb http://comment.test/debian bookworm main
deb [arch=amd64 signed-by=/x.gpg] http://mirror.test/x bookworm main contrib
deb-src http://source.test/debian bookworm main
deb http://security.test/debian bookworm-security main
deb http://other.test/debian bookworm stable
END
run
ok "Debian 12: the mirror is found in a list of one line each" borrowed debian "trixie main"
run
ok "the second time it is silent" silent

borrower 12 bookworm
cat >"$work/apt/sources.list.d/debian.sources" <<'END'
Types: deb
# URIs: http://comment.test/debian
URIs: http://mirror.test/x
Suites: bookworm bookworm-updates
Components: main
Signed-By: /x.gpg

Types: deb
URIs: http://security.test/debian
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://disabled.test/debian
Suites: bookworm
Components: main
END
run
ok "Debian 12: the mirror is found in a list of paragraphs" borrowed debian "trixie main"

borrower 24.04 noble ubuntu
printf 'Types: deb deb-src\nURIs:\n http://mirror.test/x\nSuites: noble noble-updates\n' \
	>"$work/apt/sources.list.d/ubuntu.sources"
printf 'Components: main universe\n' >>"$work/apt/sources.list.d/ubuntu.sources"
run
ok "Ubuntu 24.04: fields may go on in the next line" borrowed ubuntu "resolute universe"

borrower 22.04 jammy ubuntu
run
ok "Ubuntu 22.04 is too old" failed_with_one_line 'ubuntu 22.04.* libyyjson-dev$'

borrower "" "" ubuntu
run
ok "an Ubuntu without a version is unknown" failed_with_one_line 'ubuntu .* libyyjson-dev$'

borrower trixie/sid trixie
run
ok "so is a version that is no number" failed_with_one_line 'debian trixie/sid.* libyyjson-dev$'

# A file in the way stops root as well.
borrower 12 bookworm
touch "$work/checkout/.deps"
run
ok "a checkout that cannot be written to gets a sentence" \
	failed_with_one_line 'cannot be written to.* yyjson of Debian 13 '

borrower 12 bookworm
rm "$work/keyrings/debian-archive-trixie-stable.gpg"
run
ok "Debian 12: an early keyring is to be replaced first" \
	failed_with_one_line 'not root.* debian-archive-keyring$'

borrower 12 bookworm
play apt-get 'echo "E: Could not connect to the mirror" >&2; exit 100'
run
ok "Debian 12: a mirror out of reach gets a sentence with both packages" \
	failed_with_one_line 'Could not connect.*libyyjson0 and libyyjson-dev'
exit $status
