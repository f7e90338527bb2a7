"""Final returns of DQN, DDPG, TD3 and SAC: Gradus and Stable-Baselines3 with the same settings, many seeds each.

    python3 benches/peers/off_policy.py --to results/off-policy/seeds.csv                  # 20 seeds of each side on each task
    python3 benches/peers/off_policy.py --to seeds.csv --tasks cartpole --seeds 3 --jobs 1

Every run appends a row to the table: task, side, seed, the mean return of 100 greedy episodes with the final parameters, and the mean return of the last
100 training episodes. A run whose row is already there is not repeated, so the script can be stopped and started again. `GRADUS` names our binary; by default
the script builds the binary of `cargo run`. `PYTHON_SB3` names an interpreter with the packages of `requirements-sb3.txt`; by default the script creates one.
Runs take place at the same time, so the script measures no speed.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COLUMNS = ["task", "side", "seed", "steps", "greedy_return", "last_100_training_episodes"]

# rl_zoo3 2.9.2, hyperparams; everything else is Stable-Baselines3's default. `noise` is the standard deviation of Gaussian action noise.
TD3 = dict(learning_rate=1e-3, gamma=0.98, buffer_size=200_000, learning_starts=10_000, train_freq=1, gradient_steps=1)
TASKS = {
    "cartpole": {
        "agent": "dqn",
        "environment": "cartpole",
        "preset": "zoo",
        "id": "CartPole-v1",
        "steps": 50_000,
        "policy": dict(net_arch=[256, 256]),
        "settings": dict(
            learning_rate=2.3e-3, batch_size=64, buffer_size=100_000, learning_starts=1000, gamma=0.99, target_update_interval=10,
            train_freq=256, gradient_steps=128, exploration_fraction=0.16, exploration_final_eps=0.04,
        ),
    },
    "acrobot": {
        "agent": "dqn",
        "environment": "acrobot",
        "id": "Acrobot-v1",
        "steps": 100_000,
        "policy": dict(net_arch=[256, 256]),
        "settings": dict(
            learning_rate=6.3e-4, batch_size=128, buffer_size=50_000, learning_starts=0, gamma=0.99, target_update_interval=250,
            train_freq=4, gradient_steps=-1, exploration_fraction=0.12, exploration_final_eps=0.1,
        ),
    },
    "mountain-car": {
        "agent": "dqn",
        "environment": "mountain-car",
        "id": "MountainCar-v0",
        "steps": 120_000,
        "policy": dict(net_arch=[256, 256]),
        "settings": dict(
            learning_rate=4e-3, batch_size=128, buffer_size=10_000, learning_starts=1000, gamma=0.98, target_update_interval=600,
            train_freq=16, gradient_steps=8, exploration_fraction=0.2, exploration_final_eps=0.07,
        ),
    },
    "pendulum-ddpg": {
        "agent": "ddpg",
        "environment": "pendulum",
        "id": "Pendulum-v1",
        "steps": 20_000,
        "policy": dict(net_arch=[400, 300]),
        "settings": TD3,
        "noise": 0.1,
    },
    "pendulum-td3": {
        "agent": "td3",
        "environment": "pendulum",
        "id": "Pendulum-v1",
        "steps": 20_000,
        "policy": dict(net_arch=[400, 300]),
        "settings": TD3,
        "noise": 0.1,
    },
    "pendulum-sac": {
        "agent": "sac",
        "environment": "pendulum",
        "id": "Pendulum-v1",
        "steps": 20_000,
        "policy": {},
        "settings": dict(learning_rate=1e-3),
    },
    "mountain-car-continuous-sac": {
        "agent": "sac",
        "environment": "mountain-car-continuous",
        "id": "MountainCarContinuous-v0",
        "steps": 50_000,
        "policy": dict(log_std_init=-3.67, net_arch=[64, 64], use_expln=True),
        "settings": dict(
            learning_rate=3e-4, buffer_size=50_000, batch_size=512, ent_coef=0.1, train_freq=32, gradient_steps=32, gamma=0.9999,
            tau=0.01, learning_starts=0, use_sde=True,
        ),
    },
}
EPISODES = 100


def sb3(task: str, seed: int) -> dict:
    """Trains and evaluates an agent of Stable-Baselines3. Runs in the interpreter that has it."""
    import gymnasium
    import numpy
    import stable_baselines3
    import torch
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.noise import NormalActionNoise

    torch.set_num_threads(1)
    about = TASKS[task]
    env, settings = Monitor(gymnasium.make(about["id"])), dict(about["settings"])
    if "noise" in about:
        width = env.action_space.shape[0]
        settings["action_noise"] = NormalActionNoise(numpy.zeros(width), about["noise"] * numpy.ones(width))
    agent = getattr(stable_baselines3, about["agent"].upper())
    model = agent("MlpPolicy", env, seed=seed, device="cpu", policy_kwargs=about["policy"], **settings)
    model.learn(about["steps"])
    last = float(numpy.mean([episode["r"] for episode in model.ep_info_buffer]))
    env, returns = gymnasium.make(about["id"]), []
    for episode in range(EPISODES):
        # seeds that no training uses
        observation, _ = env.reset(seed=1_000_000 + 1000 * seed + episode)
        total, done = 0.0, False
        while not done:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    return {"steps": model.num_timesteps, "greedy_return": float(numpy.mean(returns)), "last_100_training_episodes": last}


def gradus(binary: str, task: str, seed: int) -> dict:
    """Trains and evaluates an agent of Gradus."""
    agent, environment = (TASKS[task][key] for key in ("agent", "environment"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        run = lambda *arguments: subprocess.run([binary, *arguments], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
        run("train", agent, environment, "--preset", TASKS[task].get("preset", "default"), "--seed", str(seed), "--threads", "1", "--quiet", "--out", str(out))
        with (out / "episodes.csv").open() as table:
            returns = [float(row["return"]) for row in csv.DictReader(table)][-EPISODES:]
        with (out / "metrics.csv").open() as table:
            steps = int([row["time/total_timesteps"] for row in csv.DictReader(table)][-1])
        # every seed has episodes of its own, as on the other side: with the same episodes for all seeds, their luck would count as a difference
        evaluation = json.loads(run("eval", str(out), "--episodes", str(EPISODES), "--seed", str(1_000_000 + seed), "--json"))
    greedy = evaluation["returns"]
    return {"steps": steps, "greedy_return": sum(greedy) / len(greedy), "last_100_training_episodes": sum(returns) / len(returns)}


def done(path: Path) -> set:
    """Returns the runs whose rows are in the table."""
    if not path.exists():
        return set()
    with path.open() as table:
        return {(row["task"], row["side"], int(row["seed"])) for row in csv.DictReader(table)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--sides", nargs="+", choices=["gradus", "sb3"], default=["gradus", "sb3"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--run-sb3", nargs=2, metavar=("TASK", "SEED"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run_sb3:
        task, seed = arguments.run_sb3
        print(json.dumps(sb3(task, int(seed))))
        return
    if arguments.to is None:
        parser.error("the following arguments are required: --to")

    sys.path.insert(0, str(HERE))
    from install import python

    interpreter = python("sb3") if "sb3" in arguments.sides else None
    binary = os.environ.get("GRADUS")
    if binary is None and "gradus" in arguments.sides:
        subprocess.run(["cargo", "build", "--quiet", "--locked"], check=True, cwd=ROOT)
        binary = str(ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug" / "gradus")

    path, lock = arguments.to, Lock()
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    known = done(path)
    runs = [(task, side, seed) for task in arguments.tasks for seed in range(1, arguments.seeds + 1) for side in arguments.sides]

    def one(run):
        task, side, seed = run
        if run in known:
            return
        if side == "gradus":
            result = gradus(binary, task, seed)
        else:
            command = [interpreter, __file__, "--run-sb3", task, str(seed)]
            result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        with lock, path.open("a") as table:
            csv.DictWriter(table, COLUMNS, lineterminator="\n").writerow({"task": task, "side": side, "seed": seed, **result})
            table.flush()
            os.fsync(table.fileno())
        print(task, side, seed, result, flush=True)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(one, runs))
    # rows in the order of the runs, whatever order they finished in
    with path.open() as table:
        rows = list(csv.DictReader(table))
    rows.sort(key=lambda row: (list(TASKS).index(row["task"]), row["side"], int(row["seed"])))
    fresh = path.with_suffix(".new")
    with fresh.open("w") as table:
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    fresh.replace(path)


if __name__ == "__main__":
    main()
