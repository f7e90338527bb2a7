"""Golden values for updates of DDPG, TD3, SAC and PPO in several dimensions of actions, from Stable-Baselines3's own `train`.

Reads tests/golden/noise.json. Writes tests/golden/sb3_actor_critics.json, in the form of actor_critics.json (see pytorch_actor_critics.py), and
tests/golden/sb3_ppo.json. Run it from the root of the repository:

    python -m pip install -r scripts/golden/requirements.txt
    python scripts/golden/sb3_updates.py

The agents are those of the package: only what they are given is ours. Networks, batches and random numbers come from here, all numbers are
float64, and two differences are evened out: the 1e-6 that SB3 adds within the logarithm of the squashing's slope is 0 here, and with gSDE every
call draws its own matrix of noise, where SB3 draws one for each update.

A case of sb3_ppo.json has a minibatch and the parameters after each of three updates with it.
"""

import json
from dataclasses import asdict, dataclass
from types import SimpleNamespace

import gymnasium
import numpy as np
import torch
from pytorch_actor_critics import GOLDEN, Case, bounds, initial, printed, segments
from pytorch_ppo import as_f32, inputs, normal, results
from stable_baselines3 import DDPG, PPO, SAC, TD3
from stable_baselines3.common import policies
from stable_baselines3.common.buffers import ReplayBufferSamples, RolloutBufferSamples
from stable_baselines3.common.logger import configure
from torch import nn

# the same agents as elsewhere; every one has three dimensions of actions, with bounds -2 to 1, -3 to 1, -4 to 1
CASES = [
    Case("sb3_ddpg", "ddpg", 21, 30, [20, 7], 3, critics=1),
    Case("sb3_td3", "td3", 22, 30, [18, 24], 3),
    Case("sb3_sac", "sac", 23, 24, [24, 20], 3, auto=True),
    Case("sb3_sac_fixed", "sac", 26, 24, [16], 3, activation="tanh", alpha=0.25),
    Case("sb3_sac_gsde", "sac", 25, 24, [17, 12], 3, activation="tanh", gsde=True, auto=True),
]


class Spaces(gymnasium.Env):
    """Only the spaces of an environment."""

    def __init__(self, width, low, high):
        self.observation_space = gymnasium.spaces.Box(-9, 9, (width,), np.float32)
        self.action_space = gymnasium.spaces.Box(np.float32(low), np.float32(high))

    def reset(self, seed=None, options=None):
        return self.observation_space.sample(), {}


def kwargs(case):
    activation = nn.Tanh if case.activation == "tanh" else nn.ReLU
    return {"activation_fn": activation, "optimizer_kwargs": {"eps": 1e-5}}


def made(case):
    """Returns the agent of the package, in float64."""
    env = Spaces(case.width, *(bound.numpy() for bound in bounds(case)))
    policy = kwargs(case) | {"net_arch": case.hidden, "n_critics": case.critics}
    common = {"learning_rate": 0.01, "gamma": case.gamma, "tau": case.tau, "policy_kwargs": policy, "device": "cpu"}
    if case.agent == "sac":
        model = SAC("MlpPolicy", env, ent_coef="auto" if case.auto else case.alpha, target_entropy=case.actions * case.target_entropy, use_sde=case.gsde, **common)
        if case.auto:
            model.log_ent_coef = torch.tensor([case.alpha], dtype=torch.float64).log().requires_grad_()
            model.ent_coef_optimizer = torch.optim.Adam([model.log_ent_coef], lr=0.01)
        if case.gsde:
            model.actor.action_dist.bijector.epsilon = 0.0
        else:
            model.actor.action_dist.epsilon = 0.0
    elif case.agent == "td3":
        model = TD3("MlpPolicy", env, policy_delay=case.delay, target_policy_noise=case.smoothing, target_noise_clip=case.clip, **common)
    else:
        del policy["n_critics"]
        model = DDPG("MlpPolicy", env, **common)
    model.policy.double()
    model.set_logger(configure(None, []))
    return model


