#!/usr/bin/env python3
"""DQN on CartPole as one compiled JAX program, with the settings of our presets `zoo` and `cleanrl`.

    python3 benches/peers/dqn_jax.py --preset zoo [--rounds 9] [--threads 1]
    python3 benches/peers/dqn_jax.py --check

Epsilon has the value that it has at the end of a training. The last line is `jax: 12345 steps/s`, the median over slices of half a second, without
compilation. Environment, replay buffer, target network and updates are loops inside the program; the host only waits for the end of a slice. The
script needs only JAX. `--check` trains with rl-zoo's settings and falling epsilon, prints the mean episode length, and fails unless it exceeds 150
within 50 000 steps.
"""

import argparse
import os
import statistics
import sys
import time
from typing import NamedTuple


class Preset(NamedTuple):
    hidden: tuple
    rollout: int
    updates: int
    batch: int
    buffer: int
    starts: int
    learning_rate: float
    huber: bool
    max_grad_norm: float
    # rollouts between two copies of the target network
    target: int
    epsilon: float


PRESETS = {
    "zoo": Preset((256, 256), 256, 128, 64, 100_096, 1024, 2.3e-3, True, 10.0, 1, 0.04),
    "cleanrl": Preset((120, 84), 10, 1, 128, 10_000, 10_000, 2.5e-4, False, float("inf"), 50, 0.05),
}
GAMMA, EPSILON = 0.99, 1e-8


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="zoo")
    parser.add_argument("--rounds", type=int, default=9, help="slices that are timed")
    parser.add_argument("--threads", type=int, default=1, help="number of cores; small networks are slower on several cores")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="train, and fail unless the policy learns")
    return parser.parse_args()


# when XLA is loaded, it starts one thread for each core that the process may run on
args = arguments()
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])

import jax
import jax.numpy as jnp

P = PRESETS["zoo" if args.check else args.preset]


class Adam(NamedTuple):
    step: jax.Array
    mean: list
    square: list


class Buffer(NamedTuple):
    observation: jax.Array
    following: jax.Array
    action: jax.Array
    terminated: jax.Array
    # decisions written so far
    written: jax.Array


class Training(NamedTuple):
    network: list
    target: list
    adam: Adam
    state: jax.Array
    steps: jax.Array
    buffer: Buffer
    rollouts: jax.Array
    key: jax.Array
    # number of finished episodes, and the sum of their lengths
    episodes: jax.Array
    length: jax.Array


def network(key):
    widths = (4, *P.hidden, 2)
    layers = []
    for key, inputs, outputs in zip(jax.random.split(key, len(widths)), widths, widths[1:]):
        reach, (weight, bias) = inputs**-0.5, jax.random.split(key)
        layers.append((jax.random.uniform(weight, (inputs, outputs), minval=-reach, maxval=reach), jax.random.uniform(bias, (outputs,), minval=-reach, maxval=reach)))
    return layers


def forward(layers, x):
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    return x @ layers[-1][0] + layers[-1][1]


def step(state, steps, action, start):
    """Takes a step with Gymnasium's equations. Returns the observation after it, whether the episode terminated, and the next state."""
    x, x_dot, theta, theta_dot = state
    force = jnp.where(action == 1, 10.0, -10.0)
    cos, sin = jnp.cos(theta), jnp.sin(theta)
    temp = (force + 0.05 * theta_dot * theta_dot * sin) / 1.1
    theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
    x_acc = temp - 0.05 * theta_acc * cos / 1.1
    after = state + 0.02 * jnp.stack([x_dot, x_acc, theta_dot, theta_acc])
    terminated = (jnp.abs(after[0]) > 2.4) | (jnp.abs(after[2]) > 12 * 2 * jnp.pi / 360)
    done = terminated | (steps + 1 >= 500)
    return after, terminated, done, jnp.where(done, start, after), jnp.where(done, 0, steps + 1)


def collect(training, epsilon):
    def decide(carry, chance):
        (state, steps, episodes, length), (explores, random, start) = carry, chance
        action = jnp.where(explores, random, jnp.argmax(forward(training.network, state)))
        after, terminated, done, following, next_steps = step(state, steps, action, start)
        carry = following, next_steps, episodes + done, length + jnp.where(done, steps + 1, 0)
        return carry, (state, after, action, terminated)

    key, explores, random, start = jax.random.split(training.key, 4)
    n = P.rollout
    chance = (
        jax.random.uniform(explores, (n,)) < epsilon,
        jax.random.randint(random, (n,), 0, 2),
        jax.random.uniform(start, (n, 4), minval=-0.05, maxval=0.05),
    )
    carry, rows = jax.lax.scan(decide, (training.state, training.steps, training.episodes, training.length), chance)
    at = training.buffer.written % P.buffer
    put = lambda column, new: jax.lax.dynamic_update_slice_in_dim(column, new.astype(column.dtype), at, 0)
    buffer = Buffer(*map(put, training.buffer[:4], rows), training.buffer.written + n)
    state, steps, episodes, length = carry
    return training._replace(state=state, steps=steps, episodes=episodes, length=length, buffer=buffer, key=key)


