#!/usr/bin/env bash
# Builds the wheel gradus-rl, installs it into an empty virtual environment, and runs its tests there: scripts/python.sh [PYTEST ARGUMENT ...]
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
"$work/empty/bin/pip" install --quiet "$work"/wheels/gradus_rl-*.whl pytest
[ -z "${SB3:-}" ] || "$work/empty/bin/pip" install --quiet stable-baselines3
# the installed package, not the folder
cp -r tests "$work/tests"
cd "$work"
empty/bin/gradus --version
empty/bin/python -m pytest -q tests "$@"
