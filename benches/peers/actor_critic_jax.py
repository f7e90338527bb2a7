#!/usr/bin/env python3
"""SAC, TD3 and DDPG on Pendulum as one compiled JAX program.

    python3 benches/peers/actor_critic_jax.py --work sac [--rounds 9] [--threads 1]
    python3 benches/peers/actor_critic_jax.py --work sac --check

The works are those of off_policy_sb3.py: one update follows every step of one environment. The last line is `jax: 123 steps/s`, the median over slices
of half a second, without compilation. Environment, replay buffer, target networks and updates are loops inside the program; the host only waits for
the end of a slice. The script needs only JAX. `--check` trains for 10 000 steps, prints the mean return, and fails unless it exceeds -400.
"""

import argparse
import os
import statistics
import sys
import time
from typing import NamedTuple


class Work(NamedTuple):
    agent: str
    hidden: tuple
    batch: int
    gamma: float


WORK = {
    "sac": Work("sac", (256, 256), 256, 0.99),
    "sac-small": Work("sac", (64, 64), 100, 0.99),
    "td3": Work("td3", (400, 300), 256, 0.98),
    "td3-256": Work("td3", (256, 256), 256, 0.98),
    "td3-small": Work("td3", (64, 64), 100, 0.98),
    "ddpg": Work("ddpg", (400, 300), 256, 0.98),
}
BUFFER, STARTS, LEARNING_RATE, TAU, EPSILON, BOUND = 200_000, 200, 1e-3, 0.005, 1e-8, 2.0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--work", choices=WORK, required=True)
    parser.add_argument("--rounds", type=int, default=9, help="slices that are timed")
    parser.add_argument("--threads", type=int, default=1, help="number of cores")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="train, and fail unless the policy learns")
    return parser.parse_args()


# when XLA is loaded, it starts one thread for each core that the process may run on
args = arguments()
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])

import jax
import jax.numpy as jnp

W = WORK[args.work]
IS_SAC = W.agent == "sac"
CRITICS = 1 if W.agent == "ddpg" else 2
DELAY = 2 if W.agent == "td3" else 1


class Adam(NamedTuple):
    step: jax.Array
    mean: list
    square: list


class Buffer(NamedTuple):
    observation: jax.Array
    action: jax.Array
    reward: jax.Array
    following: jax.Array
    # decisions written so far
    written: jax.Array


class Training(NamedTuple):
    actor: list
    critics: list
    # copies of actor and critics that follow them slowly
    target: tuple
    adams: tuple
    log_alpha: jax.Array
    alpha_adam: Adam
    # angle and angular velocity
    state: jax.Array
    steps: jax.Array
    buffer: Buffer
    updates: jax.Array
    key: jax.Array
    # number of finished episodes, the sum of their returns, and the return of the unfinished one
    episodes: jax.Array
    total: jax.Array
    episode: jax.Array


def network(key, widths):
    layers = []
    for key, inputs, outputs in zip(jax.random.split(key, len(widths)), widths, widths[1:]):
        reach, (weight, bias) = inputs**-0.5, jax.random.split(key)
        layers.append((jax.random.uniform(weight, (inputs, outputs), minval=-reach, maxval=reach), jax.random.uniform(bias, (outputs,), minval=-reach, maxval=reach)))
    return layers


def forward(layers, x):
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    return x @ layers[-1][0] + layers[-1][1]


def criticise(critics, observation, action):
    x = jnp.concatenate([observation, action], -1)
    return jnp.stack([forward(critic, x)[..., 0] for critic in critics])


def act(actor, observation, noise):
    """Returns actions from -1 to 1 and their log-probabilities, 0 for a deterministic actor."""
    y = forward(actor, observation)
    if not IS_SAC:
        return jnp.tanh(y), 0.0
    mean, log_std = y[..., :1], jnp.clip(y[..., 1:], -20.0, 2.0)
    u = mean + jnp.exp(log_std) * noise
    log_slope = 2.0 * (jnp.log(2.0) - u - jax.nn.softplus(-2.0 * u))
    return jnp.tanh(u), (-0.5 * noise**2 - log_std - 0.5 * jnp.log(2.0 * jnp.pi) - log_slope).sum(-1)


