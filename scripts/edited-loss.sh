#!/usr/bin/env bash
# Doubles the surrogate of PPO's loss as a student would, in a copy of the repository. Checks that the gradient is that of the edited formula:
# where the surrogate is the only term, its norm doubles; together with the value loss, which stays as it is, the policy becomes another one.
#
#   scripts/edited-loss.sh [FOLDER]      builds in FOLDER (default: a temporary folder)
set -euo pipefail
cd "$(dirname "$0")/.."
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
export CARGO_TARGET_DIR=${1:-$temporary/target}
git ls-files -z | grep -zv '^results/' | xargs -0 cp --parents -t "$temporary"
ppo=agents/src/policy_gradient/ppo.rs

# train NAME SETTING...: a single update with one minibatch; prints the norm of its gradient
train() {
  (cd "$temporary" && cargo build --quiet --locked)
  local name=$1
  shift
  "$CARGO_TARGET_DIR/debug/gradus" train ppo cartpole --steps 256 --seed 1 --quiet --out "$temporary/$name" "$@" \
    --set ppo.epochs=1 --set ppo.minibatch_size=256 --set optimiser.max_grad_norm=inf >/dev/null 2>&1
  python3 - "$temporary/$name/metrics.csv" <<'P'
import csv, sys
print(next(csv.DictReader(open(sys.argv[1])))["train/grad_norm"])
P
}

# edit OLD NEW: replaces the one place of a text in the original
edit() {
  python3 - "$ppo" "$temporary/$ppo" "$1" "$2" <<'P'
import sys
source, target, old, new = sys.argv[1:]
text = open(source).read()
assert text.count(old) == 1, f"edited loss: expected one place of `{old}` in {source}, got {text.count(old)}"
open(target, "w").write(text.replace(old, new))
P
}

alone=(--set ppo.value_coefficient=0 --set ppo.entropy_coefficient=0)
plain=$(train plain "${alone[@]}")
train plain-with-value >/dev/null
edit "let loss = policy_loss +" "let loss = 2.0 * policy_loss +"
doubled=$(train doubled "${alone[@]}")
train doubled-with-value >/dev/null
python3 - "$plain" "$doubled" <<'P'
import sys
plain, doubled = map(float, sys.argv[1:])
print(f"norm of the gradient of the surrogate: {plain:.6f}, doubled: {doubled:.6f}")
assert abs(doubled / plain - 2) < 1e-5, "edited loss: expected twice the norm"
P
if cmp -s "$temporary/plain-with-value/policy.safetensors" "$temporary/doubled-with-value/policy.safetensors"; then
  echo "edited loss: expected another policy" >&2
  exit 1
fi
