#!/usr/bin/env python3
"""Measures other toolkits and Gradus in turn, on the same work and the same cores, and prints one table of medians and ratios.

    python3 benches/peers/speed.py [--only training environments text sb3 ...] [--repetitions 5] [--quick]

`training` is PPO and `values` DQN on CartPole including learning, `actors` is SAC, TD3, DDPG and PPO on Pendulum including learning, `environments` is CartPole
with random actions on one core, and `text` is GRPO (see text.py).
README.md in this folder describes what is compared. Peers are installed on first use. A peer that cannot be installed or run is listed below
the table with the reason.
"""

import text
from install import HERE
from measure import Row, Side, main

def our_training(preset: str) -> Side:
    command = ["gradus", "bench", "train", "ppo", "cartpole", "--preset", preset]
    return Side(command, r"^steps/s: ([0-9.]+)$", [[], ["--threads", 1]], ["--rounds", 2])


def training(peer: str, of: str, note: str, theirs: list, pattern: str, variants: list, quick: list, preset: str = "cleanrl") -> Row:
    what = {"cleanrl": "PPO, CleanRL's settings", "sb3": "PPO, Stable-Baselines3's defaults"}[preset]
    return Row("training", what, "steps/s", peer, of, note, 2, theirs, pattern, variants, quick, our_training(preset))


def trainings() -> list[Row]:
    sb3, sb3_says = "stable-baselines3", r"^sb3: ([0-9.]+) steps/s$"
    defaults, cleanrl_settings = ([HERE / "ppo_sb3.py", "--settings", name] for name in ("defaults", "cleanrl"))
    short = ["--steps", 2048]
    ppo = ["-m", "cleanrl.ppo", "--cuda", "False", "--total-timesteps", 40_960], r"^SPS: ([0-9]+)$"
    jax, jax_says, threads = HERE / "ppo_jax.py", r"^jax: ([0-9.]+) steps/s$", [["--threads", 1], ["--threads", 2]]
    # by default PyTorch takes one thread per core, which is slower
    one = [["OMP_NUM_THREADS=1"]]
    return [
        training("cleanrl", "cleanrl", "its ppo.py", *ppo, [[]], ["--total-timesteps", 2048]),
        training("cleanrl", "cleanrl", "its ppo.py on one thread", *ppo, one, ["--total-timesteps", 2048]),
        training("sb3", sb3, "its own defaults (1 environment, 10 epochs of minibatches of 64)", defaults, sb3_says, [[]], short),
        training("sb3", sb3, "CleanRL's settings", cleanrl_settings, sb3_says, [[]], short),
        training("sb3", sb3, "CleanRL's settings on one thread", cleanrl_settings, sb3_says, one, short),
        training("sb3", sb3, "", defaults, sb3_says, [[]], short, "sb3"),
        training("sb3", sb3, "on one thread", defaults, sb3_says, one, short, "sb3"),
        training("jax", "jax", "compiled, CartPole of our own", [jax], jax_says, threads, ["--rounds", 2]),
        training("jax", "jax", "compiled, gymnax's CartPole", [jax, "--world", "gymnax"], jax_says, threads, ["--rounds", 2]),
    ]


def values() -> list[Row]:
    says, threads = r"^(?:sb3|sbx|jax): ([0-9.]+) steps/s$", [["--threads", 1], ["--threads", 2]]
    one, short = [["OMP_NUM_THREADS=1"]], ["--steps", 512]
    rows = []
    for settings, preset, what in [("zoo", "zoo", "DQN, rl-zoo's settings"), ("cleanrl", "cleanrl", "DQN, CleanRL's settings")]:
        train = ["gradus", "bench", "train", "dqn", "cartpole", "--preset", preset]
        ours = Side(train, r"^steps/s: ([0-9.]+)$", [[], ["--threads", 1]], ["--rounds", 2])
        row = lambda peer, of, note, command, pattern, variants, quick: Row(
            "values", what, "steps/s", peer, of, note, 2, command, pattern, variants, quick, ours
        )
        sb3 = [HERE / "off_policy_sb3.py", "--work", f"dqn-{settings}"]
        sbx = [*sb3, "--toolkit", "sbx"]
        rows.append(row("sb3", "stable-baselines3", "", sb3, says, [[]], short))
        rows.append(row("sb3", "stable-baselines3", "on one thread", sb3, says, one, short))
        rows.append(row("sbx", "sbx-rl", "compiled", sbx, says, threads, short))
        rows.append(row("jax", "jax", "one compiled program", [HERE / "dqn_jax.py", "--preset", preset], says, threads, ["--rounds", 2]))
        if settings == "cleanrl":
            # the speed that dqn.py prints includes the first 1000 steps, which have no updates
            own = ["-m", "cleanrl.dqn", "--cuda", "False", "--learning-starts", 1000, "--total-timesteps", 21_000]
            rows.append(row("cleanrl", "cleanrl", "its dqn.py", own, r"^SPS: ([0-9]+)$", [[]], ["--total-timesteps", 1600]))
            rows.append(row("cleanrl", "cleanrl", "its dqn.py on one thread", own, r"^SPS: ([0-9]+)$", one, ["--total-timesteps", 1600]))
    return rows


