"""Trains PPO of `gradus_rl.sb3` and of Stable-Baselines3 with the same arguments and many seeds, and evaluates both in Gymnasium's environments.

    python sb3_seeds.py --to results/python/seeds.csv [--seeds 20] [--table]

Appends a row for each seed: what is there is not trained again, so the script can be stopped and continued. `return` is the mean of 100 greedy episodes with the final parameters. Needs
gradus-rl and stable-baselines3. With `--table` it writes only `summary.csv`, beside the rows.
"""

import argparse
import csv
import pathlib
import time

import gymnasium
import numpy as np

PENDULUM = {"n_steps": 1024, "gamma": 0.9, "learning_rate": 1e-3, "use_sde": True, "sde_sample_freq": 4}  # rl-zoo's, with four environments
TASKS = {"CartPole-v1": (50_000, 1, {}), "Acrobot-v1": (50_000, 1, {}), "Pendulum-v1": (100_000, 4, PENDULUM)}


def model_of(library, task, seed):
    """Returns an agent before its training."""
    steps, n_envs, arguments = TASKS[task]
    if library == "gradus":
        from gradus_rl.sb3 import PPO

        env = task if n_envs == 1 else gymnasium.make_vec(f"gradus/{task}", num_envs=n_envs, vectorization_mode="vector_entry_point", autoreset_mode="SameStep")
        return PPO("MlpPolicy", env, seed=seed, **arguments)
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    return PPO("MlpPolicy", make_vec_env(task, n_envs, seed=seed), device="cpu", seed=seed, **arguments)


def returns(model, task, seed, episodes=100):
    """Plays greedy episodes, each with a start of its own."""
    env, all = gymnasium.make(task), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=1_000_000 + 1000 * seed + episode)
        total, is_over = 0.0, False
        while not is_over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, is_over = total + float(reward), terminated or truncated
        all.append(total)
    return float(np.mean(all))


def summarise(path):
    """Writes statistics of all rows."""
    from gradus_rl.statistics import interquartile_mean, probability_of_improvement

    rows = list(csv.DictReader(path.open()))
    with path.with_name("summary.csv").open("w") as file:
        file.write("task,seeds,gradus,sb3,better,low,high,seconds,sb3_seconds\n")
        for task in TASKS:
            own, other = ([row for row in rows if row["task"] == task and row["library"] == library] for library in ("gradus", "sb3"))
            seeds = min(len(own), len(other))
            if seeds < 2:
                continue
            scores = [[float(row["return"]) for row in side[:seeds]] for side in (own, other)]
            better = probability_of_improvement(*scores)
            means = [f"{interquartile_mean(side).point:.1f}" for side in scores]
            seconds = [f"{np.median([float(row['seconds']) for row in side]):.1f}" for side in (own, other)]
            file.write(",".join([task, str(seeds), *means, *(f"{number:.2f}" for number in better), *seconds]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if not args.to.exists():
        args.to.write_text("library,task,seed,steps,seconds,return\n")
    done = {(row["library"], row["task"], int(row["seed"])) for row in csv.DictReader(args.to.open())}
    for seed in range(1, args.seeds + 1) if not args.table else []:
        for task, (steps, _, _) in TASKS.items():
            for library in ("gradus", "sb3"):
                if (library, task, seed) in done:
                    continue
                model, begin = model_of(library, task, seed), time.process_time()
                model.learn(steps)
                seconds = time.process_time() - begin
                with args.to.open("a") as file:
                    file.write(f"{library},{task},{seed},{model.num_timesteps},{seconds:.1f},{returns(model, task, seed):.3f}\n")
    summarise(args.to)


if __name__ == "__main__":
    main()
