#!/usr/bin/env bash
# Print the pip constraints file this machine should install with, or nothing.
#
# A machine with an NVIDIA GPU takes torch as the package index offers it, with its CUDA
# libraries. Any other machine is spared those gigabytes. The reason goes to stderr.
set -euo pipefail

if [ -e /dev/nvidiactl ]; then
  echo "NVIDIA GPU: found /dev/nvidiactl, so torch comes with its CUDA libraries" >&2
elif command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  echo "NVIDIA GPU: nvidia-smi lists one, so torch comes with its CUDA libraries" >&2
else
  echo "no NVIDIA GPU: no /dev/nvidiactl, and nvidia-smi lists none, so constraints/cpu.txt applies" >&2
  echo "constraints/cpu.txt"
fi