def actors() -> list[Row]:
    says, threads, one = r"^(?:sb3|sbx|jax|rltools): ([0-9.]+) steps/s$", [["--threads", 1], ["--threads", 2]], [["OMP_NUM_THREADS=1"]]
    small = ["--set", "network.hidden=[64,64]"]
    rows = []
    for work, what, settings in [
        ("sac", "SAC, 256-256, batches of 256", []),
        ("sac-small", "SAC, 64-64, batches of 100", [*small, "--set", "sac.batch_size=100"]),
        ("td3", "TD3, 400-300, batches of 256", []),
        ("td3-256", "TD3, 256-256, batches of 256", ["--set", "network.hidden=[256,256]"]),
        ("td3-small", "TD3, 64-64, batches of 100", [*small, "--set", "td3.batch_size=100"]),
        ("ddpg", "DDPG, 400-300, batches of 256", []),
    ]:
        agent = work.partition("-")[0]
        train = ["gradus", "bench", "train", agent, "pendulum", "--rounds", 2, "--set", f"{agent}.learning_starts=200", *settings]
        ours = Side(train, r"^steps/s: ([0-9.]+)$", [[], ["--threads", 1]], ["--set", "envs=1"])
        row = lambda peer, of, note, command, variants, quick: Row(
            "actors", what, "steps/s", peer, of, note, 2, command, says, variants, quick, ours
        )
        sb3, short = [HERE / "off_policy_sb3.py", "--work", work], ["--steps", 100]
        rows.append(row("sb3", "stable-baselines3", "", sb3, [[]], short))
        rows.append(row("sb3", "stable-baselines3", "on one thread", sb3, one, short))
        rows.append(row("sbx", "sbx-rl", "compiled", [*sb3, "--toolkit", "sbx"], threads, short))
        rows.append(row("jax", "jax", "one compiled program", [HERE / "actor_critic_jax.py", "--work", work], threads, ["--rounds", 2]))
        # RLtools has no DDPG, and its layers have equal widths
        if work not in ("ddpg", "td3"):
            rows.append(row("rltools", "rltools", "C++, OpenBLAS", [HERE / "rltools_pendulum.py", "--work", work], threads, ["--rounds", 2]))
    ours = Side(["gradus", "bench", "train", "ppo", "pendulum", "--rounds", 2, *RLTOOLS_PPO], r"^steps/s: ([0-9.]+)$", [[], ["--threads", 1]], ["--set", "envs=4"])
    theirs = [HERE / "rltools_pendulum.py", "--work", "ppo"]
    rows.append(Row("actors", "PPO, 64-64, batches of 256", "steps/s", "rltools", "rltools", "C++, OpenBLAS", 2, theirs, says, threads, ["--rounds", 2], ours))
    return rows


# RLtools' PPO normalises nothing but the advantages
RLTOOLS_PPO = [part for setting in (
    "network.activation=relu", "ppo.rollout_steps=1024", "ppo.minibatch_size=256", "ppo.gamma=0.9", "ppo.entropy_coefficient=0.01",
    "wrappers.normalise_observations=false", "wrappers.normalise_rewards=false",
) for part in ("--set", setting)]


def environments() -> list[Row]:
    pattern = r"([0-9.]+) million steps/s$"
    ours = Side(["gradus", "bench", "cartpole"], pattern, [["--envs", n] for n in (4096, 256, 1024, 16_384)])
    # peer in install.py, package, name in random_cartpole.py, note, and candidates for the fastest number of environments
    peers = [
        ("pufferlib", "pufferlib", "pufferlib", "its environment in C", (4096, 1024, 16_384, 65_536)),
        ("jax", "gymnax", "gymnax", "compiled", (8192, 1024, 65_536)),
        ("sb3", "gymnasium", "gymnasium", "its vector environment", (4096, 1024, 16_384, 65_536)),
        ("sb3", "gymnasium", "gymnasium-sync", "SyncVectorEnv", (256, 4, 64)),
        ("envpool", "envpool", "envpool", "one thread", (1024, 256, 4096)),
    ]
    rows = []
    for peer, of, name, note, sizes in peers:
        command, variants = [HERE / "random_cartpole.py", "--peer", name], [["--envs", n] for n in sizes]
        what, unit = "CartPole, random actions, one core", "million steps/s"
        rows.append(Row("environments", what, unit, peer, of, note, 1, command, pattern, variants, ["--rounds", 2], ours))
    return rows


if __name__ == "__main__":
    main(__doc__.split("\n\n")[0], trainings() + values() + actors() + environments() + text.rows())
