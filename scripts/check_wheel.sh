#!/usr/bin/env bash
# Build the wheel, install it into an empty environment, and try what was installed there,
# away from the checkout. Keeps nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root="$PWD"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/environment"
python="$work/environment/bin/python"
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$work/dist" .
wheel="$(echo "$work"/dist/kernelwatch-*.whl)"

"$python" -m pip install --quiet "${wheel}[dashboard,alerts]"
cd "$work" # so that nothing is imported from the checkout
"$python" "$root/scripts/check_wheel.py" "$wheel"
