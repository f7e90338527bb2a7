#!/usr/bin/env python3
"""PPO on CartPole or Breakout as one compiled JAX program, in the style of PureJaxRL, with the algorithm and settings of the preset `cleanrl`.

    python3 benches/peers/ppo_jax.py [--device cpu] [--envs 4] [--rounds 9] [--world gymnax]
    python3 benches/peers/ppo_jax.py --world breakout --envs 64 --minibatches 8
    python3 benches/peers/ppo_jax.py --check

The learning rate is constant, unlike in the preset. The last line is `jax: 12345 steps/s`, the median over slices of half a second, without
compilation. Environments, rollouts, advantages, epochs and minibatches are loops inside the program; the host only waits for the end of a
slice. The script needs only JAX: the environment, the networks and Adam are in this file. With `--world gymnax` the environment is gymnax's. With `--world breakout` it is Breakout with MinAtar's rules, seen through a convolutional layer of 16 filters
and a layer of 128 that actor and critic share, with the learning rate of our preset.
`--check` trains on 8 environments, prints the mean episode length, and fails unless it exceeds 300 within 200 000 steps; with Breakout on 64, 150 steps within two million.
"""

import argparse
import os
import statistics
import sys
import time
from typing import Any, NamedTuple


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--envs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=128, help="steps of each environment in a rollout")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--minibatches", type=int, default=4)
    parser.add_argument("--updates", type=int, default=0, help="updates in a slice; 0: as many as take half a second")
    parser.add_argument("--rounds", type=int, default=9, help="slices that are timed")
    parser.add_argument("--threads", type=int, default=1, help="number of cores; small networks are slower on several cores")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--world", default="own", choices=["own", "gymnax", "breakout"], help="the CartPole of this script or gymnax's, or Breakout")
    parser.add_argument("--check", action="store_true", help="train, and fail unless the policy learns")
    args = parser.parse_args()
    if args.envs * args.steps % args.minibatches:
        parser.error(f"--minibatches: expected a divisor of {args.envs * args.steps} decisions, got {args.minibatches}")
    return args


# when XLA is loaded, it starts one thread for each core that the process may run on
args = arguments()
if args.device == "cpu" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])

import jax
import jax.numpy as jnp

GAMMA, LAMBDA, CLIP, ENTROPY, VALUE = 0.99, 0.95, 0.2, 0.01, 0.5
LEARNING_RATE, EPSILON, MAX_GRAD_NORM = 2.5e-3 if args.world == "breakout" else 2.5e-4, 1e-5, 0.5
ACTIONS = 3 if args.world == "breakout" else 2


class Env(NamedTuple):
    """Environments: their state (position, velocity, angle and angular velocity, or gymnax's state) and the steps of their episodes."""

    state: Any
    steps: jax.Array


class Adam(NamedTuple):
    step: jax.Array
    mean: dict
    square: dict


class Training(NamedTuple):
    networks: dict
    adam: Adam
    envs: Env
    key: jax.Array
    # number of finished episodes, and the sum of their lengths
    episodes: jax.Array
    length: jax.Array


class Decisions(NamedTuple):
    observation: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array


def starts(key, *shape):
    return jax.random.uniform(key, (*shape, 4), minval=-0.05, maxval=0.05)


def step(env, action, start):
    """Takes a step with Gymnasium's equations. If the episode ends, the next episode begins in the state `start`."""
    x, x_dot, theta, theta_dot = env.state
    force = jnp.where(action == 1, 10.0, -10.0)
    cos, sin = jnp.cos(theta), jnp.sin(theta)
    temp = (force + 0.05 * theta_dot * theta_dot * sin) / 1.1
    theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
    x_acc = temp - 0.05 * theta_acc * cos / 1.1
    state = env.state + 0.02 * jnp.stack([x_dot, x_acc, theta_dot, theta_acc])
    steps = env.steps + 1
    done = (jnp.abs(state[0]) > 2.4) | (jnp.abs(state[2]) > 12 * 2 * jnp.pi / 360) | (steps >= 500)
    return Env(jnp.where(done, start, state), jnp.where(done, 0, steps)), jnp.float32(1), done, steps


def observe(envs):
    return envs.state


