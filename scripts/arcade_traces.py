"""Records games of the package `minatar` (1.0.15), with which the tests compare ours: arcade_traces.py > envs/tests/arcade/traces.txt

Five seeds of 10,000 steps for each game. For each: the game, the seed of its random numbers (NumPy's RandomState), the actions (numbers of the minimal set), and after every 250
steps a hash of all observations, rewards and ends so far. The first two seeds play at random, the others look a few steps ahead, so that they see more of the game. Needs numpy and
minatar.
"""

import copy
import logging
import random

import numpy as np

logging.disable(logging.WARNING)
from minatar import Environment

GAMES = ["asterix", "breakout", "freeway", "seaquest", "space_invaders"]
STEPS, EVERY = 10_000, 250
MASK = (1 << 64) - 1


def hashed(value, data):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def ahead(env, actions, chance, depth):
    """The best return of a few random continuations of each action, less a penalty for an end; the first of the best actions."""
    best, choice = None, actions[0]
    for action in chance.sample(actions, len(actions)):
        total = 0.0
        for _ in range(2):
            other = copy.deepcopy(env)
            reward, over = other.act(action)
            value = reward
            for _ in range(depth):
                if over:
                    break
                reward, over = other.act(chance.choice(actions))
                value += reward
            total += value - (5 if over else 0)
        # a diver on board, or a pixel towards the top, is worth a little
        inner = other.env
        total += 0.3 * getattr(inner, "diver_count", 0)
        if best is None or total > best:
            best, choice = total, action
    return choice


for game in GAMES:
    for seed in range(1, 6):
        env = Environment(game)
        env.seed(seed)
        assert env.random is env.env.random
        env.reset()
        actions, chance = env.minimal_action_set(), random.Random(seed)
        played, hashes, value = [], [], 0xCBF29CE484222325
        for step in range(1, STEPS + 1):
            inner = env.env
            if seed > 3 and game == "breakout":
                # follows the ball, and so breaks all bricks
                action = actions[0 if inner.ball_x == inner.pos else 1 if inner.ball_x < inner.pos else 2]
            elif seed > 3 and game == "space_invaders":
                action = ahead(env, actions, chance, 9)
            elif seed > 2 and (step % 2 == 0 or game == "freeway"):
                action = ahead(env, actions, chance, 4) if game != "freeway" or step % 3 == 0 else 2
            else:
                action = chance.choice(actions)
            played.append(actions.index(action))
            reward, over = env.act(action)
            state = np.packbits(env.state().astype(bool).reshape(-1)).tobytes()
            value = hashed(value, state + bytes([int(reward), int(over)]))
            if over:
                env.reset()
                value = hashed(value, np.packbits(env.state().astype(bool).reshape(-1)).tobytes())
            if step % EVERY == 0:
                hashes.append(f"{value:016x}")
        print(game, seed, "".join(map(str, played)), ",".join(hashes), flush=True)
