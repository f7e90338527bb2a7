"""Golden values for the policy's heads, from torch.distributions and autograd.

Writes tests/golden/heads.json. Run it from the root of the repository:

    python -m pip install -r scripts/golden/requirements.txt
    python scripts/golden/pytorch_heads.py

The cases cover the categorical head with and without action masks, the Gaussian head and gSDE, separate and shared networks, and zero to two hidden
layers. The outputs of each decision are log pi(a|s), the entropy, the value, and KL(old || new). old is the distribution of a policy with other
parameters. gradients has, for each of these four outputs, the gradient of its weighted sum over the decisions.

fisher is the product F v for the direction v. F is the Hessian, with respect to the parameters, of the weighted sum of KL(now || new). new is the
policy's distribution, and now is a constant copy of it. F v is computed by differentiating twice. gSDE has no fisher: its variance is detached from
the features, so this Hessian is not the Fisher information.

Parameters, observations, actions, weights, old and direction are 32-bit floats, printed with the fewest digits that give the same
float back: read them as f32. All other numbers are results, computed in float64 from exactly these floats and printed with nine digits.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from pytorch_ppo import as_f32, inputs, layers, normal, results
from torch import nn
from torch.distributions import Categorical, Independent, Normal, kl_divergence

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "heads.json"
RULED_OUT = -1e9  # logit of a masked action: the probability is 0 in float64, and the product of 0 and this logit is finite


@dataclass
class Case:
    name: str
    seed: int
    rows: int
    head: str
    separate: bool
    activation: str
    hidden: list[int]
    obs_dim: int
    n_actions: int


CASES = [
    Case("categorical_separate_20_7", 1, 11, "categorical", True, "tanh", [20, 7], 4, 3),
    Case("categorical_shared_relu", 2, 35, "categorical", False, "relu", [18], 3, 17),
    Case("masked_separate_16", 3, 33, "masked", True, "tanh", [16], 4, 5),
    Case("gaussian_separate_20_7", 4, 11, "gaussian", True, "tanh", [20, 7], 4, 3),
    Case("gaussian_shared_17", 5, 35, "gaussian", False, "tanh", [17], 3, 1),
    Case("gaussian_linear_many", 6, 9, "gaussian", True, "tanh", [], 2, 17),
    Case("gsde_separate_20_7", 7, 34, "gsde", True, "tanh", [20, 7], 4, 3),
    Case("gsde_shared_relu", 8, 11, "gsde", False, "relu", [18], 3, 1),
]


class Policy(nn.Module):
    def __init__(self, case: Case):
        super().__init__()
        self.case = case
        inputs, hidden = case.obs_dim, case.hidden
        if not case.separate:
            self.trunk = layers([inputs, *hidden], case.activation, last_is_output=False)
            inputs, hidden = hidden[-1], []
        self.actor = layers([inputs, *hidden, case.n_actions], case.activation, last_is_output=True)
        self.critic = layers([inputs, *hidden, 1], case.activation, last_is_output=True)
        if case.head == "gaussian":
            self.actor.log_std = nn.Parameter(torch.zeros(case.n_actions))
        elif case.head == "gsde":
            self.actor.log_std = nn.Parameter(torch.zeros(self.actor[-1].in_features, case.n_actions))

    def forward(self, observations, masks):
        features = self.trunk(observations) if hasattr(self, "trunk") else observations
        value = self.critic(features).squeeze(-1)
        # the log standard deviations are a parameter, not a child module
        *before, head = self.actor.children()
        for layer in before:
            features = layer(features)
        numbers = head(features)
        if self.case.head in ("categorical", "masked"):
            return Categorical(logits=numbers if masks is None else numbers.masked_fill(~masks, RULED_OUT)), value
        if self.case.head == "gaussian":
            return Independent(Normal(numbers, self.actor.log_std.exp().expand_as(numbers)), 1), value
        variance = (features.detach() ** 2) @ (self.actor.log_std.exp() ** 2) + 1e-6
        return Independent(Normal(numbers, variance.sqrt()), 1), value


def new_policy(case: Case, generator: torch.Generator) -> Policy:
    policy = Policy(case).double()
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            is_weight = name.endswith("weight")
            parameter.copy_(normal(generator, *parameter.shape, scale=1.2 / parameter.shape[1] ** 0.5 if is_weight else 0.3))
    return policy


def row(distribution):
    """Returns a distribution as Gradus stores it: log-probabilities, or means followed by log standard deviations."""
    if isinstance(distribution, Categorical):
        return distribution.logits
    return torch.cat([distribution.base_dist.loc, distribution.base_dist.scale.log()], dim=-1)


def from_row(rows, case: Case):
    if case.head in ("categorical", "masked"):
        return Categorical(logits=rows)
    return Independent(Normal(rows[:, : case.n_actions], rows[:, case.n_actions :].exp()), 1)


def fisher(policy: Policy, case: Case, batch: dict, direction: dict) -> dict:
    now, _ = policy(batch["observations"], batch["masks"])
    divergence = (batch["weights"] * kl_divergence(from_row(row(now).detach(), case), now)).sum()
    names, parameters = zip(*policy.named_parameters())
    gradients = torch.autograd.grad(divergence, parameters, create_graph=True, allow_unused=True)
    along = sum((gradient * direction[name]).sum() for name, gradient in zip(names, gradients) if gradient is not None)
    products = torch.autograd.grad(along, parameters, allow_unused=True)
    return {name: torch.zeros_like(p) if product is None else product for name, p, product in zip(names, parameters, products)}


def gradients(policy: Policy, quantity: torch.Tensor) -> dict:
    policy.zero_grad()
    quantity.backward(retain_graph=True)
    return {name: results(torch.zeros_like(p) if p.grad is None else p.grad) for name, p in policy.named_parameters()}


def golden(case: Case) -> dict:
    generator = torch.Generator().manual_seed(case.seed)
    policy, other = new_policy(case, generator), new_policy(case, generator)
    batch = {"observations": normal(generator, case.rows, case.obs_dim), "masks": None}
    batch["weights"] = as_f32((0.5 + torch.rand(case.rows, generator=generator, dtype=torch.float64)) / case.rows)
    is_discrete = case.head in ("categorical", "masked")
    if is_discrete:
        batch["actions"] = torch.randint(case.n_actions, (case.rows,), generator=generator)
    else:
        batch["actions"] = normal(generator, case.rows, case.n_actions)
    if case.head == "masked":
        masks = torch.rand(case.rows, case.n_actions, generator=generator) < 0.5
        masks[torch.arange(case.rows), batch["actions"]] = True
        assert (~masks).any() and (masks.sum(dim=1) > 1).any()
        batch["masks"] = masks
    with torch.no_grad():
        old = as_f32(row(other(batch["observations"], batch["masks"])[0]))
    direction = {name: normal(generator, *parameter.shape) for name, parameter in policy.named_parameters()}

    distribution, value = policy(batch["observations"], batch["masks"])
    quantities = {
        "log_prob": distribution.log_prob(batch["actions"]),
        "entropy": distribution.entropy(),
        "value": value,
        "kl_old": kl_divergence(from_row(old, case), distribution),
    }
    config = {key: getattr(case, key) for key in ("head", "separate", "activation", "hidden", "obs_dim", "n_actions")}
    return {
        "name": case.name,
        "config": config,
        "parameters": {name: inputs(parameter) for name, parameter in policy.named_parameters()},
        "observations": inputs(batch["observations"]),
        "actions": batch["actions"].tolist() if is_discrete else inputs(batch["actions"]),
        "masks": None if batch["masks"] is None else batch["masks"].tolist(),
        "weights": inputs(batch["weights"]),
        "old": inputs(old),
        "distribution": results(row(distribution)),
        "outputs": {name: results(quantity) for name, quantity in quantities.items()},
        "gradients": {name: gradients(policy, (batch["weights"] * quantity).sum()) for name, quantity in quantities.items()},
        "direction": {name: inputs(tensor) for name, tensor in direction.items()},
        "fisher": None
        if case.head == "gsde"
        else {name: results(product) for name, product in fisher(policy, case, batch, direction).items()},
    }


def main():
    torch.set_num_threads(1)
    cases = [golden(case) for case in CASES]
    # one line per entry, so that a diff shows which entry changed
    compact = json.JSONEncoder(separators=(",", ":")).encode
    objects = ["{\n" + ",\n".join(f"{compact(key)}: {compact(entry)}" for key, entry in case.items()) + "\n}" for case in cases]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text("[\n" + ",\n".join(objects) + "\n]\n")
    print(f"{len(cases)} cases, {OUTPUT.stat().st_size} bytes in {OUTPUT}")


if __name__ == "__main__":
    main()
