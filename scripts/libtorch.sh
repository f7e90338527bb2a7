#!/usr/bin/env bash
# Downloads libtorch for the engine `torch` on a CPU, unless it was downloaded before, and prints its folder for the variable LIBTORCH:
#
#     LIBTORCH=$(scripts/libtorch.sh) cargo run --features tch -- doctor
#
# Downloads PyTorch's wheel and the two NVIDIA libraries that libtorch_cpu is linked to, without the wheel's other large dependencies. Linking to
# libtorch needs no Python. A GPU needs NVIDIA's other libraries too: `pip install torch==2.11.0`, see docs/gpu.md.
set -euo pipefail

version=2.11.0
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/gradus/libtorch-$version}

if [ ! -f "$folder/torch/lib/libtorch_cpu.so" ]; then
  mkdir -p "$(dirname "$folder")"
  # an interrupted download leaves nothing under the final name
  fresh=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  # only the libraries of the wheels are used, so the wheels may be for another Python version than that of python3
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-cache-dir --no-deps --no-compile --only-binary=:all: --python-version 3.12 --target "$fresh" \
    "torch==$version" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 >&2
  chmod 755 "$fresh"
  rm -rf "$folder"
  mv -T "$fresh" "$folder"
fi
echo "$folder/torch"
