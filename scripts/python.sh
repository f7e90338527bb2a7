#!/usr/bin/env bash
# Builds the wheel gradus-rl, installs it into an empty virtual environment, and runs its tests and notebooks there: scripts/python.sh [PYTEST ARGUMENT ...]
#
# PYTHON is the interpreter [default: python3]. With SB3=1, Stable-Baselines3 is installed, too, and the tests that compare with it run.
set -euo pipefail
cd "$(dirname "$0")/../python"
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/build"
"$work/build/bin/pip" install --quiet "maturin>=1.16,<2"
"$work/build/bin/maturin" build --release --locked --quiet --out "$work/wheels"
"$python" -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet "$work"/wheels/gradus_rl-*.whl pytest mypy nbclient nbformat ipykernel
[ -z "${SB3:-}" ] || "$work/empty/bin/pip" install --quiet stable-baselines3
# the installed package, not the folder
cp -r tests notebooks pyproject.toml "$work"
cd "$work"
empty/bin/gradus --version
empty/bin/python -m pytest -q tests "$@"
empty/bin/python - <<'PYTHON'
import pathlib

import nbformat
from nbclient import NotebookClient

for path in sorted(pathlib.Path("notebooks").glob("*.ipynb")):
    NotebookClient(nbformat.read(path, 4), timeout=300, kernel_name="python3").execute()
    print(f"{path} runs")
PYTHON
empty/bin/mypy --no-error-summary --config-file pyproject.toml -p gradus_rl
empty/bin/mypy --no-error-summary --config-file pyproject.toml --strict tests/typing/user.py
