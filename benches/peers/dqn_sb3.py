"""Measures steps per second of DQN on CartPole, environment steps and updates together, on a CPU: Stable-Baselines3's, or SBX's, which has the same
interface and is compiled by JAX.

    python dqn_sb3.py --settings zoo
    python dqn_sb3.py --settings cleanrl --toolkit sbx

Its last line is `sb3: 1234 steps/s` or `sbx: 1234 steps/s`: the speed after the first updates, which include compilation. `zoo` has the settings of
rl-zoo for CartPole, `cleanrl` those of CleanRL's dqn.py. Epsilon has the value that it has at the end of a training. OMP_NUM_THREADS sets PyTorch's number
of threads, and `--threads` the number of cores of SBX.
"""

import argparse
import os
import time

SETTINGS = {
    "zoo": dict(
        learning_rate=2.3e-3, batch_size=64, buffer_size=100_000, learning_starts=1000, gamma=0.99, target_update_interval=10, train_freq=256,
        gradient_steps=128, exploration_initial_eps=0.04, exploration_final_eps=0.04, policy_kwargs={"net_arch": [256, 256]},
    ),
    "cleanrl": dict(
        learning_rate=2.5e-4, batch_size=128, buffer_size=10_000, learning_starts=10_000, gamma=0.99, target_update_interval=500, train_freq=10,
        gradient_steps=1, exploration_initial_eps=0.05, exploration_final_eps=0.05, policy_kwargs={"net_arch": [120, 84]},
    ),
}
# steps with updates before the clock starts
WARM = 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--settings", choices=SETTINGS, required=True)
    parser.add_argument("--toolkit", choices=["sb3", "sbx"], default="sb3")
    parser.add_argument("--steps", type=int, default=5000, help="steps that are timed")
    parser.add_argument("--threads", type=int, help="number of cores")
    args = parser.parse_args()
    # when XLA is loaded, it starts one thread for each core that the process may run on
    if args.threads and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])

    from stable_baselines3.common.callbacks import BaseCallback

    class Clock(BaseCallback):
        """Records when each rollout begins, which is when the previous updates end, and when the last updates end."""

        def __init__(self):
            super().__init__()
            self.marks = []

        def _on_rollout_start(self):
            self.marks.append((time.perf_counter(), self.num_timesteps))

        def _on_training_end(self):
            self.marks.append((time.perf_counter(), self.num_timesteps))

        def _on_step(self) -> bool:
            return True

    settings = SETTINGS[args.settings]
    if args.toolkit == "sb3":
        from stable_baselines3 import DQN

        # SBX does not clip the gradient norm; CleanRL's dqn.py does not either
        options = {"device": "cpu", "max_grad_norm": 10.0 if args.settings == "zoo" else float("inf")}
    else:
        from sbx import DQN

        options = {}
    model = DQN("MlpPolicy", "CartPole-v1", seed=1, **settings, **options)
    clock, warm = Clock(), settings["learning_starts"] + WARM
    model.learn(warm + args.steps, callback=clock)
    began, first = next(mark for mark in clock.marks if mark[1] >= warm)
    ended, last = clock.marks[-1]
    print(f"{args.toolkit}: {(last - first) / (ended - began):.0f} steps/s")


if __name__ == "__main__":
    main()
