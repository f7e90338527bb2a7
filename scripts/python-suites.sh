#!/usr/bin/env bash
# Runs tests that others wrote on the Python package: scripts/python-suites.sh [VENV]
#
# Stable-Baselines3's own tests, from its source distribution, with PPO and A2C of gradus_rl in place of its own: the tests of python/tests/sb3_suite.txt, which are all that name PPO or
# A2C and touch neither torch nor the inside of a policy. They must pass but for those that the list says fail. VENV is a virtual environment to use [default: a temporary one].
set -euo pipefail
cd "$(dirname "$0")/../python"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${1:-$work/venv}
version=2.9.2
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "maturin>=1.16,<2"
  "$venv/bin/maturin" build --release --locked --quiet --out "$work/wheels"
  "$venv/bin/pip" install --quiet basedpyright "$work"/wheels/gradus_rl-*.whl "stable-baselines3==$version" pytest pandas matplotlib rich tqdm tensorboard pygame ale-py opencv-python-headless
fi
"$venv/bin/pip" download --quiet --no-deps --no-binary stable-baselines3 --dest "$work" "stable-baselines3==$version" || { echo "python-suites: expected the source distribution of stable-baselines3 $version" >&2; exit 1; }
mkdir "$work/suite"
tar -xzf "$work"/stable_baselines3-*.tar.gz -C "$work/suite" --strip-components 1
cp -r "$work/suite/tests" "$work/tests"
cat >"$work/tests/conftest.py" <<'PYTHON'
"""Puts the agents of gradus_rl into Stable-Baselines3 before its tests import them."""
import stable_baselines3
from gradus_rl import sb3

for name in ("A2C", "PPO"):
    setattr(stable_baselines3, name, getattr(sb3, name))
PYTHON
# basedpyright is pyright with a Node of its own
"$venv/bin/basedpyright" --pythonpath "$venv/bin/python" --level error tests/typing >"$work/pyright" || { cat "$work/pyright"; exit 1; }
cp tests/sb3_suite.txt "$work"
cd "$work"
grep -v '^#' sb3_suite.txt | sed 's/ .*//' >names
# shellcheck disable=SC2046
OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest -q --tb=no -p no:cacheprovider -k "not DQN and not DDPG and not TD3 and not SAC and not dqn and not td3 and not sac" --junitxml report.xml $(sed 's/^/tests\//' names) >log 2>&1 || true
"$venv/bin/python" - <<'PYTHON'
import sys
import xml.etree.ElementTree as tree

expected = {}
for line in open("sb3_suite.txt"):
    if not line.startswith("#"):
        name, _, reason = line.strip().partition(" ")
        expected[name] = reason.strip()
failed, seen = set(), set()
for case in tree.parse("report.xml").iter("testcase"):
    name = f"{case.get('classname').removeprefix('tests.')}.py::{case.get('name').split('[')[0]}"
    seen.add(name)
    if case.find("failure") is not None or case.find("error") is not None:
        failed.add(name)
unknown = set(expected) - seen
assert not unknown, f"expected tests that ran, got none of {unknown}: {open('log').read()[-3000:]}"
print(f"python-suites: {len(seen) - len(failed)} of {len(seen)} tests of stable-baselines3 pass")
for name in sorted(failed):
    print(f"  fails: {name}: {expected[name] or 'UNEXPECTED'}")
sys.exit(any(not expected[name] for name in failed))
PYTHON
