#!/usr/bin/env python3
"""PPO on CartPole in plain PyTorch, with the algorithm and settings of the preset `cleanrl` and environments in NumPy.

    python3 benches/peers/ppo_pytorch.py [--device cpu] [--envs 4] [--rounds 9]
    python3 benches/peers/ppo_pytorch.py --device cuda --worlds device --envs 65536 --steps 32

With `--worlds device` the environments are tensors on the device, and a rollout copies nothing to the host. The learning rate is constant, unlike in
the preset. The last line is `pytorch: 2345 steps/s`, the median over slices of half a second. The
script has only the algorithm, without logs, statistics or a time-limit wrapper, so that only PyTorch limits its speed. It acts under no_grad, has
one optimiser with foreach, and synchronises only to pass actions to the environments.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from torch import nn


class CartPole:
    """Environments in lockstep, with Gymnasium's equations. An environment whose episode ends is reset within the step."""

    def __init__(self, envs: int, seed: int):
        self.random = np.random.default_rng(seed)
        self.state = self.random.uniform(-0.05, 0.05, (envs, 4))
        self.steps = np.zeros(envs, dtype=np.int64)

    def observations(self) -> np.ndarray:
        return self.state.astype(np.float32)

    def step(self, actions: np.ndarray):
        x, x_dot, theta, theta_dot = self.state.T
        force = np.where(actions == 1, 10.0, -10.0)
        cos, sin = np.cos(theta), np.sin(theta)
        temp = (force + 0.05 * theta_dot * theta_dot * sin) / 1.1
        theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        x_acc = temp - 0.05 * theta_acc * cos / 1.1
        self.state = np.stack([x + 0.02 * x_dot, x_dot + 0.02 * x_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc], axis=1)
        self.steps += 1
        done = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 12 * 2 * np.pi / 360) | (self.steps >= 500)
        if done.any():
            self.state[done] = self.random.uniform(-0.05, 0.05, (int(done.sum()), 4))
            self.steps[done] = 0
        return self.observations(), np.ones(len(actions), dtype=np.float32), done


class DeviceCartPole:
    """The same environments as tensors: every step computes each environment's next state and a new episode's, and selects one."""

    def __init__(self, envs: int, device: torch.device):
        self.device, self.envs, self.rewards = device, envs, torch.ones(envs, device=device)
        self.state, self.steps = self.fresh(), torch.zeros(envs, device=device)

    def fresh(self) -> torch.Tensor:
        return torch.rand(4, self.envs, device=self.device) * 0.1 - 0.05

    def observations(self) -> torch.Tensor:
        return self.state.T

    def step(self, actions: torch.Tensor):
        x, x_dot, theta, theta_dot = self.state
        force = actions * 20.0 - 10.0
        cos, sin = theta.cos(), theta.sin()
        temp = (force + 0.05 * theta_dot * theta_dot * sin) / 1.1
        theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        x_acc = temp - 0.05 * theta_acc * cos / 1.1
        state = self.state + 0.02 * torch.stack([x_dot, x_acc, theta_dot, theta_acc])
        self.steps += 1
        done = (state[0].abs() > 2.4) | (state[2].abs() > 12 * 2 * np.pi / 360) | (self.steps >= 500)
        self.state = torch.where(done, self.fresh(), state)
        self.steps *= ~done
        return self.observations(), self.rewards, done


def network(outputs: int, gain: float) -> nn.Sequential:
    layers = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)]
    for layer, scale in zip(layers[::2], (2**0.5, 2**0.5, gain)):
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


class Learner:
    def __init__(self, args):
        self.args, self.device = args, torch.device(args.device)
        self.on_device = args.worlds == "device"
        self.envs = DeviceCartPole(args.envs, self.device) if self.on_device else CartPole(args.envs, 1)
        self.actor, self.critic = network(2, 0.01).to(self.device), network(1, 1.0).to(self.device)
        parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimiser = torch.optim.Adam(parameters, lr=2.5e-4, eps=1e-5, foreach=True)
        self.parameters = parameters
        self.observation = self.there(self.envs.observations())
        self.done = torch.zeros(args.envs, device=self.device)

    def there(self, numbers):
        return torch.as_tensor(numbers, device=self.device)

    def rollout(self):
        steps, n = self.args.steps, self.args.envs
        kept = {name: torch.zeros((steps, n), device=self.device) for name in ("log_prob", "reward", "done", "value")}
        observations = torch.zeros((steps, n, 4), device=self.device)
        actions = torch.zeros((steps, n), dtype=torch.int64, device=self.device)
        with torch.no_grad():
            for t in range(steps):
                observations[t], kept["done"][t] = self.observation, self.done
                log_probs = torch.log_softmax(self.actor(self.observation), -1)
                action = torch.multinomial(log_probs.exp(), 1)
                kept["log_prob"][t] = log_probs.gather(1, action).squeeze(1)
                kept["value"][t] = self.critic(self.observation).squeeze(1)
                actions[t] = action.squeeze(1)
                observation, reward, done = self.envs.step(actions[t] if self.on_device else actions[t].cpu().numpy())
                self.observation, self.done = self.there(observation), self.there(done).float()
                kept["reward"][t] = self.there(reward)
            advantages, last = torch.zeros_like(kept["reward"]), 0.0
            value, done = self.critic(self.observation).squeeze(1), self.done
            for t in reversed(range(steps)):
                delta = kept["reward"][t] + 0.99 * value * (1 - done) - kept["value"][t]
                advantages[t] = last = delta + 0.99 * 0.95 * (1 - done) * last
                value, done = kept["value"][t], kept["done"][t]
        flat = [observations.reshape(-1, 4), actions.reshape(-1), kept["log_prob"].reshape(-1), advantages.reshape(-1)]
        return [*flat, (advantages + kept["value"]).reshape(-1), kept["value"].reshape(-1)]

    def update(self, rollout):
        n = len(rollout[0])
        for _ in range(4):
            for index in torch.randperm(n, device=self.device).chunk(self.args.minibatches):
                observations, actions, old, advantages, returns, values = [column[index] for column in rollout]
                all_log_probs = torch.log_softmax(self.actor(observations), -1)
                log_prob = all_log_probs.gather(1, actions.unsqueeze(1)).squeeze(1)
                entropy = -(all_log_probs.exp() * all_log_probs).sum(-1).mean()
                ratio = (log_prob - old).exp()
                advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
                surrogate = torch.max(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2)).mean()
                value = self.critic(observations).squeeze(1)
                clipped = values + (value - values).clamp(-0.2, 0.2)
                value_loss = 0.5 * torch.max((value - returns) ** 2, (clipped - returns) ** 2).mean()
                loss = surrogate - 0.01 * entropy + 0.5 * value_loss
                self.optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.parameters, 0.5)
                self.optimiser.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--worlds", choices=["host", "device"], default="host", help="where the environments step")
    parser.add_argument("--envs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--minibatches", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1, help="number of threads; small networks are slower with several threads")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    learner, rates = Learner(args), []
    for _ in range(args.rounds + 1):
        began, steps = time.perf_counter(), 0
        while time.perf_counter() - began < 0.5:
            learner.update(learner.rollout())
            steps += args.envs * args.steps
        if args.device != "cpu":
            torch.cuda.synchronize(args.device)
        rates.append(steps / (time.perf_counter() - began))
    print(f"pytorch: {statistics.median(rates[1:]):.0f} steps/s")


if __name__ == "__main__":
    main()
