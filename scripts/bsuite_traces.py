"""Records problems of the package `bsuite` (0.3.6), with which the tests compare ours: bsuite_traces.py > envs/tests/bsuite/traces.txt

Five seeds of 10,000 steps for each problem, with the actions of a linear congruential generator, but in the deep sea mostly to the right. For each: the problem, its size, the seed of
its random numbers (NumPy's RandomState), and after every 250 steps a hash of all observations, rewards and ends so far. Needs numpy, bsuite and dm_env.
"""

import struct
import warnings

warnings.simplefilter("ignore")

import numpy as np
from bsuite.environments import catch, deep_sea, discounting_chain, memory_chain, umbrella_chain

STEPS, EVERY = 10_000, 250
MASK = (1 << 64) - 1
PROBLEMS = [
    ("memory-len", size, lambda size, seed: memory_chain.MemoryChain(size, seed=seed)) for size in (1, 2, 10)
] + [
    ("memory-size", 3, lambda size, seed: memory_chain.MemoryChain(2, size, seed=seed)),
    ("deep-sea", 10, lambda size, seed: deep_sea.DeepSea(size, seed=seed, mapping_seed=42)),
    ("deep-sea-stochastic", 12, lambda size, seed: deep_sea.DeepSea(size, False, seed=seed, mapping_seed=42)),
    ("discounting-chain", 1, lambda size, seed: discounting_chain.DiscountingChain(size)),
    ("umbrella-length", 1, lambda size, seed: umbrella_chain.UmbrellaChain(size, 20, seed=seed)),
    ("umbrella-length", 7, lambda size, seed: umbrella_chain.UmbrellaChain(size, 20, seed=seed)),
    ("umbrella-distract", 3, lambda size, seed: umbrella_chain.UmbrellaChain(20, size, seed=seed)),
    ("catch", 0, lambda size, seed: catch.Catch(seed=seed)),
]


def hashed(value, data):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


for name, size, make in PROBLEMS:
    for seed in range(1, 6):
        env, chance = make(size, seed), seed
        # what the package draws before the first episode is drawn and thrown away
        env._rng = np.random.RandomState(seed)
        step, hashes, value = env.reset(), [], 0xCBF29CE484222325
        actions = env.action_spec().num_values
        value = hashed(value, step.observation.astype("<f4").tobytes())
        for number in range(1, STEPS + 1):
            chance = (chance * 6364136223846793005 + 1442695040888963407) & MASK
            action = (chance >> 33) % actions
            if name.startswith("deep-sea") and (chance >> 50) % 10:
                action = int(env._action_mapping[env._row, env._column])
            step = env.step(action)
            value = hashed(value, step.observation.astype("<f4").tobytes() + struct.pack("<d?", float(step.reward), step.last()))
            if step.last():
                value = hashed(value, env.reset().observation.astype("<f4").tobytes())
            if number % EVERY == 0:
                hashes.append(f"{value:016x}")
        print(name, size, seed, ",".join(hashes), flush=True)