def observe(state):
    return jnp.stack([jnp.cos(state[0]), jnp.sin(state[0]), state[1]])


def step(state, action):
    """Takes a step with Gymnasium's equations. Returns the next state and the reward."""
    (angle, speed), torque = state, jnp.clip(BOUND * action, -BOUND, BOUND)
    upright = (angle + jnp.pi) % (2 * jnp.pi) - jnp.pi
    reward = -(upright**2 + 0.1 * speed**2 + 0.001 * torque**2)
    speed = jnp.clip(speed + (15.0 * jnp.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
    return jnp.stack([angle + speed * 0.05, speed]), reward


def collect(training, is_random):
    key, noise, uniform, start = jax.random.split(training.key, 4)
    observation, noise = observe(training.state), jax.random.normal(noise, (1,))
    action, _ = act(training.actor, observation, noise)
    action = action if IS_SAC else jnp.clip(action + 0.1 * noise, -1.0, 1.0)
    action = jnp.where(is_random, jax.random.uniform(uniform, (1,), minval=-1.0, maxval=1.0), action)
    state, reward = step(training.state, action[0])
    at = training.buffer.written % BUFFER
    put = lambda column, new: jax.lax.dynamic_update_index_in_dim(column, new, at, 0)
    buffer = Buffer(*map(put, training.buffer[:4], (observation, action, reward, observe(state))), training.buffer.written + 1)
    done, episode = training.steps + 1 >= 200, training.episode + reward
    begin = jax.random.uniform(start, (2,), minval=-1.0, maxval=1.0) * jnp.array([jnp.pi, 1.0])
    return training._replace(
        state=jnp.where(done, begin, state), steps=jnp.where(done, 0, training.steps + 1), buffer=buffer, key=key,
        episodes=training.episodes + done, total=training.total + jnp.where(done, episode, 0.0), episode=jnp.where(done, 0.0, episode),
    )


def descend(layers, adam, gradient):
    """Takes a step of Adam (arXiv 1412.6980, algorithm 1)."""
    n = adam.step + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, adam.mean, gradient)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, adam.square, gradient)
    bias, root = 1 - 0.9**n, jnp.sqrt(1 - 0.999**n)
    moved = jax.tree.map(lambda w, m, v: w - LEARNING_RATE / bias * m / (jnp.sqrt(v) / root + EPSILON), layers, mean, square)
    return moved, Adam(n, mean, square)


