"""Measures the way to environments of Gymnasium, `gym:`, beside Gymnasium's own vectors, in turn on the same cores.

    python benches/peers/gym_bridge.py [--rounds 5] [--seconds 3] [--to results/gymnasium/bridge.csv]
    python benches/peers/gym_bridge.py --training 4 [--rounds 5] [--to results/gymnasium/training.csv]

Run it with a Python that has `gymnasium[box2d,mujoco]`; stable-baselines3 for `--training`. GRADUS names the program. Rows: steps per second of 8
environments with random actions, and processor time of all processes for each step, by Gradus with one worker process (`one`), by Gradus with two (`two`), by
SyncVectorEnv and by AsyncVectorEnv; observations of 84 x 84 x 4 bytes in bytes per second. With `--training 4`: seconds for 65 536 steps of PPO on
LunarLander, for the same workers that take the recorded actions (the example gym_replay, which must be built), and for Stable-Baselines3.
"""

import argparse
import csv
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORLDS = ["CartPole-v1", "LunarLander-v3", "HalfCheetah-v5"]
IMAGES = "tests.gym.worlds:Images-v0"
ENVS = 8
KINDS = ("one", "two", "sync", "async")


def peer(kind, name, seconds):
    """Prints steps per second of one of Gymnasium's vectors."""
    import gymnasium
    import numpy as np

    vector = gymnasium.make_vec(name, num_envs=ENVS, vectorization_mode=kind)
    vector.reset(seed=1)
    vector.action_space.seed(1)
    actions = [vector.action_space.sample() for _ in range(64)]
    begin, steps = None, 0
    while begin is None or time.perf_counter() < begin + seconds:
        for action in actions:
            vector.step(action)
        if begin is None:
            begin = time.perf_counter()
        else:
            steps += len(actions) * ENVS
    print(f"{steps / (time.perf_counter() - begin):.1f}", flush=True)
    vector.close()


def train_sb3(name, steps):
    """Trains PPO of Stable-Baselines3 with rl-zoo's settings for LunarLander, and prints the seconds."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    model = PPO("MlpPolicy", make_vec_env(name, n_envs=16), n_steps=1024, batch_size=64, n_epochs=4, gamma=0.999, gae_lambda=0.98, ent_coef=0.01, device="cpu")
    begin = time.perf_counter()
    model.learn(steps)
    print(f"{time.perf_counter() - begin:.3f}", flush=True)


def training(updates, rounds, to):
    """Trains in turn with Gradus and Stable-Baselines3, and lets the workers of Gradus take the recorded actions."""
    example = os.environ.get("REPLAY", str(ROOT / "target/debug/examples/gym_replay"))
    steps = updates * 16 * 1024
    rows = [("program", "round", "seconds")]
    for round in range(1, rounds + 1):
        # three lines: round, seconds of the training, seconds of the workers
        output = subprocess.run([example, "gym:LunarLander-v3", str(updates), "3"], capture_output=True, text=True, check=True).stdout
        for pair in re.findall(r"(?m)^[0-9]+, ([0-9.]+), ([0-9.]+)$", output):
            rows += [(program, round, seconds) for program, seconds in zip(("gradus", "environment"), pair)]
        command = [sys.executable, __file__, "--sb3", "LunarLander-v3", str(steps)]
        rows.append(("sb3", round, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]))
        print(*rows[-7:], sep="\n", flush=True)
    of = lambda program: [float(row[2]) for row in rows[1:] if row[0] == program]
    ratios = [a / b for a, b in zip(of("gradus"), of("environment"))]
    print(f"medians: {', '.join(f'{program} {statistics.median(of(program)):.2f} s' for program in ('gradus', 'environment', 'sb3'))}; ratio {statistics.median(ratios):.2f}")
    write(rows, to)


def write(rows, to):
    if to:
        with open(to, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def processor_seconds(session):
    """Of all processes of a session."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[3]) == session:
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def measured(command, cwd, seconds):
    """Runs a command in a session of its own. Returns its last number, and the processors that it used while it was stepping."""
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    seen = []
    while process.poll() is None:
        seen.append((time.perf_counter(), processor_seconds(process.pid)))
        time.sleep(0.1)
    output = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:4])}: ended with code {process.returncode}")
    end = seen[-1][0]
    within = [(t, s) for t, s in seen if end - seconds + 0.3 < t < end - 0.2]
    (t0, s0), (t1, s1) = within[0], within[-1]
    words = output.split("steps/s")[0].split() if "steps/s" in output else output.split()
    rate = float(words[-2]) * 1e6 if words[-1] == "million" else float(words[-1])
    return rate, (s1 - s0) / (t1 - t0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--to")
    parser.add_argument("--peer", nargs=2)
    parser.add_argument("--sb3", nargs=2)
    parser.add_argument("--training", type=int, metavar="UPDATES", help="only this")
    arguments = parser.parse_args()
    if arguments.sb3:
        return train_sb3(arguments.sb3[0], int(arguments.sb3[1]))
    if arguments.peer:
        return peer(*arguments.peer, arguments.seconds)
    gradus = os.environ.get("GRADUS", str(ROOT / "target/debug/gradus"))
    os.environ["GRADUS_PYTHON"] = sys.executable
    if arguments.training:
        return training(arguments.training, arguments.rounds, arguments.to)
    rows = []
    say = lambda *row: (rows.append(row), print(",".join(map(str, row)), flush=True))
    say("what", "environment", "program", "round", "rate", "microseconds_of_processors_per_step")
    for round in range(1, arguments.rounds + 1):
        for name in WORLDS:
            for kind in KINDS:
                own = [gradus, "bench", "env", f"gym:{name}", "--envs", str(ENVS), "--threads", "2" if kind == "two" else "1"]
                other = [sys.executable, __file__, "--peer", kind, name, "--seconds", str(arguments.seconds)]
                rate, used = measured(own if kind in ("one", "two") else other, ROOT / "envs", 3.0)
                say("steps/s", name, kind, round, f"{rate:.0f}", f"{1e6 * used / rate:.2f}")
        for kind in KINDS[:2]:
            own = [gradus, "bench", "env", f"gym:{IMAGES}", "--envs", str(ENVS), "--threads", "2" if kind == "two" else "1"]
            rate, used = measured(own, ROOT / "envs", 3.0)
            say("bytes/s", "84 x 84 x 4", kind, round, f"{rate * 84 * 84 * 4:.0f}", f"{1e6 * used / rate:.2f}")
    print()
    for what, name in sorted({(row[0], row[1]) for row in rows[1:]}):
        of = lambda kind, i: [float(row[i]) for row in rows[1:] if row[:3] == (what, name, kind)]
        kinds = [kind for kind in KINDS if of(kind, 4)]
        print(what, name, *(f"{kind}: {statistics.median(of(kind, 4)):.4g} ({statistics.median(of(kind, 5)):.1f} us)" for kind in kinds), sep=", ")
        for own, other in [(own, other) for own in kinds[:2] for other in kinds[2:]]:
            ratios = [a / b for a, b in zip(of(own, 4), of(other, 4))]
            print(f"  {own} / {other}: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")
    write(rows, arguments.to)


if __name__ == "__main__":
    main()
