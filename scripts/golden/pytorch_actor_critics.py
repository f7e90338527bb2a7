"""Golden values for DDPG, TD3 and SAC, from autograd.

Reads tests/golden/noise.json, which has the standard normal numbers of our updates (`agents/tests/actor_critics.rs` writes and checks it). Writes
tests/golden/actor_critics.json. Run it from the root of the repository:

    python -m pip install -r scripts/golden/requirements.txt
    python scripts/golden/pytorch_actor_critics.py

Every case has a batch of segments. A segment has rewards r_0, r_1, ..., an observation before each of them, an action for the first as the environment
takes it, an importance weight of the critics' loss, and its end: "terminated", or the observation after it. q has the critics' values of these
actions before the first update; targets, losses, norms, actor_losses and actor_norms (null if the actor was not updated), log_probs (means over the
batch) and alphas (before its step) are those of each update; parameters and target are the final ones.

Observations, actions, rewards, weights and initial parameters are 32-bit floats, printed with the fewest digits that give the same float back: read
them as f32. All other numbers are results, computed in float64 from exactly these floats and printed with nine digits.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from pytorch_ppo import inputs, normal, results
from torch import nn

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"


@dataclass
class Case:
    name: str
    agent: str
    seed: int
    rows: int
    hidden: list[int]
    actions: int
    width: int = 3
    activation: str = "relu"
    critics: int = 2
    bounds: str = "clamp"
    gsde: bool = False
    horizon: int = 1
    gamma: float = 0.875
    tau: float = 0.125
    alpha: float = 0.5
    auto: bool = False
    target_entropy: float = -1.0
    delay: int = 2
    smoothing: float = 0.5
    clip: float = 0.25
    max_grad_norm: float = float("inf")
    updates: int = 4


CASES = [
    Case("ddpg", "ddpg", 1, 35, [20, 7], 2, critics=1),
    Case("td3", "td3", 2, 33, [18, 24], 1, horizon=3),
    Case("td3_three_critics", "td3", 3, 20, [16], 3, activation="tanh", critics=3, delay=1, max_grad_norm=0.25),
    Case("sac", "sac", 4, 34, [24, 20], 2, auto=True, target_entropy=-1.5),
    Case("sac_fixed", "sac", 5, 12, [], 1, bounds="tanh", alpha=0.25),
    Case("sac_gsde", "sac", 6, 33, [17, 12], 2, activation="tanh", gsde=True, auto=True, horizon=2),
]


def chain(case, inputs, outputs):
    layers = []
    for before, hidden in zip([inputs, *case.hidden], case.hidden):
        layers += [nn.Linear(before, hidden), nn.Tanh() if case.activation == "tanh" else nn.ReLU()]
    layers.append(nn.Linear([inputs, *case.hidden][-1], outputs))
    return nn.Sequential(*layers)


class Actor(nn.Sequential):
    """The actor's layers, numbered as in `Sequential`; with gSDE, also `log_std`."""

    def __init__(self, case):
        has_log_stds = case.agent == "sac" and not case.gsde
        super().__init__(*chain(case, case.width, 2 * case.actions if has_log_stds else case.actions))
        if case.gsde:
            self.log_std = nn.Parameter(torch.zeros([case.width, *case.hidden][-1], case.actions))


