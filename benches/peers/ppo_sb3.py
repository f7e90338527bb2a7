"""Measures steps per second of Stable-Baselines3's PPO on CartPole, rollouts and updates together, on a CPU.

    python ppo_sb3.py --settings defaults
    python ppo_sb3.py --settings cleanrl

Its last line is `sb3: 1234 steps/s`, the speed of all updates after the first. `defaults` is `PPO("MlpPolicy", "CartPole-v1")`: one environment,
2048 steps, 10 epochs of minibatches of 64. `cleanrl` has the settings of CleanRL's ppo.py. OMP_NUM_THREADS sets PyTorch's number of threads.
"""

import argparse
import time

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

CLEANRL = {
    "n_steps": 128,
    "batch_size": 128,
    "n_epochs": 4,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "clip_range_vf": 0.2,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "learning_rate": lambda left: 2.5e-4 * left,
}


class Clock(BaseCallback):
    """Records when each rollout begins, which is when the previous update ends, and when the last update ends."""

    def __init__(self):
        super().__init__()
        self.marks = []

    def _on_rollout_start(self):
        self.marks.append((time.perf_counter(), self.num_timesteps))

    def _on_training_end(self):
        self.marks.append((time.perf_counter(), self.num_timesteps))

    def _on_step(self) -> bool:
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--settings", choices=["defaults", "cleanrl"], required=True)
    parser.add_argument("--steps", type=int, default=20_000)
    args = parser.parse_args()
    if args.settings == "defaults":
        model = PPO("MlpPolicy", "CartPole-v1", device="cpu", seed=1)
    else:
        model = PPO("MlpPolicy", make_vec_env("CartPole-v1", 4, seed=1), device="cpu", seed=1, **CLEANRL)
    clock = Clock()
    batch = model.n_steps * model.n_envs
    model.learn(max(args.steps, batch) + batch, callback=clock)
    (began, first), (ended, last) = clock.marks[1], clock.marks[-1]
    print(f"sb3: {(last - first) / (ended - began):.0f} steps/s")


if __name__ == "__main__":
    main()
