"""Checks that cli/src/gradus_policy.py chooses the same actions as `gradus eval`, with NumPy and with PyTorch.

    cargo build
    python scripts/python_loader_check.py [target/debug/gradus]     # needs numpy, torch, gymnasium, minatar; `.ci/long` installs them

For each of a few short training runs, the script checks two things:
- For every observation that `gradus play --record` writes, the loader chooses the recorded action.
- The mean return in Gymnasium, or in the game of the package minatar (100 episodes with NumPy, 20 with PyTorch, 100 of the games, 10 of freeway) lies within three standard errors of the mean of `gradus eval`. The
  start states differ, because Gymnasium samples its own.

The script also checks that a policy file of the preset `cleanrl` can be loaded into CleanRL's `Agent`. Policies that are not supported must cause an
error message of one line, and so must policy files of earlier versions, which name the observation statistics differently.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import gymnasium
import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "cli/src"), str(ROOT)]
from envs.tests.gym import worlds
from gradus_policy import PolicyError, load, play, read, read_safetensors, width_of

GRADUS = sys.argv[1] if len(sys.argv) > 1 else "target/debug/gradus"

RUNS = [
    ("the default preset, 32-32", "ppo cartpole", "CartPole-v1"),
    ("64-64", "ppo cartpole --preset cleanrl --steps 40k", "CartPole-v1"),
    (
        "shared layers, relu, normalised",
        "ppo cartpole --steps 30k --set network.shared=true --set network.activation=relu --set wrappers.normalise_observations=true",
        "CartPole-v1",
    ),
    ("normalised", "ppo acrobot --steps 200k", "Acrobot-v1"),
    ("normalised, hardly trained", "a2c acrobot --steps 20k", "Acrobot-v1"),
    ("Gaussian, normalised", "ppo pendulum --steps 150k", "Pendulum-v1"),
    ("gSDE, normalised", "a2c pendulum --steps 100k", "Pendulum-v1"),
    ("Gaussian, not normalised", "trpo pendulum --steps 50k --set wrappers.normalise_observations=false", "Pendulum-v1"),
    ("discrete observations", "ppo frozen-lake --steps 50k", "FrozenLake-v1"),
    ("action values", "dqn cartpole --preset cleanrl --steps 40k", "CartPole-v1"),
    (
        "dueling, normalised",
        "dqn acrobot --preset cleanrl --steps 20k --set dqn.dueling=true --set wrappers.normalise_observations=true",
        "Acrobot-v1",
    ),
    ("quantiles, dueling", "qr-dqn cartpole --steps 10k --set qr-dqn.dueling=true", "CartPole-v1"),
    ("layer normalisation", "pqn cartpole --steps 40k", "CartPole-v1"),
    ("squashed Gaussian", "sac pendulum --steps 2k", "Pendulum-v1"),
    ("squashed Gaussian with gSDE", "sac mountain-car-continuous --steps 3k", "MountainCarContinuous-v0"),
    (
        "deterministic, normalised",
        "td3 pendulum --steps 3k --set td3.learning_starts=500 --set network.hidden=[64,64] --set wrappers.normalise_observations=true",
        "Pendulum-v1",
    ),
]

# networks that see images, with the game of the package minatar that they are played in
SEEING = [
    ("a convolution", "ppo space-invaders --steps 400k", "space_invaders"),
    ("a convolution, layer normalisation", "pqn breakout --steps 300k", "breakout"),
    ("residual sections, not shared", "a2c asterix --steps 5k --set network.trunk=impala-small --set network.shared=false", "asterix"),
    ("pooling, dueling quantiles", "qr-dqn freeway --steps 2k --set qr-dqn.learning_starts=500 --set network.trunk=8x3/2+1,max2/2 --set qr-dqn.dueling=true", "freeway"),
]

# networks that remember, in worlds without velocities, which `play` hides
REMEMBERING = [
    ("a GRU of actor and critic each, normalised", "ppo cartpole-masked --steps 30k", "CartPole-v1"),
    ("an LSTM that actor and critic share", "a2c pendulum-masked --steps 20k --set network.cell=lstm --set network.shared=true", "Pendulum-v1"),
    ("action values with an LSTM, layer normalisation", "pqn cartpole-masked --steps 40k --set network.cell=lstm --set network.layer_norm=true", "CartPole-v1"),
]

# environments of Gymnasium whose spaces have every form: the reward counts actions that belong to their space
SPACES = [
    ("a Dict, several choices with starts", "ppo", {"kind": "dict", "actions": "multi"}),
    ("a Tuple, switches", "ppo", {"kind": "tuple", "actions": "binary"}),
    ("states from 3 on, an action from -1 on", "ppo", {"kind": "discrete", "actions": "discrete"}),
    ("several numbers of choices", "dqn", {"kind": "multi", "actions": "discrete"}),
    ("bits, a box", "ppo", {"kind": "binary", "actions": "box"}),
    ("a box of whole numbers, bounds in f64", "td3", {"kind": "box", "actions": "double"}),
    ("bytes of an image", "ppo", {"kind": "bytes", "actions": "multi"}),
]

REFUSED = [
    ("ppo cartpole --steps 1k --set wrappers.frame_stack=2", "expected wrappers.frame_stack = 1, got 2"),
    ("ppo cartpole --steps 1k --set wrappers.time_aware=true", "expected wrappers.time_aware = false, got true"),
    ("grpo copy --steps 2k", "expected a multilayer perceptron, got a transformer"),
    ("q-learning taxi --steps 2k", "expected a multilayer perceptron, got a table of q-learning"),
    ("dqn breakout --steps 1k --set wrappers.frame_stack=2", "expected wrappers.frame_stack = 1, got 2"),
]


def gradus(*arguments):
    return subprocess.run([GRADUS, *map(str, arguments)], check=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "GRADUS_PYTHON": sys.executable}).stdout


def recorded(folder, seed):
    """Returns the observations and the actions of an episode recorded by gradus."""
    file = folder.with_suffix(f".{seed}.jsonl")
    gradus("play", folder, "--seed", seed, "--record", file)
    (line,) = file.read_text().splitlines()
    episode = json.loads(line)
    return episode["observations"][:-1], episode["actions"]


def check_actions(policy, observations, actions):
    """Checks that discrete actions are equal, except where two logits are nearly equal. Continuous actions may differ by rounding errors."""
    memory = policy.memory()
    for observation, expected in zip(observations, actions, strict=True):
        discrete = len(observation) == 1 and policy.environment == "frozen-lake"
        observation = int(observation[0]) if discrete else np.asarray(observation, dtype=np.float32)
        before = memory + 0
        got = np.asarray(policy.act(observation, memory=memory))
        if not policy.is_discrete:
            np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5)
        elif got != expected:
            head = np.asarray(policy.head(observation, before).tolist())
            assert abs(head[got] - head[expected]) < 1e-5, f"expected action {expected}, got {got} at {observation}: logits {head}"


def check_memories(folder):
    """Checks that what is no memory of the policy is refused in one line."""
    for backend in ["numpy", "torch"]:
        policy = load(folder, backend)
        right = policy.memory()
        width = len(right)
        wrong = [None, np.zeros(width, dtype=int), np.zeros(width + 1, dtype=np.float32), np.zeros((3, width), dtype=np.float32), np.full(width, np.nan, dtype=np.float32)]
        for memory in wrong:
            if memory is not None and backend == "torch":
                memory = right.new_tensor(memory).to(right.dtype if memory.dtype.kind == "f" else int)
            try:
                policy.act(np.zeros(width_of(read(folder)[1]), dtype=np.float32), memory=memory)
            except ValueError as error:
                assert str(error).startswith("memory: expected what policy.memory() returned") and "\n" not in str(error), error
            else:
                raise AssertionError(f"expected an error of {memory}, got an action")


class Game:
    """A game of the package minatar, with the interface of Gymnasium and the limit of our games."""

    def __init__(self, name):
        from minatar import Environment

        self.game, self.steps = Environment(name), 0
        self.actions = self.game.minimal_action_set()

    def reset(self, seed):
        self.game.seed(seed)
        self.game.reset()
        self.steps = 0
        return self.game.state(), {}

    def step(self, action):
        reward, is_over = self.game.act(self.actions[action])
        self.steps += 1
        return self.game.state(), reward, is_over, self.steps == 10_000, {}


def check_run(folder, make):
    policies = {backend: load(folder, backend) for backend in ("numpy", "torch")}
    steps = 0
    for seed in range(1, 6):
        observations, actions = recorded(folder, seed)
        steps += len(actions)
        planes = next((tensor.shape[1] for name, tensor in policies["numpy"].tensors.items() if name.endswith("convolutions.0.weight")), None)
        if planes is not None:
            observations = np.reshape(observations, (len(actions), 10, 10, planes))
        for policy in policies.values():
            check_actions(policy, observations, actions)
    ours = json.loads(gradus("eval", folder, "--json"))["returns"]
    lines = []
    for backend, policy in policies.items():
        env = make()
        # returns of the games are skewed; freeway's are not, and its episodes are long
        episodes = 100 if backend == "numpy" or isinstance(env, Game) else 20
        if policy.environment == "freeway":
            episodes = 10
        theirs = play(policy, env, episodes)
        error = np.sqrt(np.var(ours, ddof=1) / len(ours) + np.var(theirs, ddof=1) / len(theirs))
        distance = abs(np.mean(ours) - np.mean(theirs))
        assert distance <= 3 * error, f"gradus eval {np.mean(ours)}, {backend} in Gymnasium {np.mean(theirs)}: more than 3 x {error}"
        lines.append(f"{backend} {np.mean(theirs):.2f} ({episodes} episodes, {distance / error if error else 0:.1f} standard errors away)")
    return f"{steps} actions equal; gradus eval {np.mean(ours):.2f}, in Gymnasium {', '.join(lines)}"


def check_spaces(folder, kind, actions):
    """Checks that every action that `play` chooses belongs to its space, and that the recorded ones are chosen."""
    env = worlds.Counting(kind, actions)
    for backend in ["numpy", "torch"]:
        policy = load(folder, backend)
        assert play(policy, env, 2) == [7.0, 7.0], f"{backend}: {env.last} does not belong to {env.action_space}"


def check_masks(folder, masks):
    """Checks that `play` heeds the masks of two dials: a forbidden position ends an episode."""
    for backend in ["numpy", "torch"]:
        lengths, env = [], worlds.Dials(masks)
        policy, step = load(folder, backend), env.step
        env.step = lambda action, step=step, env=env: (step(action), lengths.append(env.t))[0]
        play(policy, env, 3)
        assert lengths == 3 * list(range(1, 21)), f"{backend}: an episode of {max(lengths)} steps"


def check_cleanrl(folder):
    """Checks that the file of a network like CleanRL's has the parameter names and shapes of CleanRL's `Agent`."""

    def network(outputs):
        linear, tanh = torch.nn.Linear, torch.nn.Tanh
        return torch.nn.Sequential(linear(4, 64), tanh(), linear(64, 64), tanh(), linear(64, outputs))

    agent = torch.nn.Module()
    agent.critic, agent.actor = network(1), network(2)
    tensors = read_safetensors(folder / "policy.safetensors")
    agent.load_state_dict({name: torch.from_numpy(numbers.copy()) for name, numbers in tensors.items()})


def check_old(folder):
    """Checks that a file of an earlier version is refused, and that the command in the message converts it."""
    path = folder / "policy.safetensors"
    data = path.read_bytes()
    path.write_bytes(renamed(data))
    try:
        load(folder)
    except PolicyError as error:
        assert "got observation_statistics of an earlier version" in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError("a file of an earlier version: expected an error, got a policy")
    gradus("train", "--resume", folder, "--quiet")
    assert path.read_bytes() == data, "resuming did not convert the file"


def renamed(data):
    """Returns the file's bytes as earlier versions wrote them: without a hash, and with the old name of the observation statistics."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    for key, note in header.get("__metadata__", {}).items():
        lines = [line for line in note.splitlines(keepends=True) if not line.startswith(("# gradus tensors ", "# sha256 "))]
        header["__metadata__"][key] = "".join(lines)
    header["observation_statistics"] = header.pop("observations.mean")
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        runs = [(*run, lambda world=run[2]: gymnasium.make(world)) for run in RUNS] + [(*run, lambda game=run[2]: Game(game)) for run in SEEING]
        runs += [(*run, lambda world=run[2]: gymnasium.make(world)) for run in REMEMBERING]
        for number, (what, arguments, world, make) in enumerate(runs):
            run = folder / f"run-{number}"
            gradus("train", *arguments.split(), "--out", run, "--quiet")
            print(f"gradus train {arguments}: {what}\n    {check_run(run, make)}", flush=True)
            if (what, arguments, world) in REMEMBERING:
                check_memories(run)
        for number, (what, agent, arguments) in enumerate(SPACES):
            run = folder / f"spaces-{number}"
            world = "gym:envs.tests.gym.worlds:Counting-v0?" + "&".join(f"{key}={value}" for key, value in arguments.items())
            gradus("train", agent, world, "--steps", 2000, "--out", run, "--quiet")
            check_spaces(run, **arguments)
            print(f"gradus train {agent} {world}: {what}", flush=True)
        for masks in ["parts", "flat"]:
            run = folder / f"masks-{masks}"
            gradus("train", "ppo", f"gym:envs.tests.gym.worlds:Dials-v0?masks={masks}", "--steps", 500, "--out", run, "--quiet")
            check_masks(run, masks)
        check_cleanrl(folder / "run-1")
        check_old(folder / "run-3")
        for number, (arguments, expected) in enumerate(REFUSED):
            run = folder / f"refused-{number}"
            gradus("train", *arguments.split(), "--out", run, "--quiet")
            try:
                load(run)
            except PolicyError as error:
                assert expected in str(error) and "\n" not in str(error), error
                print(f"gradus train {arguments}: {str(error).replace(str(run), 'refused')}")
            else:
                raise AssertionError(f"{arguments}: expected an error, got a policy")
    print("the loader and gradus agree")


if __name__ == "__main__":
    main()
