#!/usr/bin/env bash
# Installs Debian's Chromium for the browser tests, where there is none and this machine lets us.
set -euo pipefail

if command -v chromium >/dev/null; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "No chromium here, and no right to install it: the browser tests will be skipped."
    exit 0
fi
echo "Installing chromium ..."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium fonts-dejavu-core; } >"$log" 2>&1; then
    tail -n 20 "$log"
    echo "Chromium could not be installed: the browser tests will be skipped."
fi
