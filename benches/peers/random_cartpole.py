"""Measures steps per second of a peer's CartPole with random actions, on one core.

    python random_cartpole.py --peer envpool --envs 1024

Its last line is `envpool: 1.13 million steps/s`, the median over slices of 0.2 s after a warm-up. For peers that are called from
Python, the actions of 64 steps are sampled beforehand and repeated. gymnax samples actions within its program, and so does Gradus in its own
benchmark. A run fails unless the mean episode length is that of random actions, about 22 steps. This excludes environments that are fast only
because they do not move or are never reset.
"""

import argparse
import os
import statistics
import time
import warnings

# one thread, on the core that the process is started on
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
warnings.filterwarnings("ignore")

import numpy as np

ROWS = 64


def drawn(envs: int, dtype) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (ROWS, envs)).astype(dtype)


def stepped(step, actions):
    """Returns two functions: one runs a slice and returns its number of steps, the other counts episode ends, outside the timing."""
    envs, tick = actions.shape[1], 0
    calls = max(1, 4096 // envs)

    def run() -> int:
        nonlocal tick
        for _ in range(calls):
            step(actions[tick % ROWS])
            tick += 1
        return calls * envs

    def ends() -> tuple[int, int]:
        counted = 0
        for t in range(4 * ROWS):
            terminated, truncated = step(actions[t % ROWS])
            counted += int(np.count_nonzero(np.logical_or(terminated, truncated)))
        return counted, 4 * ROWS * envs

    return run, ends


def gymnasium(envs: int, mode: str):
    import gymnasium

    vector = gymnasium.make_vec("CartPole-v1", num_envs=envs, vectorization_mode=mode)
    vector.reset(seed=1)
    return stepped(lambda actions: vector.step(actions)[2:4], drawn(envs, np.int64))


def envpool(envs: int):
    import envpool

    vector = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=envs, num_threads=1)
    vector.reset()
    return stepped(lambda actions: vector.step(actions)[2:4], drawn(envs, np.int32))


def pufferlib(envs: int):
    from pufferlib.ocean.cartpole.cartpole import Cartpole

    # it reports episodes only every 128 steps, as in its own training configuration
    vector = Cartpole(num_envs=envs, report_interval=128)
    vector.reset(1)
    return stepped(lambda actions: vector.step(actions)[2:4], drawn(envs, np.float32))


def gymnax(envs: int):
    import gymnax
    import jax

    jax.config.update("jax_platforms", "cpu")
    world, parameters = gymnax.make("CartPole-v1")
    steps = max(16, 2**18 // envs)

    def step(carry, _):
        key, state = carry
        key, choice, chance = jax.random.split(key, 3)
        actions = jax.random.randint(choice, (envs,), 0, 2)
        each = jax.random.split(chance, envs)
        observation, state, reward, terminated, truncated, _ = jax.vmap(world.step, (0, 0, 0, None))(each, state, actions, parameters)
        return (key, state), (terminated | truncated).sum()

    @jax.jit
    def roll(carry):
        carry, ends = jax.lax.scan(step, carry, None, steps)
        return carry, ends.sum()

    # XLA's own random generator, unsafe_rbg, was less than half as fast
    key = jax.random.key(0)
    carry = key, jax.vmap(world.reset, (0, None))(jax.random.split(key, envs), parameters)[1]

    def run() -> int:
        nonlocal carry
        carry, _ = jax.block_until_ready(roll(carry))
        return steps * envs

    def ends() -> tuple[int, int]:
        return int(roll(carry)[1]), steps * envs

    return run, ends


PEERS = {
    "gymnasium": lambda envs: gymnasium(envs, "vector_entry_point"),
    "gymnasium-sync": lambda envs: gymnasium(envs, "sync"),
    "envpool": envpool,
    "pufferlib": pufferlib,
    "gymnax": gymnax,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--envs", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    run, ends = PEERS[args.peer](args.envs)
    run()
    rates = []
    # the first round is the warm-up
    for _ in range(args.rounds + 1):
        began, steps = time.perf_counter(), 0
        while time.perf_counter() - began < 0.2:
            steps += run()
        rates.append(steps / (time.perf_counter() - began))
    ended, steps = ends()
    if not 20 <= steps / max(1, ended) <= 25:
        raise SystemExit(f"expected episodes of 20 to 25 steps under random actions, got {steps / max(1, ended):.1f}")
    print(f"{args.peer}: {statistics.median(rates[1:]) / 1e6:.3g} million steps/s")


if __name__ == "__main__":
    main()