if args.world == "gymnax":
    import gymnax

    WORLD, PARAMETERS = gymnax.make("CartPole-v1")

    def starts(key, *shape):
        """Returns one key for each step and environment instead of start states: gymnax starts an episode from a key."""
        return jax.random.split(key, shape)

    def step(env, action, key):
        _, state, reward, terminated, truncated, _ = WORLD.step(key, env.state, action, PARAMETERS)
        done, steps = terminated | truncated, env.steps + 1
        return Env(state, jnp.where(done, 0, steps)), reward, done, steps

    def observe(envs):
        state = envs.state
        return jnp.stack([state.x, state.x_dot, state.theta, state.theta_dot], -1)


class Game(NamedTuple):
    paddle: jax.Array
    ball: jax.Array  # column, row
    trail: jax.Array
    course: jax.Array
    bricks: jax.Array  # rows 1 to 3
    has_struck: jax.Array
    last_action: jax.Array


if args.world == "breakout":

    def starts(key, *shape):
        """Returns whether the ball begins on the right, for each environment and step the start of its next episode, and for sticky actions whether the last action is repeated."""
        start, sticky = jax.random.split(key)
        return jax.random.bernoulli(start, 0.5, shape), jax.random.bernoulli(sticky, 0.1, shape)

    def new_game(is_right):
        ball = jnp.where(is_right, jnp.array([9, 3]), jnp.array([0, 3]))
        course = jnp.where(is_right, jnp.array([-1, 1]), jnp.array([1, 1]))
        return Game(jnp.int32(4), ball, ball, course, jnp.ones((3, 10), bool), jnp.bool_(False), jnp.int32(0))

    def step(env, action, chance):
        is_right, is_sticky = chance
        game = env.state
        action = jnp.where(is_sticky, game.last_action, action)
        paddle = jnp.clip(game.paddle + (action == 2) - (action == 1), 0, 9)
        to, course = game.ball + game.course, game.course
        hits_side = (to[0] < 0) | (to[0] > 9)
        course = course.at[0].multiply(jnp.where(hits_side, -1, 1))
        x, y = jnp.clip(to[0], 0, 9), to[1]
        hits_top = y < 0
        row = jnp.clip(y - 1, 0, 2)
        strikes = (y >= 1) & (y <= 3) & game.bricks[row, x]
        breaks = strikes & ~game.has_struck
        bricks = game.bricks & ~(breaks & (jnp.arange(3) == row)[:, None] & (jnp.arange(10) == x)[None])
        is_last = y == 9
        bricks = bricks | (is_last & ~bricks.any())
        straight, slanted = is_last & (game.ball[0] == paddle), is_last & (game.ball[0] != paddle) & (x == paddle)
        done = is_last & ~straight & ~slanted
        course = course * jnp.stack([jnp.where(slanted, -1, 1), jnp.where(hits_top | breaks | straight | slanted, -1, 1)])
        y = jnp.where(hits_top, 0, jnp.where(breaks | straight | slanted, game.ball[1], y))
        steps = env.steps + 1
        over = done | (steps >= 10_000)
        moved = Game(paddle, jnp.stack([x, y]), game.ball, course, bricks, strikes, action)
        following = jax.tree.map(lambda new, old: jnp.where(over, new, old), new_game(is_right)._replace(last_action=action), moved)
        return Env(following, jnp.where(over, 0, steps)), breaks.astype(jnp.float32), over, steps

    def observe(envs):
        """Returns the planes of all environments: paddle, ball, trail, bricks."""
        game, at = envs.state, jnp.arange(10)
        place = lambda x, y: (at[None, :, None] == y[:, None, None]) & (at[None, None] == x[:, None, None])
        wall = jnp.pad(game.bricks, ((0, 0), (1, 6), (0, 0)))
        planes = place(game.paddle, jnp.full_like(game.paddle, 9)), place(*game.ball.T), place(*game.trail.T), wall
        return jnp.stack(planes, -1)


def first_states(key):
    if args.world == "breakout":
        return jax.vmap(new_game)(starts(key, args.envs)[0])
    begun = starts(key, args.envs)
    return begun if args.world == "own" else jax.vmap(WORLD.reset, (0, None))(begun, PARAMETERS)[1]