def learn(training):
    key, draw, next_noise, noise = jax.random.split(training.key, 4)
    index = jax.random.randint(draw, (W.batch,), 0, jnp.minimum(training.buffer.written, BUFFER))
    observation, action, reward, following = (column[index] for column in training.buffer[:4])
    alpha, (target_actor, target_critics) = jnp.exp(training.log_alpha), training.target
    next_noise, noise = (jax.random.normal(key, (W.batch, 1)) for key in (next_noise, noise))
    # no episode terminates, so every target bootstraps
    next_action, log_prob = act(training.actor if IS_SAC else target_actor, following, next_noise)
    if W.agent == "td3":
        next_action = jnp.clip(next_action + jnp.clip(0.2 * next_noise, -0.5, 0.5), -1.0, 1.0)
    goal = reward + W.gamma * (criticise(target_critics, following, next_action).min(0) - (alpha * log_prob if IS_SAC else 0.0))

    critic_loss = lambda critics: ((criticise(critics, observation, action) - goal) ** 2).mean(-1).sum()
    critics, critic_adam = descend(training.critics, training.adams[1], jax.grad(critic_loss)(training.critics))

    def actor_loss(actor):
        chosen, log_prob = act(actor, observation, noise)
        if not IS_SAC:
            return -criticise(critics[:1], observation, chosen).mean(), 0.0
        return (alpha * log_prob - criticise(critics, observation, chosen).min(0)).mean(), log_prob.mean()

    def improve(_):
        gradient, log_prob = jax.grad(actor_loss, has_aux=True)(training.actor)
        actor, adam = descend(training.actor, training.adams[0], gradient)
        log_alpha, alpha_adam = training.log_alpha, training.alpha_adam
        if IS_SAC:
            log_alpha, alpha_adam = descend(log_alpha, alpha_adam, -(log_prob - 1.0))
        target = jax.tree.map(lambda old, new: (1 - TAU) * old + TAU * new, training.target, (actor, critics))
        return actor, adam, log_alpha, alpha_adam, target

    keep = lambda _: (training.actor, training.adams[0], training.log_alpha, training.alpha_adam, training.target)
    updates = training.updates + 1
    changed = improve(None) if DELAY == 1 else jax.lax.cond(updates % DELAY == 0, improve, keep, None)
    actor, actor_adam, log_alpha, alpha_adam, target = changed
    return training._replace(
        actor=actor, critics=critics, target=target, adams=(actor_adam, critic_adam), log_alpha=log_alpha, alpha_adam=alpha_adam, updates=updates, key=key
    )


def begin(key):
    of_actor, of_critics, state, key = jax.random.split(key, 4)
    actor = network(of_actor, (3, *W.hidden, 2 if IS_SAC else 1))
    critics = [network(key, (4, *W.hidden, 1)) for key in jax.random.split(of_critics, CRITICS)]
    copy, adam = lambda tree: jax.tree.map(jnp.copy, tree), lambda tree: Adam(jnp.float32(0), jax.tree.map(jnp.zeros_like, tree), jax.tree.map(jnp.zeros_like, tree))
    rows = lambda *shape: jnp.zeros((BUFFER, *shape))
    buffer = Buffer(rows(3), rows(1), rows(), rows(3), jnp.int32(0))
    start = jax.random.uniform(state, (2,), minval=-1.0, maxval=1.0) * jnp.array([jnp.pi, 1.0])
    zero, none = jnp.int32(0), jnp.float32(0)
    target = (copy(actor), copy(critics))
    return Training(actor, critics, target, (adam(actor), adam(critics)), none, adam(none), start, zero, buffer, zero, key, zero, none, none)


def main():
    jax.config.update("jax_platforms", "cpu")
    compiled = lambda body: jax.jit(lambda training, n: jax.lax.fori_loop(0, n, lambda _, t: body(t), training), donate_argnums=0)
    train, fill = compiled(lambda training: learn(collect(training, False))), compiled(lambda training: collect(training, True))
    training = fill(jax.jit(begin)(jax.random.key(args.seed)), STARTS)
    if args.check:
        best = -float("inf")
        for done in range(STARTS, 10_000, 1000):
            training = training._replace(episodes=jnp.int32(0), total=jnp.float32(0))
            training = train(training, 1000)
            best = max(best, mean := float(training.total) / max(1, int(training.episodes)))
            print(f"{done + 1000:>6} steps: mean return {mean:.0f}")
        if best <= -400:
            sys.exit(f"expected a mean return above -400, got {best:.0f}")
        return
    training = jax.block_until_ready(train(training, 10))
    steps, rates = 10, []
    while len(rates) < args.rounds:
        began = time.perf_counter()
        training = jax.block_until_ready(train(training, steps))
        seconds = time.perf_counter() - began
        if seconds < 0.4 and not rates:
            steps = max(steps + 1, int(steps * min(100.0, 0.5 / seconds)))
            continue
        rates.append(steps / seconds)
    print(f"jax: {statistics.median(rates):.0f} steps/s")


if __name__ == "__main__":
    main()
