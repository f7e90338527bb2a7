#!/usr/bin/env bash
# Fetches libtorch for the engine `torch` on a CPU, once, and prints its folder, for LIBTORCH:
#
#     LIBTORCH=$(scripts/libtorch.sh) cargo run --features tch -- doctor
#
# Fetches PyTorch's wheel without its large dependencies; linking to it needs no Python. Of NVIDIA's libraries only the two that libtorch_cpu
# is linked to are fetched. A GPU needs the others too: `pip install torch==2.11.0`, see docs/gpu.md.
set -euo pipefail

version=2.11.0
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/gradus/libtorch-$version}

if [ ! -f "$folder/torch/lib/libtorch_cpu.so" ]; then
  mkdir -p "$(dirname "$folder")"
  # an interrupted download leaves nothing under the final name
  fresh=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  # wheels of a fixed Python version, for any Python that runs pip: only the libraries are used
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-cache-dir --no-deps --no-compile --only-binary=:all: --python-version 3.12 --target "$fresh" \
    "torch==$version" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 >&2
  chmod 755 "$fresh"
  rm -rf "$folder"
  mv -T "$fresh" "$folder"
fi
echo "$folder/torch"
