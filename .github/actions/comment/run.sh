#!/usr/bin/env bash
# Comment on the pull request that a finished workflow run measured. Reads KW_* variables; the token is
# in GITHUB_TOKEN, or that of an app in KERNELWATCH_GITHUB_APP_*.
set -euo pipefail

# Thresholds are read from where this runs. The workspace of a runner may still hold files of a pull request.
folder="${RUNNER_TEMP:?not in a workflow}/kernelwatch-comment"
mkdir -p "$folder"
if [ -n "$KW_STORE" ]; then KW_STORE="$(realpath -m -- "$KW_STORE")"; fi
cd -- "${KW_CONFIGURATION:-$folder}"

arguments=(--artifact "$KW_ARTIFACT")
if [ -n "$KW_STORE" ]; then
  arguments+=(--store "$KW_STORE")
else
  arguments+=(--store "$folder/no-store.duckdb") # pairs need no history
fi
if [ -n "$KW_DASHBOARD" ]; then arguments+=(--dashboard "$KW_DASHBOARD"); fi
if [ -n "$KW_PICTURES" ]; then arguments+=(--pictures "$KW_PICTURES"); fi
if [ "$KW_CHECK" = true ]; then arguments+=(--check); fi
if [ "$KW_ORDERS" = true ]; then arguments+=(--orders); fi
if [ -n "$KW_FAIL_ON" ]; then arguments+=(--fail-on "$KW_FAIL_ON"); fi
if [ "$KW_DRY_RUN" = true ]; then arguments+=(--dry-run); fi

exec "$KW_BIN/alerts" comment "${arguments[@]}"
