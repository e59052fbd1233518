#!/usr/bin/env bash
# Install kernelwatch with the named extras into an environment of this job, and print where its
# commands are: environment.sh collect
set -euo pipefail
readonly EXTRAS="${1:?which extras?}"
source_tree="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
environment="${RUNNER_TEMP:?not in a workflow}/kernelwatch-environment"

if [ ! -x "$environment/bin/alerts" ]; then
  "${KERNELWATCH_PYTHON:-python3}" -m venv "$environment" >&2
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$source_tree[$EXTRAS]" >&2
fi
echo "$environment/bin"
