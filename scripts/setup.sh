#!/bin/sh
# Make .venv with the locked dependencies, on a machine that has Python >= 3.11 and perhaps nothing else.
# With the word `scripts`: install what scripted checks need as well: the runtimes, and Chromium.
# With the word `tests`: install what the tests need beyond that.
set -eu
cd "$(dirname "$0")/.."

UV_VERSION=0.13.8

say() { printf 'setup: %s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1; then sudo "$@"
    else say "not root and no sudo; run this as root once: $*"; exit 2
    fi
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The distribution's Python first: it is an optimised build (docs/reasons.md has the figures).
pythons() {
    for name in ${PICKET_PYTHON:-/usr/bin/python3 python3 python3.13 python3.12 python3.11}; do
        if command -v "$name" >/dev/null 2>&1 && is_new_enough "$name"; then
            "$name" -c 'import sys; print(sys.executable)'
        fi
    done
}

find_python() {
    found=$(pythons | sed -n 1p)
    [ -n "$found" ] || {
        say "no Python >= 3.11 among: ${PICKET_PYTHON:-python3}; install python3 and start again"
        exit 2
    }
    printf '%s\n' "$found"
}

# uv's own environment may come from any Python here that can make one: Debian's cannot without python3-venv.
make_tools() {
    for candidate in $(pythons); do
        "$candidate" -m venv .tools >/dev/null 2>&1 && return
        rm -rf .tools
    done
    install_venv_module "$PYTHON"
    "$PYTHON" -m venv .tools
}

install_venv_module() {
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    command -v apt-get >/dev/null 2>&1 || {
        say "$1 cannot make virtual environments; install its venv module and start again"
        exit 2
    }
    say "installing python$version-venv"
    quietly as_root apt-get update
    apt_install "python$version-venv" >/dev/null 2>&1 || quietly apt_install python3-venv
}

apt_install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y "$@"; }

# What a command says is worth reading only when it fails.
quietly() {
    said=$("$@" 2>&1) || {
        printf '%s\n' "$said" >&2
        say "failed: $*"
        exit 2
    }
}

has_faketime() { ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1; }

# Routers and lossy hosts of the ping tests live in network namespaces; aioping reads /etc/protocols;
# libfaketime puts an agent's calendar wrong.
install_for_tests() {
    missing=
    command -v ip >/dev/null 2>&1 || [ -x /usr/sbin/ip ] || missing="$missing iproute2"
    [ -e /etc/protocols ] || missing="$missing netbase"
    has_faketime || missing="$missing libfaketime"
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null 2>&1 || {
        say "not found:$missing; the tests that need them are skipped"
        return 0
    }
    say "installing$missing"
    quietly as_root apt-get update
    # shellcheck disable=SC2086  # these are words
    quietly apt_install $missing
}

RUNTIMES=.tools/runtimes
DEBIANS_CHROMIUM=/usr/lib/chromium/chromium-headless-shell

has_chromium() {
    for program in "${CHROMIUM_PATH:-$DEBIANS_CHROMIUM}" "$RUNTIMES/chromium"; do
        "$program" --version >/dev/null 2>&1 && return
    done
    return 1
}

install_chromium() {
    has_chromium && return
    say "installing Chromium's headless shell"
    if command -v apt-get >/dev/null 2>&1; then
        quietly as_root apt-get update
        quietly apt_install --no-install-recommends chromium-headless-shell
    else
        download_chromium
    fi
    has_chromium
}

# Playwright's own build, for distributions without the package; its libraries may be missing.
download_chromium() {
    newest=$(find "$RUNTIMES" -maxdepth 1 -name '2*' | sort | tail -n 1)
    quietly env PLAYWRIGHT_BROWSERS_PATH="$PWD/.tools/browsers" "$newest/bin/node" \
        "$newest/node_modules/@playwright/test/cli.js" install --only-shell chromium
    found=$(find "$PWD/.tools/browsers" -type f -perm -u+x \
        \( -name chrome-headless-shell -o -name headless_shell \) | head -n 1)
    [ -n "$found" ] && ln -sf "$found" "$RUNTIMES/chromium"
}

# Without it, runs of Playwright are slower and otherwise the same.
warm_runtimes() {
    [ ! -x .venv/bin/python ] || .venv/bin/python -m runners.kit.playwright.warming >/dev/null
}

# A minute and more may pass there. After Ctrl-C, which it does not hear, it ends by itself.
tell_progress() {
    while sleep 10 </dev/null >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        say "still installing the runtimes: $(du -sm "$RUNTIMES" 2>/dev/null | cut -f1) MB so far"
    done
}

install_runtimes() {
    tell_progress &
    telling=$!
    sh scripts/runtimes.sh .venv/bin/python .tools/bin/uv "$RUNTIMES" && code=0 || code=$?
    kill "$telling" 2>/dev/null || true
    return "$code"
}

# In brackets, each in a shell of its own: what fails there ends that shell only.
install_for_scripts() {
    if (install_runtimes); then
        (install_chromium) || go_without "BROWSER checks and Playwright suites: there is no Chromium"
        (warm_runtimes) || go_without "code compiled ahead, which makes scripts faster"
    else
        go_without "scripted checks: their runtimes could not be installed"
    fi
}

# Only what a person starts goes on without; once it can be had, `sh scripts/setup.sh scripts` gets it.
go_without() {
    [ -z "${CI:-}" ] || { say "failed: no $1"; exit 2; }
    say "going on without $1; to try again: sh scripts/setup.sh scripts"
}

case "${1:-}" in
scripts)
    install_for_scripts
    touch .venv/.ready-for-scripts
    exit 0
    ;;
tests)
    install_for_tests
    touch .venv/.ready-for-tests
    exit 0
    ;;
esac

PYTHON=$(find_python)

# uv stands in an environment of its own, so that .venv holds exactly what uv.lock says.
if ! [ -x .tools/bin/uv ] || ! .tools/bin/uv --version 2>/dev/null | grep -q " $UV_VERSION"; then
    # Compile caches of runtimes are read-only, folders included.
    [ ! -e .tools ] || chmod -R u+w .tools
    rm -rf .tools
    make_tools
    say "installing uv $UV_VERSION"
    .tools/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
fi

say "installing the locked dependencies"
# Keep an environment variable that already points elsewhere from moving .venv away from here.
UV_PROJECT_ENVIRONMENT=.venv UV_PYTHON_DOWNLOADS=never \
    .tools/bin/uv sync --frozen --quiet --python "$PYTHON"
touch .venv/.ready
say "ready"