def pairs(case, model, network):
    """The parameters of the package's agent, each with its part of ours."""
    own = dict(network.named_parameters())
    last, layers = 2 * len(case.hidden), range(0, 2 * len(case.hidden), 2)
    for kind in ("weight", "bias"):
        for i in layers:
            stem = model.actor.latent_pi if case.agent == "sac" else model.actor.mu
            yield getattr(stem[i], kind), own[f"actor.{i}.{kind}"]
        head = own[f"actor.{last}.{kind}"]
        if case.agent != "sac":
            yield getattr(model.actor.mu[last], kind), head
        elif case.gsde:
            yield getattr(model.actor.mu[0], kind), head
        else:
            yield getattr(model.actor.mu, kind), head[: case.actions]
            yield getattr(model.actor.log_std, kind), head[case.actions :]
        for k in range(case.critics):
            for i in [*layers, last]:
                yield getattr(model.critic.q_networks[k][i], kind), own[f"critic.{k}.{i}.{kind}"]
    if case.gsde:
        yield model.actor.log_std, own["actor.log_std"]


def target_pairs(case, model, network):
    own = dict(network.named_parameters())
    for kind in ("weight", "bias"):
        for i in range(0, 2 * len(case.hidden) + 1, 2):
            for k in range(case.critics):
                yield getattr(model.critic_target.q_networks[k][i], kind), own[f"critic.{k}.{i}.{kind}"]
            if case.agent != "sac":
                yield getattr(model.actor_target.mu[i], kind), own[f"actor.{i}.{kind}"]


class Numbers:
    """The normal numbers of an update, as ours draws them: for the successors that are not terminal, then for the actor's own actions."""

    def __init__(self, case, batch):
        self.case, self.batch = case, batch

    def begin(self, noise):
        self.rest = iter(torch.tensor(noise, dtype=torch.float64))
        case = self.case
        own = (case.hidden[-1], case.actions) if case.gsde else (len(self.batch), case.actions)
        self.after = self.take(*own) if case.gsde else self.of_successors()
        self.calls = iter([self.take(*own), self.after]) if case.agent == "sac" else iter([self.after])

    def take(self, *shape):
        return torch.stack([next(self.rest) for _ in range(int(np.prod(shape)))]).reshape(shape)

    def of_successors(self):
        """A row for each decision; that of a terminal one is not used."""
        if self.case.agent == "ddpg":
            return torch.zeros(len(self.batch), self.case.actions, dtype=torch.float64)
        rows = [self.take(self.case.actions) if segment["next"] is not None else torch.zeros(self.case.actions, dtype=torch.float64) for segment in self.batch]
        return torch.stack(rows)


def watched(optimiser, into):
    """Records the gradient's norm at every step."""
    step = optimiser.step

    def recorded(*args, **named):
        norms = [parameter.grad.norm() for group in optimiser.param_groups for parameter in group["params"]]
        into.append(torch.stack(norms).norm())
        return step(*args, **named)

    optimiser.step = recorded