class Network(nn.Module):
    def __init__(self, case):
        super().__init__()
        self.case = case
        self.actor = Actor(case)
        self.critic = nn.ModuleList(chain(case, case.width + case.actions, 1) for _ in range(case.critics))

    def q(self, observations, actions):
        """Returns a row of the critics' values for each observation."""
        return torch.cat([critic(torch.cat([observations, actions], dim=1)) for critic in self.critic], dim=1)

    def act(self, observations, noise):
        """Returns scaled actions and log pi. `noise` has standard normal numbers."""
        case = self.case
        if case.agent != "sac":
            return torch.tanh(self.actor(observations)), None
        if case.gsde:
            features = observations
            for layer in list(self.actor)[:-1]:
                features = layer(features)
            mean = self.actor[-1](features).clamp(-2, 2)
            std = self.actor.log_std.exp()
            u = mean + features @ (std * noise.reshape(std.shape))
            deviation = (features**2 @ std**2 + 1e-6).sqrt()
        else:
            mean, raw = self.actor(observations).chunk(2, dim=1)
            log_std = raw.clamp(-20, 2) if case.bounds == "clamp" else -5 + 3.5 * (torch.tanh(raw) + 1)
            deviation = log_std.exp()
            u = mean + deviation * noise.reshape(mean.shape)
        log_slope = 2 * (torch.log(torch.tensor(2.0, dtype=u.dtype)) - u - nn.functional.softplus(-2 * u))
        return torch.tanh(u), (torch.distributions.Normal(mean, deviation).log_prob(u) - log_slope).sum(dim=1)


def bounds(case):
    """The bounds of the environment's actions."""
    low = torch.tensor([-2.0 - j for j in range(case.actions)], dtype=torch.float64)
    return low, torch.ones(case.actions, dtype=torch.float64)


def segments(case, generator):
    """Returns the segments of a batch."""
    made, (low, high) = [], bounds(case)
    for row in range(case.rows):
        length = 1 + int(torch.randint(case.horizon, (1,), generator=generator))
        kind = row % 3
        made.append({
            "observations": normal(generator, length, case.width),
            "rewards": normal(generator, length),
            "action": (low + (high - low) * torch.rand(case.actions, generator=generator).double()).float().double(),
            "weight": torch.rand((), generator=generator).float().double(),
            "next": None if kind == 0 else normal(generator, case.width),
            "end": ["terminated", "truncated", "cut"][kind],
        })
    return made


