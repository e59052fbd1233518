#!/usr/bin/env bash
# Measure the pull request's commit beside the one where its branch began, and leave every run as a
# bundle in one folder. Reads KW_* variables; needs no token.
set -euo pipefail

folder="${RUNNER_TEMP:?not in a workflow}/kernelwatch-runs"
rm -rf "$folder"
mkdir -p "$folder/bundles"
scratch="$folder/runs.duckdb"

arguments=(--commit "$KW_COMMIT" --store "$scratch")
if [ -n "$KW_BASE" ]; then
  arguments+=(--base "$KW_BASE" --against "$(git merge-base "$KW_COMMIT" "$KW_BASE")")
fi
if [ -n "$KW_PYTHON" ]; then arguments+=(--python "$KW_PYTHON"); fi
while IFS= read -r suite; do
  if [ -n "$suite" ]; then arguments+=(--suite "$suite"); fi
done <<<"$KW_SUITE"

# What collect says is kept as well: where nothing was measured, the comment quotes its end.
status=0
{ "$KW_BIN/collect" "${arguments[@]}" 2>&1 >&3 | tee "$folder/said" >&2; } 3>&1 || status=$?
if [ "$status" -ne 0 ]; then tail -c 8000 "$folder/said" >"$folder/bundles/collect.txt"; fi

# Not only the run that was asked for: the other side of a pair and sessions that confirm belong to it.
if [ -e "$scratch" ]; then
  "$KW_BIN/store" show --format json --store "$scratch" |
    "$KW_BIN/python" -c 'import json, sys; [print(run["header"]["run_id"]) for run in json.load(sys.stdin)]' |
    while IFS= read -r run; do
      "$KW_BIN/store" export "$run" "$folder/bundles/$run.kernelwatch.gz" --store "$scratch"
    done
fi
echo "bundles=$folder/bundles" >>"${GITHUB_OUTPUT:?not in a workflow}"
exit "$status"