def run(case, noise):
    generator = torch.Generator().manual_seed(case.seed)
    network, target = initial(case, generator), initial(case, generator)
    if case.agent == "sac":  # its target has no actor of its own
        target.actor.load_state_dict(network.actor.state_dict())
    first = {"parameters": printed(network, inputs), "target": printed(target, inputs)}
    batch = segments(case, generator)
    for segment in batch:
        segment["weight"] = torch.tensor(1.0, dtype=torch.float64)
    model = made(case)
    with torch.no_grad():
        for theirs, ours in [*pairs(case, model, network), *target_pairs(case, model, target)]:
            theirs.copy_(ours)
    low, high = bounds(case)
    stack = lambda of: torch.stack([of(segment) for segment in batch])
    data = ReplayBufferSamples(
        observations=stack(lambda segment: segment["observations"][0]),
        actions=2 * (stack(lambda segment: segment["action"]) - low) / (high - low) - 1,
        next_observations=stack(lambda segment: segment["observations"][0] if segment["next"] is None else segment["next"]),
        dones=stack(lambda segment: torch.tensor([float(segment["next"] is None)], dtype=torch.float64)),
        rewards=stack(lambda segment: segment["rewards"]),
    )
    model.replay_buffer = SimpleNamespace(sample=lambda *args, **named: data)

    numbers, norms, actor_norms, means = Numbers(case, batch), [], [], []
    watched(model.critic.optimizer, norms)
    watched(model.actor.optimizer, actor_norms)
    if case.agent == "sac":
        # samples are the mean plus the deviation times our numbers
        torch.distributions.Normal.rsample = lambda self, shape=torch.Size(): self.loc + self.scale * next(numbers.calls)
        action_log_prob = model.actor.action_log_prob

        def recorded(observations):
            actions, log_prob = action_log_prob(observations)
            means.append(log_prob.mean())
            return actions, log_prob

        model.actor.action_log_prob = recorded
        if case.gsde:
            model.actor.reset_noise = lambda batch_size=1: None
            std = lambda: model.actor.log_std.exp()
            model.actor.action_dist.get_noise = lambda features: features @ (std() * next(numbers.calls))
    else:
        torch.Tensor.normal_ = lambda self, mean, scale: self.copy_(scale * next(numbers.calls))

    out = {key: [] for key in ("losses", "norms", "actor_losses", "actor_norms", "log_probs", "alphas")}
    for update in range(case.updates):
        numbers.begin(noise[update])
        before = len(actor_norms)
        model.logger.name_to_value.clear()
        if case.agent == "ddpg":
            assert model.policy_delay == 1 and model.target_noise_clip == 0.0
        model.train(1, len(batch))
        said = model.logger.name_to_value
        number = lambda key: results(torch.tensor(float(said[key]), dtype=torch.float64))
        out["losses"].append(number("train/critic_loss"))
        out["norms"].append(results(norms[-1]))
        out["alphas"].append(number("train/ent_coef") if case.agent == "sac" else 0.5)
        is_updated = len(actor_norms) > before
        out["actor_losses"].append(number("train/actor_loss") if is_updated else None)
        out["actor_norms"].append(results(actor_norms[-1]) if is_updated else None)
        out["log_probs"].append(results(means[2 * update]) if case.agent == "sac" else None)
    with torch.no_grad():
        for theirs, ours in pairs(case, model, network):
            ours.copy_(theirs)
        for theirs, ours in target_pairs(case, model, target):
            ours.copy_(theirs)
    settings = {key: value for key, value in asdict(case).items() if key not in ("name", "seed")} | {"max_grad_norm": None}
    shown = lambda segment: {key: inputs(x) if isinstance(x, torch.Tensor) else x for key, x in segment.items()}
    alpha = model.log_ent_coef.detach().exp()[0] if case.auto else torch.tensor(case.alpha, dtype=torch.float64)
    last = {"parameters": printed(network, results), "target": printed(target, results), "alpha": results(alpha)}
    if case.agent == "sac":
        last["target"] = {name: values for name, values in last["target"].items() if name.startswith("critic.")}
    return {"name": case.name, "settings": settings, "segments": [shown(segment) for segment in batch], "first": first, **out, "last": last}


@dataclass
class PpoCase:
    name: str
    seed: int
    rows: int
    hidden: list[int]
    activation: str
    gsde: bool
    entropy_coefficient: float
    width: int = 5
    actions: int = 3


PPO_CASES = [
    PpoCase("sb3_ppo_gaussian", 31, 40, [20, 12], "tanh", False, 0.01),
    PpoCase("sb3_ppo_gaussian_relu", 32, 25, [18], "relu", False, 0.0),
    PpoCase("sb3_ppo_gsde", 33, 40, [16, 10], "tanh", True, 0.01),
]


