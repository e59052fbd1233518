#!/bin/sh
# Install Chromium, its driver and two font families from the Debian or Ubuntu archive, for the
# browser test of the dashboard. Does nothing where both programs are there already.
# Runs as root, or asks sudo.
set -eu

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    echo "Chromium and its driver are installed already: $(chromium --version 2>/dev/null)"
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "This script knows apt-get only: install 'chromium' and 'chromedriver' by other means." >&2
    exit 1
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Run this as root: it installs packages and finds no sudo." >&2
        exit 1
    fi
    as_root="sudo"
fi

echo "Installing chromium, chromium-driver, fonts-dejavu-core and fonts-liberation with apt-get."
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    chromium chromium-driver fonts-dejavu-core fonts-liberation
echo "Installed: $(chromium --version)"
