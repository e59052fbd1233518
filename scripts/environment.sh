#!/usr/bin/env bash
# Make .venv, or bring it up to date, with the named extras: scripts/environment.sh all,test
#
# PYTHON names the interpreter a new .venv is made with; without it the first suitable one is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly EXTRAS="${1:?which extras? for example: scripts/environment.sh all,test}"

# Whether an interpreter is new enough and can make environments (Debian splits that off).
suits() {
  "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
  local candidate
  if [ -n "${PYTHON:-}" ]; then
    if suits "$PYTHON"; then echo "$PYTHON" && return; fi
    echo "PYTHON=$PYTHON does not suit: kernelwatch needs Python 3.11 or newer with the venv module" >&2
    return 1
  fi
  for candidate in python3 python python3.13 python3.12 python3.11; do
    if suits "$candidate"; then echo "$candidate" && return; fi
  done
  echo "no suitable Python found: kernelwatch needs Python 3.11 or newer with the venv module." >&2
  echo "Install one (on Debian and Ubuntu: apt-get install python3 python3-venv), or name it:" >&2
  echo "  make run PYTHON=/path/to/python3.11" >&2
  return 1
}

if ! suits .venv/bin/python; then
  python="$(find_python)"
  echo "making .venv with $("$python" --version) ($(command -v "$python"))" >&2
  "$python" -m venv --clear .venv
fi

constraints="$(scripts/constraints.sh)"
echo "installing kernelwatch[$EXTRAS] into .venv (about two minutes the first time)" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check \
  ${constraints:+--constraint "$constraints"} --editable ".[$EXTRAS]"
