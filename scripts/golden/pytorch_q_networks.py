"""Golden values for networks of action values: DQN, QR-DQN and PQN's loss, from autograd.

Writes tests/golden/q_networks.json. Run it from the root of the repository:

    python -m pip install -r scripts/golden/requirements.txt
    python scripts/golden/pytorch_q_networks.py

Every case has a batch of segments. A segment has rewards r_0, r_1, ..., an observation before each of them, an action for the first, an importance
weight, and its end: "terminated", or the observation after it. An update computes the targets with the target network, the loss, the gradient, its
norm and clipping, a step of the optimiser, and then moves the target network towards the network. q has the network's outputs in the first
observations before the first update; targets, losses, norms and td_errors are those of each update; parameters and target are the final ones.

Observations, rewards, weights and initial parameters are 32-bit floats, printed with the fewest digits that give the same float back: read them as
f32. All other numbers are results, computed in float64 from exactly these floats and printed with nine digits.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from pytorch_ppo import inputs, normal, results
from torch import nn

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "q_networks.json"


@dataclass
class Case:
    name: str
    seed: int
    rows: int
    hidden: list[int]
    actions: int
    width: int = 4
    atoms: int = 1
    activation: str = "relu"
    layer_norm: bool = False
    dueling: bool = False
    double: bool = False
    loss: str = "huber"
    horizon: int = 1
    gamma: float = 0.875
    rule: str = "adam"
    max_grad_norm: float = 10.0
    tau: float = 1.0
    updates: int = 3


CASES = [
    Case("dqn", 1, 35, [20, 7], 3),
    Case("double", 2, 33, [16], 5, activation="tanh", double=True, loss="squared", max_grad_norm=0.25, tau=0.125),
    Case("dueling_n_step", 3, 70, [18, 24], 4, dueling=True, double=True, horizon=3, tau=0.25),
    Case("dueling_linear", 4, 9, [], 17, dueling=True, loss="squared"),
    Case("layer_norm", 5, 40, [20, 33], 2, layer_norm=True, loss="squared", rule="radam", updates=8),
    Case("layer_norm_dueling", 6, 31, [17, 18], 3, layer_norm=True, dueling=True, activation="tanh"),
    Case("qr_dqn", 7, 34, [20, 12], 3, atoms=5, loss="quantiles", max_grad_norm=float("inf")),
    Case("qr_dqn_dueling", 8, 12, [24], 6, atoms=4, loss="quantiles", dueling=True, double=True, horizon=2),
]


class QNetwork(nn.Module):
    def __init__(self, case: Case):
        super().__init__()
        self.case = case
        width, outputs = case.width, case.actions * case.atoms
        if not case.dueling:
            self.q = self.chain([width, *case.hidden], outputs)
            return
        shared, own = case.hidden[:-1], case.hidden[-1:]
        features = [width, *shared][-1]
        self.trunk = self.chain([width, *shared], None)
        self.value = self.chain([features, *own], case.atoms)
        self.advantage = self.chain([features, *own], outputs)

    def chain(self, widths, outputs):
        layers = []
        for inputs, hidden in zip(widths, widths[1:]):
            layers.append(nn.Linear(inputs, hidden))
            if self.case.layer_norm:
                layers.append(nn.LayerNorm(hidden))
            layers.append(nn.Tanh() if self.case.activation == "tanh" else nn.ReLU())
        if outputs is not None:
            layers.append(nn.Linear(widths[-1], outputs))
        return nn.Sequential(*layers)

    def forward(self, observations):
        """Returns the outputs, by row, action and atom."""
        shape = (-1, self.case.actions, self.case.atoms)
        if not self.case.dueling:
            return self.q(observations).reshape(shape)
        features = self.trunk(observations)
        advantages = self.advantage(features).reshape(shape)
        return self.value(features).unsqueeze(1) + advantages - advantages.mean(dim=1, keepdim=True)


def huber(error):
    return torch.nn.functional.smooth_l1_loss(error, torch.zeros_like(error), reduction="none")


def losses(case, q, targets):
    """Returns the loss of each decision. q and targets have a row of atoms for each."""
    if case.loss == "squared":
        return (q - targets).squeeze(1) ** 2
    if case.loss == "huber":
        return huber(q - targets).squeeze(1)
    fractions = (torch.arange(case.atoms, dtype=torch.float64) + 0.5) / case.atoms
    errors = targets.unsqueeze(1) - q.unsqueeze(2)  # by row, quantile i, target j
    weights = (fractions.reshape(1, -1, 1) - (errors < 0).double()).abs()
    return (weights * huber(errors)).mean(dim=2).sum(dim=1)


def segments(case, generator):
    """Returns the segments of a batch."""
    made = []
    for row in range(case.rows):
        length = 1 + int(torch.randint(case.horizon, (1,), generator=generator))
        kind = row % 3
        made.append({
            "observations": normal(generator, length, case.width),
            "rewards": normal(generator, length),
            "action": int(torch.randint(case.actions, (1,), generator=generator)),
            "weight": torch.rand((), generator=generator).float().double(),
            "next": None if kind == 0 else normal(generator, case.width),
            "end": ["terminated", "truncated", "cut"][kind],
        })
    return made


def run(case):
    generator = torch.Generator().manual_seed(case.seed)
    network, target = initial(case, generator), initial(case, generator)
    first = {"parameters": printed(network, inputs), "target": printed(target, inputs)}
    batch = segments(case, generator)
    starts = torch.stack([segment["observations"][0] for segment in batch])
    actions = torch.tensor([segment["action"] for segment in batch])
    weights = torch.stack([segment["weight"] for segment in batch]) / len(batch)
    optimiser = {
        "adam": lambda: torch.optim.Adam(network.parameters(), lr=0.01, eps=1e-5),
        "radam": lambda: torch.optim.RAdam(network.parameters(), lr=0.01, eps=1e-5),
    }[case.rule]()

    q = results(network(starts).flatten(1))
    out = {"targets": [], "losses": [], "norms": [], "td_errors": []}
    for _ in range(case.updates):
        with torch.no_grad():
            rows = []
            for segment in batch:
                value = torch.zeros(case.atoms, dtype=torch.float64)
                if segment["next"] is not None:
                    after = segment["next"].unsqueeze(0)
                    choosing = network if case.double else target
                    action = choosing(after)[0].mean(dim=1).argmax()
                    value = target(after)[0, action]
                for reward in segment["rewards"].flip(0):
                    value = reward + case.gamma * value
                rows.append(value)
            targets = torch.stack(rows)
        taken = network(starts)[torch.arange(len(batch)), actions]
        loss = (weights * losses(case, taken, targets)).sum()
        optimiser.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(network.parameters(), case.max_grad_norm)
        optimiser.step()
        with torch.no_grad():
            for old, new in zip(target.parameters(), network.parameters()):
                old.mul_(1 - case.tau).add_(case.tau * new)
        out["targets"].append(results(targets))
        out["losses"].append(results(loss))
        out["norms"].append(results(norm))
        out["td_errors"].append(results(taken.mean(dim=1) - targets.mean(dim=1)))
    settings = {key: value for key, value in asdict(case).items() if key not in ("name", "seed")}
    settings["max_grad_norm"] = None if case.max_grad_norm == float("inf") else case.max_grad_norm
    shown = lambda segment: {key: inputs(x) if isinstance(x, torch.Tensor) else x for key, x in segment.items()}
    last = {"parameters": printed(network, results), "target": printed(target, results)}
    return {"name": case.name, "settings": settings, "segments": [shown(segment) for segment in batch], "first": first, "q": q, **out, "last": last}


def initial(case, generator):
    """Returns a network with larger parameters than the usual ones. Biases of zero and gains of one would hide mistakes."""
    network = QNetwork(case).double()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            scale = 0.1 if parameter.dim() == 1 else 1.2 / parameter.shape[1] ** 0.5
            parameter.copy_(normal(generator, *parameter.shape, scale=scale) + float(is_gain(network, name)))
            parameter.copy_(parameter.float().double())
    return network


def is_gain(network, name):
    """Whether a parameter is the gain of a layer normalisation."""
    module = network.get_submodule(name.rsplit(".", 1)[0])
    return isinstance(module, nn.LayerNorm) and name.endswith("weight")


def printed(network, rule):
    return {name: rule(parameter) for name, parameter in network.named_parameters()}


def main():
    torch.set_num_threads(1)
    cases = [run(case) for case in CASES]
    # one line per entry, so that a diff shows which entry changed
    compact = json.JSONEncoder(separators=(",", ":")).encode
    objects = ["{\n" + ",\n".join(f"{compact(key)}: {compact(entry)}" for key, entry in case.items()) + "\n}" for case in cases]
    OUTPUT.write_text("[\n" + ",\n".join(objects) + "\n]\n")
    for case in cases:
        print(f"{case['name']}: losses {case['losses']}, gradient norms {case['norms']}")


if __name__ == "__main__":
    main()
