#!/bin/sh
# Put axe-core, which checks pages for accessibility, into a cache folder; prints where it is.
# Nothing of it is kept in this repository. Needs npm, and the npm registry the first time.
set -eu

version=4.14.1
folder="${XDG_CACHE_HOME:-$HOME/.cache}/kernelwatch/axe-$version"
script="$folder/node_modules/axe-core/axe.min.js"
if [ ! -f "$script" ]; then
    if ! command -v npm >/dev/null; then
        echo "npm is missing: install Node.js, or put axe.min.js at $script" >&2
        exit 1
    fi
    mkdir -p "$folder"
    npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --silent "axe-core@$version" >&2
fi
echo "$script"
