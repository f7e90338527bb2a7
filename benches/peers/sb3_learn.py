"""Times `PPO("MlpPolicy", "CartPole-v1").learn(50_000)` of Stable-Baselines3 and of `gradus_rl.sb3`, with the environment of Gradus and with Gymnasium's in Python.

    python sb3_learn.py --to results/python/speed.csv [--rounds 5]

Each round trains the three in turn, in one process, with PyTorch's default number of threads, and adds their seconds. Needs gradus-rl and stable-baselines3, and a machine that does nothing else.
"""

import argparse
import pathlib
import time

import gymnasium
import gradus_rl.sb3
import stable_baselines3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    python = lambda: gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 500)
    kinds = {
        "gradus": lambda seed: gradus_rl.sb3.PPO("MlpPolicy", "CartPole-v1", seed=seed),
        "gradus-python": lambda seed: gradus_rl.sb3.PPO("MlpPolicy", python(), seed=seed),
        "sb3": lambda seed: stable_baselines3.PPO("MlpPolicy", "CartPole-v1", seed=seed, device="cpu"),
    }
    if not args.to.exists():
        args.to.write_text("program,round,seconds\n")
    for round in range(1, args.rounds + 1):
        for kind, make in kinds.items():
            model = make(round)
            begin = time.perf_counter()
            model.learn(50_000)
            with args.to.open("a") as file:
                file.write(f"{kind},{round},{time.perf_counter() - begin:.2f}\n")


if __name__ == "__main__":
    main()