def network(key, outputs, gain):
    layers = zip(jax.random.split(key, 3), ((4, 64), (64, 64), (64, outputs)), (2**0.5, 2**0.5, gain))
    return [(jax.nn.initializers.orthogonal(scale)(key, shape), jnp.zeros(shape[1])) for key, shape, scale in layers]


def seeing_network(key):
    kernel, dense, actor, critic = jax.random.split(key, 4)
    start = jax.nn.initializers.orthogonal
    filters = start(2**0.5)(kernel, (3 * 3 * 4, 16)).reshape(3, 3, 4, 16)
    hidden = start(2**0.5)(dense, (8 * 8 * 16, 128))
    heads = {"actor": (start(0.01)(actor, (128, ACTIONS)), jnp.zeros(ACTIONS)), "critic": (start(1.0)(critic, (128, 1)), jnp.zeros(1))}
    return {"convolution": (filters, jnp.zeros(16)), "hidden": (hidden, jnp.zeros(128)), **heads}


def outputs(networks, x):
    """Returns logits and values."""
    if args.world != "breakout":
        return forward(networks["actor"], x), forward(networks["critic"], x)[:, 0]
    (filters, bias), (weight, hidden_bias) = networks["convolution"], networks["hidden"]
    # on a CPU a product with the nine shifted images is faster than XLA's convolution
    windows = jnp.concatenate([x[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)], -1).astype(jnp.float32)
    x = jax.nn.relu(windows @ filters.reshape(36, 16) + bias).reshape(len(x), -1)
    x = jax.nn.relu(x @ weight + hidden_bias)
    head = lambda name: x @ networks[name][0] + networks[name][1]
    return head("actor"), head("critic")[:, 0]


def forward(layers, x):
    for weight, bias in layers[:-1]:
        x = jnp.tanh(x @ weight + bias)
    return x @ layers[-1][0] + layers[-1][1]


def log_prob_of(log_probs, action):
    # the gradient of a gather is a scatter, which is slower
    return (log_probs * jax.nn.one_hot(action, log_probs.shape[-1])).sum(-1)


def rollout(training):
    def decide(carry, chance):
        (envs, episodes, length), (noise, start) = carry, chance
        observation = observe(envs)
        logits, value = outputs(training.networks, observation)
        log_probs = jax.nn.log_softmax(logits)
        action = jnp.argmax(log_probs + noise, -1)
        following, reward, done, steps = jax.vmap(step)(envs, action, start)
        decisions = Decisions(observation, action, log_prob_of(log_probs, action), value, reward, done)
        return (following, episodes + done.sum(), length + jnp.where(done, steps, 0).sum()), decisions

    # drawing all random numbers of a rollout at once is a tenth faster than with a key for each step
    key, noise, start = jax.random.split(training.key, 3)
    chance = jax.random.gumbel(noise, (args.steps, args.envs, ACTIONS)), starts(start, args.steps, args.envs)
    (envs, episodes, length), decisions = jax.lax.scan(decide, (training.envs, training.episodes, training.length), chance)
    return training._replace(envs=envs, key=key, episodes=episodes, length=length), decisions


def advantages_of(decisions, last_value):
    def back(carry, decision):
        advantage, value = carry
        goes_on = GAMMA * (1.0 - decision.done)
        delta = decision.reward + goes_on * value - decision.value
        advantage = delta + goes_on * LAMBDA * advantage
        return (advantage, decision.value), advantage

    return jax.lax.scan(back, (jnp.zeros_like(last_value), last_value), decisions, reverse=True, unroll=16)[1]


def loss_of(networks, decisions, advantages):
    returns = advantages + decisions.value
    logits, value = outputs(networks, decisions.observation)
    log_probs = jax.nn.log_softmax(logits)
    entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
    ratio = jnp.exp(log_prob_of(log_probs, decisions.action) - decisions.log_prob)
    advantages = (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)
    surrogate = jnp.maximum(-advantages * ratio, -advantages * jnp.clip(ratio, 1 - CLIP, 1 + CLIP)).mean()
    clipped = decisions.value + jnp.clip(value - decisions.value, -CLIP, CLIP)
    value_loss = 0.5 * jnp.maximum((value - returns) ** 2, (clipped - returns) ** 2).mean()
    return surrogate - ENTROPY * entropy + VALUE * value_loss