def loss_of(layers, target, batch):
    observation, following, action, terminated = batch
    goal = 1.0 + GAMMA * (1.0 - terminated) * forward(target, following).max(-1)
    # the gradient of a gather is a scatter, which is slower
    error = (forward(layers, observation) * jax.nn.one_hot(action, 2)).sum(-1) - goal
    if not P.huber:
        return (error**2).mean()
    return jnp.where(jnp.abs(error) < 1.0, 0.5 * error**2, jnp.abs(error) - 0.5).mean()


def descend(layers, adam, gradient):
    """Takes a step of Adam (arXiv 1412.6980, algorithm 1) along the clipped gradient."""
    if P.max_grad_norm < float("inf"):
        norm = jnp.sqrt(sum((part**2).sum() for part in jax.tree.leaves(gradient)))
        gradient = jax.tree.map(lambda g: g * jnp.minimum(1.0, P.max_grad_norm / (norm + 1e-6)), gradient)
    n = adam.step + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, adam.mean, gradient)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, adam.square, gradient)
    bias, root = 1 - 0.9**n, jnp.sqrt(1 - 0.999**n)
    moved = jax.tree.map(lambda w, m, v: w - P.learning_rate / bias * m / (jnp.sqrt(v) / root + EPSILON), layers, mean, square)
    return moved, Adam(n, mean, square)


def learn(training):
    target = jax.tree.map(lambda old, new: jnp.where(training.rollouts % P.target == 0, new, old), training.target, training.network)
    rows = jnp.minimum(training.buffer.written, P.buffer)

    def update(learned, key):
        index = jax.random.randint(key, (P.batch,), 0, rows)
        batch = tuple(column[index] for column in training.buffer[:4])
        return descend(*learned, jax.grad(loss_of)(learned[0], target, batch)), None

    key, own = jax.random.split(training.key)
    learned, _ = jax.lax.scan(update, (training.network, training.adam), jax.random.split(own, P.updates))
    return training._replace(network=learned[0], target=target, adam=learned[1], rollouts=training.rollouts + 1, key=key)


def begin(key):
    layers, state, key = jax.random.split(key, 3)
    layers = network(layers)
    zeros = jax.tree.map(jnp.zeros_like, layers)
    rows = lambda *shape, kind=jnp.float32: jnp.zeros((P.buffer, *shape), kind)
    buffer = Buffer(rows(4), rows(4), rows(kind=jnp.int32), rows(), jnp.int32(0))
    start = jax.random.uniform(state, (4,), minval=-0.05, maxval=0.05)
    zero = jnp.int32(0)
    # a copy, because the memory of the state is given to the next one
    return Training(layers, jax.tree.map(jnp.copy, layers), Adam(jnp.float32(0), zeros, jax.tree.map(jnp.copy, zeros)), start, zero, buffer, zero, key, zero, zero)


def main():
    jax.config.update("jax_platforms", "cpu")
    compiled = lambda body: jax.jit(lambda training, n, epsilon: jax.lax.fori_loop(0, n, lambda _, t: body(t, epsilon), training), donate_argnums=0)
    train, fill = compiled(lambda training, epsilon: learn(collect(training, epsilon))), compiled(collect)
    training = jax.jit(begin)(jax.random.key(args.seed))
    training = fill(training, P.starts // P.rollout, 1.0)
    if args.check:
        best = 0.0
        for done in range(P.starts, 50_000, 10 * P.rollout):
            training = training._replace(episodes=jnp.int32(0), length=jnp.int32(0))
            training = train(training, 10, max(P.epsilon, 1 - done / 8000))
            best = max(best, mean := float(training.length) / max(1, int(training.episodes)))
            print(f"{done:>6} steps: {int(training.episodes):>4} episodes ended, of {mean:.0f} steps on average")
        if best <= 150:
            sys.exit(f"expected episodes of more than 150 steps, got {best:.0f}")
        return
    training = jax.block_until_ready(train(training, 1, P.epsilon))
    rollouts, rates = 1, []
    while len(rates) < args.rounds:
        began = time.perf_counter()
        training = jax.block_until_ready(train(training, rollouts, P.epsilon))
        seconds = time.perf_counter() - began
        if seconds < 0.4 and not rates:
            rollouts = max(rollouts + 1, int(rollouts * min(100.0, 0.5 / seconds)))
            continue
        rates.append(rollouts * P.rollout / seconds)
    print(f"jax: {statistics.median(rates):.0f} steps/s")


if __name__ == "__main__":
    main()
