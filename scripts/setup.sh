#!/bin/sh
# Make .venv with the locked dependencies, on a machine that has Python >= 3.11 and perhaps nothing else.
# With the word `scripts`: without the tools of developers; with what scripted checks need: the runtimes, and Chromium.
# With the word `tests`: install all of these, and what the tests need beyond that.
# All that is missing of Debian's packages is installed, or named, in one step.
set -eu
cd "$(dirname "$0")/.."

UV_VERSION=0.13.8
GOAL=${1:-libraries}

say() { printf 'setup: %s\n' "$*" >&2; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The distribution's Python first: it is an optimised build (docs/design/speed.md has the figures).
pythons() {
    for name in ${PICKET_PYTHON:-/usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11}; do
        if command -v "$name" >/dev/null 2>&1 && is_new_enough "$name"; then
            "$name" -c 'import sys; print(sys.executable)'
        fi
    done
}

find_python() {
    found=$(pythons | sed -n 1p)
    [ -n "$found" ] || {
        say "no Python >= 3.11 found among: ${PICKET_PYTHON:-python3}; install python3 and run this again"
        exit 2
    }
    printf '%s\n' "$found"
}

has_uv() { .tools/bin/uv --version 2>/dev/null | grep -q " $UV_VERSION"; }

# uv's own environment may come from any Python here that can make one: Debian's cannot without python3-venv.
find_maker() {
    for candidate in $(pythons); do
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

venv_package() {
    if [ "$PYTHON" = /usr/bin/python3 ]; then printf 'python3-venv\n'
    else "$PYTHON" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
    fi
}

has_faketime() { ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1; }

# Routers and lossy hosts of the ping tests live in network namespaces; aioping reads /etc/protocols;
# libfaketime puts an agent's calendar wrong; the documents' walk along the API is made with curl.
missing_for_tests() {
    command -v ip >/dev/null 2>&1 || [ -x /usr/sbin/ip ] || printf 'iproute2\n'
    [ -e /etc/protocols ] || printf 'netbase\n'
    has_faketime || printf 'libfaketime\n'
    command -v curl >/dev/null 2>&1 || printf 'curl\n'
}

# What there is no way without ends it here; without the rest it goes on.
install_packages() {
    needed='' useful='' scripts=''
    has_uv || [ -n "$(find_maker)" ] || needed=$(venv_package)
    [ "$GOAL" = libraries ] || scripts=--scripts
    [ "$GOAL" != tests ] || useful=$(missing_for_tests)
    # shellcheck disable=SC2086  # these are words
    "$PYTHON" -B -m runners.installation.debian $scripts --needed $needed --useful $useful || exit 2
}

# uv stands in an environment of its own, so that .venv holds only what uv.lock says.
install_uv() {
    has_uv && return
    # Compile caches of runtimes are read-only, folders included.
    [ ! -e .tools ] || chmod -R u+w .tools
    rm -rf .tools
    maker=$(find_maker)
    "${maker:-$PYTHON}" -m venv .tools
    say "installing uv $UV_VERSION"
    .tools/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
}

# What `make run` needs is a part of the rest; the tools of developers that are there stay.
install_libraries() {
    groups=''
    [ "$GOAL" != scripts ] || groups='--no-default-groups --extra all --inexact'
    say "installing the locked dependencies"
    # Keep an environment variable that already points elsewhere from moving .venv away from here.
    # shellcheck disable=SC2086  # these are words
    UV_PROJECT_ENVIRONMENT=.venv UV_PYTHON_DOWNLOADS=never \
        .tools/bin/uv sync --frozen --quiet --python "$PYTHON" $groups
    [ "$GOAL" = scripts ] || touch .venv/.ready
}

# Only what a person starts goes on without; each start tries again.
install_for_scripts() {
    if .venv/bin/picket setup --no-packages; then
        touch .venv/.ready-for-scripts
    elif [ -n "${CI:-}" ]; then
        say "failed: something that scripted checks need is not installed"
        exit 2
    else
        say "continuing without what is missing; to retry: .venv/bin/picket setup"
    fi
}

# The established command line, which tests run against the service; without a network they skip it.
install_clients() {
    .venv/bin/python -m tests.clients.installation || [ -z "${CI:-}" ] || {
        say "failed: the command line that the tests run is not installed"
        exit 2
    }
}

PYTHON=$(find_python)
install_packages
install_uv
install_libraries
[ "$GOAL" = libraries ] || install_for_scripts
[ "$GOAL" != tests ] || { install_clients && touch .venv/.ready-for-tests; }
say "ready"
