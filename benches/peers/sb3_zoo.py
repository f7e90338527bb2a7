"""Trains A2C and TRPO of Stable-Baselines3 in LunarLander-v3 with rl-zoo's settings (of LunarLander-v2), plays 100 greedy episodes with the final policy, and adds a row for each seed.

    python sb3_zoo.py --to results/gymnasium/sb3.csv [--seeds 1 2 3]

Needs stable-baselines3, sb3-contrib and gymnasium[box2d]. A seed that has a row is not trained again.
"""

import argparse
import csv
import pathlib

import gymnasium
import numpy as np
from sb3_contrib import TRPO
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

ENVIRONMENT, STEPS, EPISODES = "LunarLander-v3", 200_000, 100
AGENTS = {
    "a2c": (A2C, 8, {"n_steps": 5, "gamma": 0.995, "ent_coef": 1e-5, "learning_rate": lambda left: 8.3e-4 * left}),
    "trpo": (TRPO, 2, {"n_steps": 512, "gamma": 0.99, "gae_lambda": 0.98, "cg_damping": 0.01, "n_critic_updates": 15}),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    if not args.to.exists():
        args.to.write_text("agent,environment,seed,return,deviation\n")
    done = {(row["agent"], int(row["seed"])) for row in csv.DictReader(args.to.open())}
    for seed in args.seeds:
        for agent, (kind, envs, settings) in AGENTS.items():
            if (agent, seed) in done:
                continue
            model = kind("MlpPolicy", make_vec_env(ENVIRONMENT, envs, seed=seed), seed=seed, device="cpu", **settings)
            model.learn(STEPS)
            played = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make(ENVIRONMENT))
            played.reset(seed=1)
            returns, _ = evaluate_policy(model, played, EPISODES, deterministic=True, return_episode_rewards=True)
            with args.to.open("a") as file:
                file.write(f"{agent},{ENVIRONMENT},{seed},{np.mean(returns):.1f},{np.std(returns):.1f}\n")


if __name__ == "__main__":
    main()
