#!/usr/bin/env bash
# Checks the environments of Gymnasium, `gym:`, in a virtual environment of its own (target/gym-venv, which is kept): the tests that need
# Python, a training from the command line, kills of the worker and of the program, Ctrl-C, many workers.
#
#   scripts/gym.sh          the quick form: gymnasium alone
#   scripts/gym.sh --long   with Box2D, MuJoCo, MiniGrid and ale-py, and thirty kills
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
long=$([ "${1:-}" = --long ] && echo 1 || echo)
venv=${GYM_VENV:-$root/target/gym-venv}
packages="gymnasium==1.4.0 pygame"
[ -z "$long" ] || packages+=" swig gymnasium[box2d,mujoco] minigrid ale-py opencv-python-headless packaging imageio"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
# shellcheck disable=SC2086
PATH=$venv/bin:$PATH "$venv/bin/pip" install -q --disable-pip-version-check $packages

export GRADUS_PYTHON=$venv/bin/python
# shellcheck disable=SC2046
cargo test --quiet -p gradus-envs --test gym -- --ignored $([ -n "$long" ] || echo --skip atari)
cargo build --quiet
gradus=$root/target/debug/gradus
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() { echo "gym: $*" >&2; exit 1; }
workers() { pgrep -fc "^$venv/bin/python -c .*" || true; }
no_orphans() {
  for _ in $(seq 30); do [ "$(workers)" = 0 ] && return; sleep 0.2; done
  fail "$1: expected no worker, got $(workers)"
}

# a training, its evaluation, its picture; the same numbers for one thread and for two
"$gradus" train ppo gym:CartPole-v1 --steps 20k --threads 1 --out one --quiet
"$gradus" train ppo gym:CartPole-v1 --steps 20k --threads 2 --out two --quiet
cmp one/metrics.csv two/metrics.csv
"$gradus" eval one --episodes 5 | grep -q '^evaluation: mean '
"$gradus" play one --gif one.gif | grep -q 'ppo on CartPole-v1'
"$gradus" values one >/dev/null 2>&1 || true # values of a box are not drawn, and it must not hang
"$gradus" check gym:CartPole-v1 | tail -1
"$gradus" doctor --python "$GRADUS_PYTHON" | grep -q 'gymnasium 1.4.0'
# the folder remembers its interpreter
env -u GRADUS_PYTHON "$gradus" eval one --episodes 2 | grep -q '^evaluation: mean '
no_orphans "after trainings"

# one action, no time limit; episodes.csv has the seeds that `reset` got
cat >one_action.py <<'END'
import gymnasium, numpy

class One(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (1,)), gymnasium.spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        self.t = 0
        open("seeds", "a").write(f"{seed}\n")
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        self.t += 1
        return numpy.zeros(1, numpy.float32), float(self.t), self.t == 9, False, {}

gymnasium.register("One-v0", One)
END
said=$(PYTHONPATH=. "$gradus" train ppo gym:one_action/One-v0 --steps 2k --out only 2>&1)
grep -q 'it has one action, so all policies are the same' <<<"$said" || fail "expected one action to be announced"
grep -q 'it has no time limit' <<<"$said" || fail "expected that no time limit is announced"
tail -n +2 only/episodes.csv | cut -d, -f3 | sort -u | grep -vxFf seeds && fail "expected seeds that reset got"

# the preprocessing of Atari games, of another environment
code=0
said=$("$gradus" train ppo gym:CartPole-v1 --set wrappers.atari=lives 2>&1) || code=$?
[ "$code" = 2 ] && grep -q 'wrappers.atari: expected off, because CartPole-v1 is no Atari game of Gymnasium without wrappers, obs_type and frameskip, got lives' <<<"$said" || fail "expected that wrappers.atari is refused, got $said"

# resumed with another version of the package
sed -i 's/^gymnasium = .*/gymnasium = "1.0.0"/' one/gym.toml
"$gradus" train --resume one --steps 30k 2>&1 | grep -q 'gymnasium: the run began with version 1.0.0, and goes on with 1.4.0'

# kills: of a worker, which ends the training in one line, and of the program, which leaves no worker
kills=$([ -n "$long" ] && echo 30 || echo 6)
"$gradus" train ppo gym:CartPole-v1 --steps 400k --out killed --quiet &
pid=$!
for i in $(seq "$kills"); do
  sleep "1.$((RANDOM % 10))"
  if [ $((i % 2)) = 0 ]; then
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  else
    pkill -9 -n -f "^$venv/bin/python -c .*" || true
    code=0
    wait "$pid" 2>said || code=$?
    [ "$code" = 2 ] || [ "$code" = 0 ] || fail "a killed worker: expected the code 2, got $code"
  fi
  no_orphans "kill $i"
  "$gradus" train --resume killed --quiet 2>said &
  pid=$!
done
wait "$pid" || fail "after $kills kills: $(cat said)"
"$gradus" verify killed >/dev/null

# Ctrl-C, which the terminal sends to the program and to its workers
"$GRADUS_PYTHON" - "$gradus" <<'END' || fail "Ctrl-C"
import os, signal, subprocess, sys, time
command = [sys.argv[1], "train", "ppo", "gym:CartPole-v1", "--steps", "10m", "--out", "stopped"]
default = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
run = subprocess.Popen(command, start_new_session=True, preexec_fn=default, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
time.sleep(3)
os.killpg(run.pid, signal.SIGINT)
said = run.communicate(timeout=60)[0]
assert run.returncode == 130 and "continue with: gradus train --resume stopped" in said, (run.returncode, said)
END
no_orphans "Ctrl-C"

# many workers: one for each of the threads
threads=$([ -n "$long" ] && echo 200 || echo 20)
"$gradus" train ppo gym:CartPole-v1 --envs "$threads" --threads "$threads" --steps 30k --out many --quiet
no_orphans "many workers"

if [ -n "$long" ]; then
  for world in LunarLander-v3 "LunarLander-v3?continuous=true" BipedalWalker-v3 HalfCheetah-v5 minigrid/MiniGrid-Empty-5x5-v0 "ALE/Pong-v5?obs_type=ram"; do
    "$gradus" train ppo "gym:$world" --steps 5k --quiet
    echo "gym: trained on $world"
  done
  "$gradus" train sac gym:HalfCheetah-v5 --steps 2k --quiet
  "$gradus" train ppo gym:ALE/Breakout-v5 --steps 4k --quiet --out breakout
  "$gradus" train --resume breakout --steps 6k --quiet
  "$gradus" eval breakout --episodes 2 | grep -q '^evaluation: mean '
  "$gradus" train dqn gym:PongNoFrameskip-v4 --steps 3k --set dqn.learning_starts=1k --quiet
fi
echo "gym: all right after $kills kills"