def run_ppo(case):
    generator = torch.Generator().manual_seed(case.seed)
    env = Spaces(case.width, [-2.0, -0.5, 0.0], [1.0, 3.0, 0.25])
    policy = kwargs(case) | {"net_arch": case.hidden}
    model = PPO("MlpPolicy", env, n_steps=case.rows, batch_size=case.rows, n_epochs=1, learning_rate=0.01, use_sde=case.gsde, ent_coef=case.entropy_coefficient, policy_kwargs=policy, device="cpu")
    model.policy.double()
    model.set_logger(configure(None, []))
    net = model.policy.mlp_extractor
    names = {"actor.log_std": model.policy.log_std}
    for part, layers, head in (("actor", net.policy_net, model.policy.action_net), ("critic", net.value_net, model.policy.value_net)):
        for i, layer in enumerate([*(layer for layer in layers if isinstance(layer, nn.Linear)), head]):
            names |= {f"{part}.{2 * i}.weight": layer.weight, f"{part}.{2 * i}.bias": layer.bias}
    with torch.no_grad():
        for name, parameter in sorted(names.items()):
            scale = 0.1 if parameter.dim() == 1 else 1.2 / parameter.shape[1] ** 0.5
            parameter.copy_(normal(generator, *parameter.shape, scale=scale) - (0.5 if name.endswith("log_std") else 0.0))
            parameter.copy_(parameter.float().double())
        observations, around = normal(generator, case.rows, case.width), normal(generator, case.rows, case.actions)
        actions = as_f32(model.policy.get_distribution(observations).distribution.mean + 0.6 * around)
        values, log_prob, _ = model.policy.evaluate_actions(observations, actions)
        data = RolloutBufferSamples(
            observations=observations,
            actions=actions,
            old_values=values.flatten(),
            old_log_prob=as_f32(log_prob + 0.3 * normal(generator, case.rows)),
            advantages=normal(generator, case.rows),
            returns=as_f32(values.flatten() + normal(generator, case.rows)),
        )
    flat = np.zeros(2)
    model.rollout_buffer = SimpleNamespace(get=lambda size: iter([data]), values=flat, returns=flat)
    first, updates = {name: inputs(parameter) for name, parameter in names.items()}, []
    for _ in range(3):
        model.train()
        updates.append({name: results(parameter) for name, parameter in names.items()})
    batch = {"observations": data.observations, "actions": data.actions, "old_log_probs": data.old_log_prob, "advantages": data.advantages, "returns": data.returns}
    # SB3's value loss has no factor 1/2
    settings = {"clip": 0.2, "entropy_coefficient": case.entropy_coefficient, "value_coefficient": 2 * model.vf_coef, "clip_value": None, "normalize_advantages": True}
    config = {"obs_dim": case.width, "action_dim": case.actions, "hidden": case.hidden, "activation": case.activation, "separate": True, "gsde": case.gsde}
    return {"name": case.name, "config": config, "ppo": settings, **{key: inputs(x) for key, x in batch.items()}, "old_values": inputs(as_f32(data.old_values)), "parameters": first, "updates": updates}


def write(name, cases):
    # one line per entry, so that a diff shows which entry changed
    compact = json.JSONEncoder(separators=(",", ":")).encode
    objects = ["{\n" + ",\n".join(f"{compact(key)}: {compact(entry)}" for key, entry in case.items()) + "\n}" for case in cases]
    (GOLDEN / name).write_text("[\n" + ",\n".join(objects) + "\n]\n")


def main():
    torch.set_num_threads(1)
    policies.preprocess_obs = lambda observations, *args, **named: observations  # it would round to float32
    noise = json.loads((GOLDEN / "noise.json").read_text())
    write("sb3_ppo.json", [run_ppo(case) for case in PPO_CASES])
    rsample, normal_ = torch.distributions.Normal.rsample, torch.Tensor.normal_
    cases = []
    for case in CASES:
        cases.append(run(case, noise))
        torch.distributions.Normal.rsample, torch.Tensor.normal_ = rsample, normal_
        print(f"{case.name}: losses {cases[-1]['losses']}, actor losses {cases[-1]['actor_losses']}, alphas {cases[-1]['alphas']}")
    write("sb3_actor_critics.json", cases)


if __name__ == "__main__":
    main()
