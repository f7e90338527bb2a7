#!/usr/bin/env bash
# Fetches libtorch for the engine `torch` on a processor into a folder, once, and prints the folder's name, for LIBTORCH:
#
#     LIBTORCH=$(scripts/libtorch.sh) cargo run --features tch -- doctor
#
# It is the wheel of PyTorch, which needs no Python to be linked to, without its large dependencies: of NVIDIA's libraries only the two
# that libtorch_cpu itself is linked to. A GPU needs the others too: `pip install torch==2.11.0`, see docs/gpu.md.
set -euo pipefail

version=2.11.0
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/gradus/libtorch-$version}

if [ ! -f "$folder/torch/lib/libtorch_cpu.so" ]; then
  mkdir -p "$(dirname "$folder")"
  # whoever is cut off leaves nothing under the final name
  fresh=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  # a fixed version of Python's wheels, whatever runs pip: none of its Python is used
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-cache-dir --no-deps --no-compile --only-binary=:all: --python-version 3.12 --target "$fresh" \
    "torch==$version" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 >&2
  chmod 755 "$fresh"
  rm -rf "$folder"
  mv -T "$fresh" "$folder"
fi
echo "$folder/torch"
