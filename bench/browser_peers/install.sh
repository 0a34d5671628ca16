#!/bin/sh
# Installs what the browser benchmark measures beside the agent, as locked here, into
# .tools/browser-peers, with the npm of the runtimes. No browser: all sides have the system's.
set -eu
cd "$(dirname "$0")/../.."

SOURCE=bench/browser_peers FOLDER=.tools/browser-peers
RUNTIMES=$(.venv/bin/python -c 'from runners.installation.places import runtimes_folder as f; print(f())')
PATH="$RUNTIMES/2026.04/bin:$PATH" PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
export PATH PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD

locked=$(cat "$SOURCE"/package*.json | sha256sum)
[ "$locked" = "$(cat "$FOLDER/ready" 2>/dev/null)" ] && exit 0

rm -rf "$FOLDER"
mkdir -p "$FOLDER"
cp "$SOURCE"/package.json "$SOURCE"/package-lock.json "$FOLDER"
(cd "$FOLDER" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
printf '%s\n' "$locked" >"$FOLDER/ready"