def descend(networks, adam, gradient):
    """Takes a step of Adam (arXiv 1412.6980, algorithm 1) along the clipped gradient."""
    norm = jnp.sqrt(sum((part**2).sum() for part in jax.tree.leaves(gradient)))
    gradient = jax.tree.map(lambda g: g * jnp.minimum(1.0, MAX_GRAD_NORM / (norm + 1e-6)), gradient)
    n = adam.step + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, adam.mean, gradient)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, adam.square, gradient)
    bias, root = 1 - 0.9**n, jnp.sqrt(1 - 0.999**n)
    moved = jax.tree.map(lambda w, m, v: w - LEARNING_RATE / bias * m / (jnp.sqrt(v) / root + EPSILON), networks, mean, square)
    return moved, Adam(n, mean, square)


def update(training):
    training, decisions = rollout(training)
    last_value = outputs(training.networks, observe(training.envs))[1]
    advantages = advantages_of(decisions, last_value)
    n = args.envs * args.steps
    flat = jax.tree.map(lambda column: column.reshape(n, *column.shape[2:]), (decisions, advantages))

    def minibatch(learned, part):
        return descend(*learned, jax.grad(loss_of)(learned[0], *part)), None

    def epoch(learned, key):
        order = jax.random.permutation(key, n).reshape(args.minibatches, -1)
        return jax.lax.scan(minibatch, learned, jax.tree.map(lambda column: column[order], flat))

    key, own = jax.random.split(training.key)
    learned, _ = jax.lax.scan(epoch, (training.networks, training.adam), jax.random.split(own, args.epochs))
    return training._replace(networks=learned[0], adam=learned[1], key=key)


def begin(key):
    actor, critic, envs, key = jax.random.split(key, 4)
    networks = seeing_network(actor) if args.world == "breakout" else {"actor": network(actor, ACTIONS, 0.01), "critic": network(critic, 1, 1.0)}
    zeros = jax.tree.map(jnp.zeros_like, networks)
    adam = Adam(jnp.float32(0), zeros, zeros)
    return Training(networks, adam, Env(first_states(envs), jnp.zeros(args.envs, jnp.int32)), key, jnp.int32(0), jnp.int32(0))


def check(train, training):
    """Trains until the mean length of the episodes that end within 20 updates exceeds 300, in Breakout 150. Exits with an error after 200 000 steps, in Breakout two million."""
    done, best, batch = 0, 0.0, args.envs * args.steps
    enough, most = (150, 2_000_000) if args.world == "breakout" else (300, 200_000)
    while best <= enough:
        updates = min(20, most // batch - done // batch)
        if updates == 0:
            sys.exit(f"expected episodes of more than {enough} steps, got {best:.0f}")
        training = train(training._replace(episodes=jnp.int32(0), length=jnp.int32(0)), updates)
        done += updates * batch
        best = max(best, mean := float(training.length) / max(1, int(training.episodes)))
        print(f"{done:>6} steps: {int(training.episodes):>4} episodes ended, of {mean:.0f} steps on average")


def main():
    if args.check:
        args.envs, args.steps, args.minibatches = (64, 128, 8) if args.world == "breakout" else (8, 128, args.minibatches)
    platform, _, index = args.device.partition(":")
    jax.config.update("jax_platforms", platform)
    try:
        jax.config.update("jax_default_device", jax.devices(platform)[int(index or 0)])
    except (RuntimeError, AssertionError, IndexError) as error:
        sys.exit(f"expected a device of this JAX, got {args.device}: {error}")
    train = jax.jit(lambda training, updates: jax.lax.fori_loop(0, updates, lambda _, training: update(training), training))
    training = jax.jit(begin)(jax.random.key(args.seed))
    if args.check:
        check(train, training)
        return
    training = jax.block_until_ready(train(training, 1))
    updates, rates = args.updates or 1, []
    while len(rates) < args.rounds:
        began = time.perf_counter()
        training = jax.block_until_ready(train(training, updates))
        seconds = time.perf_counter() - began
        if args.updates == 0 and seconds < 0.4 and not rates:
            updates = max(updates + 1, int(updates * min(100.0, 0.5 / seconds)))
            continue
        rates.append(updates * args.envs * args.steps / seconds)
    print(f"jax: {statistics.median(rates):.0f} steps/s")


if __name__ == "__main__":
    main()
