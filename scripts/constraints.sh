#!/usr/bin/env bash
# Print the pip constraints file this machine should install with, or nothing.
#
# A machine with an NVIDIA GPU takes the newest torch that its other requirements allow, with
# CUDA libraries. Any other is held to a release that can be had without those gigabytes.
# The decision and its reason go to stderr.
set -euo pipefail

if [ -e /dev/nvidiactl ]; then
  echo "NVIDIA GPU: found /dev/nvidiactl, so torch is not constrained" >&2
elif command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  echo "NVIDIA GPU: nvidia-smi lists one, so torch is not constrained" >&2
else
  echo "no NVIDIA GPU: no /dev/nvidiactl, and nvidia-smi lists none, so constraints/cpu.txt applies" >&2
  echo "constraints/cpu.txt"
fi