def run(case, noise):
    generator = torch.Generator().manual_seed(case.seed)
    network, target = initial(case, generator), initial(case, generator)
    first = {"parameters": printed(network, inputs), "target": printed(target, inputs)}
    batch = segments(case, generator)
    starts = torch.stack([segment["observations"][0] for segment in batch])
    low, high = bounds(case)
    actions = 2 * (torch.stack([segment["action"] for segment in batch]) - low) / (high - low) - 1
    weights = torch.stack([segment["weight"] for segment in batch]) / len(batch)
    after = torch.stack([segment["next"] for segment in batch if segment["next"] is not None])
    optimisers = [torch.optim.Adam(part.parameters(), lr=0.01, eps=1e-5) for part in (network.critic, network.actor)]
    log_alpha = torch.tensor(case.alpha, dtype=torch.float64).log().requires_grad_()
    of_alpha = torch.optim.Adam([log_alpha], lr=0.01, eps=1e-8)

    out = {key: [] for key in ("targets", "losses", "norms", "actor_losses", "actor_norms", "log_probs", "alphas")}
    q = results(network.q(starts, actions))
    for update in range(case.updates):
        numbers = iter(torch.tensor(noise[update], dtype=torch.float64))
        draw = lambda n: torch.stack([next(numbers) for _ in range(n)])
        per_action = network.actor.log_std.numel() if case.gsde else None
        alpha = log_alpha.exp().detach()
        with torch.no_grad():
            if case.agent == "sac":
                chosen, log_probs = network.act(after, draw(per_action or after.shape[0] * case.actions))
                values = target.q(after, chosen).min(dim=1).values - alpha * log_probs
            else:
                chosen, _ = target.act(after, None)
                if case.agent == "td3":
                    epsilon = case.smoothing * draw(chosen.numel()).reshape(chosen.shape)
                    chosen = (chosen + epsilon.clamp(-case.clip, case.clip)).clamp(-1, 1)
                values = target.q(after, chosen).min(dim=1).values
            rest, targets = iter(values), []
            for segment in batch:
                value = torch.tensor(0.0, dtype=torch.float64) if segment["next"] is None else next(rest)
                for reward in segment["rewards"].flip(0):
                    value = reward + case.gamma * value
                targets.append(value)
            targets = torch.stack(targets)
        factor = 0.5 if case.agent == "sac" else 1.0
        loss = (weights * factor * ((network.q(starts, actions) - targets.unsqueeze(1)) ** 2).sum(dim=1)).sum()
        norm = step(optimisers[0], loss, network.critic, case)

        out["targets"].append(results(targets))
        out["losses"].append(results(loss))
        out["norms"].append(results(norm))
        out["alphas"].append(results(alpha))
        if case.agent == "td3" and (update + 1) % case.delay > 0:
            [out[key].append(None) for key in ("actor_losses", "actor_norms", "log_probs")]
            continue
        if case.agent == "sac":
            chosen, log_probs = network.act(starts, draw(per_action or starts.shape[0] * case.actions))
            actor_loss = (alpha * log_probs - network.q(starts, chosen).min(dim=1).values).mean()
        else:
            actor_loss, log_probs = -network.q(starts, network.act(starts, None)[0])[:, 0].mean(), None
        actor_norm = step(optimisers[1], actor_loss, network.actor, case)
        out["actor_losses"].append(results(actor_loss))
        out["actor_norms"].append(results(actor_norm))
        out["log_probs"].append(None if log_probs is None else results(log_probs.mean()))
        if case.auto:
            of_alpha.zero_grad()
            (-log_alpha * (log_probs.detach() + case.actions * case.target_entropy).mean()).backward()
            of_alpha.step()
        with torch.no_grad():
            for old, new in zip(target.parameters(), network.parameters()):
                old.mul_(1 - case.tau).add_(case.tau * new)
    settings = {key: value for key, value in asdict(case).items() if key not in ("name", "seed")}
    settings["max_grad_norm"] = None if case.max_grad_norm == float("inf") else case.max_grad_norm
    shown = lambda segment: {key: inputs(x) if isinstance(x, torch.Tensor) else x for key, x in segment.items()}
    last = {"parameters": printed(network, results), "target": printed(target, results), "alpha": results(log_alpha.exp())}
    return {"name": case.name, "settings": settings, "segments": [shown(segment) for segment in batch], "first": first, "q": q, **out, "last": last}


def step(optimiser, loss, part, case):
    """Takes a step on the gradient of a part of the network. Returns the gradient's norm before clipping."""
    optimiser.zero_grad()
    loss.backward(inputs=list(part.parameters()))
    norm = nn.utils.clip_grad_norm_(part.parameters(), case.max_grad_norm)
    optimiser.step()
    return norm


def initial(case, generator):
    """Returns a network with larger parameters than the usual ones. Biases of zero would hide mistakes."""
    network = Network(case).double()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            scale = 0.1 if parameter.dim() == 1 else 1.2 / parameter.shape[1] ** 0.5
            moved = normal(generator, *parameter.shape, scale=0.3) - 1.0 if name.endswith("log_std") else normal(generator, *parameter.shape, scale=scale)
            parameter.copy_(moved.float().double())
    return network


def printed(network, rule):
    return {name: rule(parameter) for name, parameter in network.named_parameters()}


def main():
    torch.set_num_threads(1)
    noise = json.loads((GOLDEN / "noise.json").read_text())
    cases = [run(case, noise) for case in CASES]
    # one line per entry, so that a diff shows which entry changed
    compact = json.JSONEncoder(separators=(",", ":")).encode
    objects = ["{\n" + ",\n".join(f"{compact(key)}: {compact(entry)}" for key, entry in case.items()) + "\n}" for case in cases]
    (GOLDEN / "actor_critics.json").write_text("[\n" + ",\n".join(objects) + "\n]\n")
    for case in cases:
        print(f"{case['name']}: losses {case['losses']}, actor losses {case['actor_losses']}, alphas {case['alphas']}")


if __name__ == "__main__":
    main()
