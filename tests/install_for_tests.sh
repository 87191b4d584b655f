#!/usr/bin/env bash
# Installs what some tests need from Debian, where it is missing and this machine lets us:
# install_for_tests.sh COMMAND PACKAGE... ; tests whose command is missing are skipped, and say so.
set -euo pipefail

command=$1
shift
if command -v "$command" >/dev/null; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "No $command here, and no right to install it: tests that need it will be skipped."
    exit 0
fi
echo "Installing $* ..."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"; } >"$log" 2>&1; then
    tail -n 20 "$log"
    echo "$command could not be installed: tests that need it will be skipped."
fi
