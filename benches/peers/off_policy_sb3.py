"""Measures steps per second of DQN on CartPole, or of SAC, TD3 or DDPG on Pendulum, environment steps and updates together, on a CPU:
Stable-Baselines3's agents, or SBX's, which have the same interface and are compiled by JAX.

    python off_policy_sb3.py --work dqn-zoo
    python off_policy_sb3.py --work sac --toolkit sbx

Its last line is `sb3: 1234 steps/s` or `sbx: 1234 steps/s`: the speed after the first updates, which include compilation. `dqn-zoo` has the settings of
rl-zoo, `dqn-cleanrl` those of CleanRL's dqn.py, with the epsilon of the end of a training. `sac`, `td3` and `ddpg` have rl-zoo's networks and batches of
256 decisions, `td3-256` a 256-256 network, `sac-small` and `td3-small` 64-64 networks and batches of 100; one update follows every step.
OMP_NUM_THREADS sets PyTorch's number of threads, and `--threads` the number of cores of SBX.
"""

import argparse
import os
import time


def of_pendulum(agent, hidden, batch, learning_rate=1e-3, **settings):
    settings = dict(learning_rate=learning_rate, batch_size=batch, buffer_size=200_000, learning_starts=100, train_freq=1, gradient_steps=1, **settings)
    return agent, "Pendulum-v1", dict(settings, policy_kwargs={"net_arch": list(hidden)})


WORK = {
    "dqn-zoo": ("DQN", "CartPole-v1", dict(
        learning_rate=2.3e-3, batch_size=64, buffer_size=100_000, learning_starts=1000, gamma=0.99, target_update_interval=10, train_freq=256,
        gradient_steps=128, exploration_initial_eps=0.04, exploration_final_eps=0.04, policy_kwargs={"net_arch": [256, 256]},
    )),
    "dqn-cleanrl": ("DQN", "CartPole-v1", dict(
        learning_rate=2.5e-4, batch_size=128, buffer_size=10_000, learning_starts=10_000, gamma=0.99, target_update_interval=500, train_freq=10,
        gradient_steps=1, exploration_initial_eps=0.05, exploration_final_eps=0.05, policy_kwargs={"net_arch": [120, 84]},
    )),
    "sac": of_pendulum("SAC", (256, 256), 256),
    "sac-small": of_pendulum("SAC", (64, 64), 100),
    "td3": of_pendulum("TD3", (400, 300), 256, gamma=0.98),
    "td3-256": of_pendulum("TD3", (256, 256), 256, gamma=0.98),
    "td3-small": of_pendulum("TD3", (64, 64), 100, gamma=0.98),
    "ddpg": of_pendulum("DDPG", (400, 300), 256, gamma=0.98),
}
# steps with updates before the clock starts
WARM = {"DQN": 1024, "SAC": 256, "TD3": 256, "DDPG": 256}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--work", choices=WORK, required=True)
    parser.add_argument("--toolkit", choices=["sb3", "sbx"], default="sb3")
    parser.add_argument("--steps", type=int, help="steps that are timed [default: 5000 of DQN, otherwise 1000]")
    parser.add_argument("--threads", type=int, help="number of cores")
    args = parser.parse_args()
    # when XLA is loaded, it starts one thread for each core that the process may run on
    if args.threads and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])

    import numpy
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.noise import NormalActionNoise

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

    agent, world, settings = WORK[args.work]
    if args.toolkit == "sb3":
        import stable_baselines3 as toolkit

        options = {"device": "cpu"}
        if agent == "DQN":
            # SBX does not clip the gradient norm; CleanRL's dqn.py does not either
            options["max_grad_norm"] = 10.0 if args.work == "dqn-zoo" else float("inf")
    else:
        import sbx as toolkit

        options = {}
    if agent in ("TD3", "DDPG"):
        options["action_noise"] = NormalActionNoise(numpy.zeros(1), 0.1 * numpy.ones(1))
    model = getattr(toolkit, agent)("MlpPolicy", world, seed=1, **settings, **options)
    clock, warm = Clock(), settings["learning_starts"] + WARM[agent]
    model.learn(warm + (args.steps or (5000 if agent == "DQN" else 1000)), callback=clock)
    began, first = next(mark for mark in clock.marks if mark[1] >= warm)
    ended, last = clock.marks[-1]
    print(f"{args.toolkit}: {(last - first) / (ended - began):.0f} steps/s")


if __name__ == "__main__":
    main()
