#!/usr/bin/env python3
"""Measures PPO with an LSTM on CartPole without velocities: sb3-contrib's RecurrentPPO and Gradus, in turn, on one thread each.

    python benches/peers/recurrent_ppo.py [--rounds 3] [--steps 8192] [--gradus target/debug/gradus]

Both have rl-zoo's settings of ppo_lstm for CartPoleNoVel-v1: 8 environments, rollouts of 32 steps, 20 epochs of one minibatch, a layer of 64 and an LSTM of 64 units for the actor and for
the critic. Prints steps per second of the whole training; Gradus makes ten times as many steps. Needs stable-baselines3 and sb3-contrib.
"""
import argparse
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--steps", type=int, default=8192)
parser.add_argument("--gradus", default="target/debug/gradus")
args = parser.parse_args()


def peer():
    import gymnasium
    import numpy
    import torch
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    class Masked(gymnasium.ObservationWrapper):
        def observation(self, observation):
            return observation * numpy.float32([1, 0, 1, 0])

    torch.set_num_threads(1)
    envs = make_vec_env(lambda: Masked(gymnasium.make("CartPole-v1")), 8, seed=1)
    policy = dict(ortho_init=False, activation_fn=torch.nn.ReLU, lstm_hidden_size=64, enable_critic_lstm=True, net_arch=dict(pi=[64], vf=[64]))
    model = RecurrentPPO(
        "MlpLstmPolicy", VecNormalize(envs), n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0, learning_rate=1e-3,
        clip_range=0.2, policy_kwargs=policy, seed=1, device="cpu",
    )
    begin = time.perf_counter()
    model.learn(args.steps)
    return args.steps / (time.perf_counter() - begin)


def gradus():
    with tempfile.TemporaryDirectory() as folder:
        command = [args.gradus, "train", "ppo", "cartpole-masked", "--preset", "zoo", "--steps", str(10 * args.steps), "--threads", "1", "--quiet", "--out", f"{folder}/run"]
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return 10 * args.steps / (time.perf_counter() - begin)


for _ in range(args.rounds):
    theirs, ours = peer(), gradus()
    print(f"sb3-contrib {theirs:.0f} steps/s, Gradus {ours:.0f} steps/s, ratio {ours / theirs:.1f}", flush=True)
