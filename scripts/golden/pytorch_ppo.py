"""Golden values for the actor-critic and for PPO's update, from plain PyTorch.

Writes tests/golden/ppo_update.json. Run it from the root of the repository:

    python -m pip install -r scripts/golden/requirements.txt
    python scripts/golden/pytorch_ppo.py

PyTorch's autograd and optimisers are independent of our hand-written fused passes, so agreement is evidence that both are right. The loss is
CleanRL's: the value coefficient multiplies 0.5 x MSE, and advantages are normalised with the sample standard deviation.

The file is an array of cases. Parameters, observations, old_log_probs, advantages, returns and old_values are 32-bit floats, printed
with the fewest digits that give the same float back: read them as f32. All other numbers are results, computed in float64 from exactly
these floats and printed with nine digits. Weights have PyTorch's layout, [out, in], and CleanRL's names, such as actor.0.weight and
critic.0.weight. The names number the layers 0, 2, 4, because activations count too. The layers of a shared trunk are trunk.0.weight and so on;
actor and critic are then one layer each. grad_norm is the gradient norm before clipping. after_adam and after_rmsprop are the parameters after
three steps on the same minibatch.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "ppo_update.json"
STEPS = 3
MAX_GRAD_NORM = 0.5
ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


@dataclass
class Ppo:
    clip: float
    entropy_coefficient: float
    value_coefficient: float
    clip_value: float | None
    normalize_advantages: bool


@dataclass
class Case:
    name: str
    seed: int
    rows: int
    separate: bool
    activation: str
    hidden: list[int]
    obs_dim: int
    n_actions: int
    ppo: Ppo


# The cases cover both activations, separate and shared networks, zero to two hidden layers, sizes that are not a multiple of the vector width, and
# every option of PPO on and off.
CASES = [
    Case("separate_tanh_32_32", 1, 32, True, "tanh", [32, 32], 4, 2, Ppo(0.2, 0.01, 0.5, None, False)),
    Case("separate_tanh_16_value_clip", 2, 32, True, "tanh", [16], 4, 2, Ppo(0.2, 0.01, 0.5, 0.2, True)),
    Case("shared_relu_24_20", 3, 19, False, "relu", [24, 20], 7, 5, Ppo(0.2, 0.02, 0.5, 0.3, True)),
    Case("separate_tanh_10_many_actions", 4, 9, True, "tanh", [10], 3, 17, Ppo(0.1, 0.0, 1.0, None, True)),
    Case("separate_linear", 5, 5, True, "tanh", [], 2, 3, Ppo(0.2, 0.05, 0.25, 0.1, False)),
]


class ActorCritic(nn.Module):
    def __init__(self, case: Case):
        super().__init__()
        inputs, hidden = case.obs_dim, case.hidden
        if not case.separate:
            self.trunk = layers([inputs, *hidden], case.activation, last_is_output=False)
            inputs, hidden = hidden[-1], []
        self.actor = layers([inputs, *hidden, case.n_actions], case.activation, last_is_output=True)
        self.critic = layers([inputs, *hidden, 1], case.activation, last_is_output=True)

    def forward(self, observations, actions):
        features = self.trunk(observations) if hasattr(self, "trunk") else observations
        policy = torch.distributions.Categorical(logits=self.actor(features))
        return policy.log_prob(actions), policy.entropy(), self.critic(features).squeeze(-1)


def layers(sizes: list[int], activation: str, last_is_output: bool) -> nn.Sequential:
    parts = []
    for n_in, n_out in zip(sizes, sizes[1:]):
        parts += [nn.Linear(n_in, n_out), ACTIVATIONS[activation]()]
    return nn.Sequential(*(parts[:-1] if last_is_output else parts))


def loss_and_terms(model: ActorCritic, batch: dict, ppo: Ppo):
    log_prob, entropy, value = model(batch["observations"], batch["actions"])
    advantages = batch["advantages"]
    if ppo.normalize_advantages:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)

    log_ratio = log_prob - batch["old_log_probs"]
    ratio = log_ratio.exp()
    policy_loss = torch.max(-advantages * ratio, -advantages * ratio.clamp(1 - ppo.clip, 1 + ppo.clip)).mean()

    squared_error = (value - batch["returns"]) ** 2
    if ppo.clip_value is not None:
        clipped = batch["old_values"] + (value - batch["old_values"]).clamp(-ppo.clip_value, ppo.clip_value)
        squared_error = torch.max(squared_error, (clipped - batch["returns"]) ** 2)
    value_loss = 0.5 * squared_error.mean()

    loss = policy_loss - ppo.entropy_coefficient * entropy.mean() + ppo.value_coefficient * value_loss
    diagnostics = {
        "approx_kl": (ratio - 1 - log_ratio).mean(),
        "clip_fraction": ((ratio - 1).abs() > ppo.clip).double().mean(),
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy.mean(),
    }
    return loss, diagnostics, ratio, advantages, value


def distance_to_a_kink(model: ActorCritic, batch: dict, ppo: Ppo) -> float:
    """Returns the smallest distance of a row from a discontinuity of the gradient. At a discontinuity, float32 and float64 may disagree."""
    with torch.no_grad():
        _, _, ratio, _, value = loss_and_terms(model, batch, ppo)
        distances = [((ratio - 1).abs() - ppo.clip).abs()]
        if ppo.clip_value is not None:
            moved = value - batch["old_values"]
            excess = moved.abs() - ppo.clip_value
            clipped = batch["old_values"] + moved.clamp(-ppo.clip_value, ppo.clip_value)
            difference = (value - batch["returns"]) ** 2 - (clipped - batch["returns"]) ** 2
            distances += [excess.abs(), difference[excess > 0].abs()]
        for network in model.children():
            features = batch["observations"]
            for layer in network if any(isinstance(part, nn.ReLU) for part in network) else []:
                if isinstance(layer, nn.ReLU):
                    distances.append(features.abs().flatten())
                features = layer(features)
        return torch.cat(distances).min().item()


def initial_model(case: Case, generator: torch.Generator) -> ActorCritic:
    """Returns a model with larger weights than the usual initialisation. A head near zero and biases of zero would hide mistakes."""
    model = ActorCritic(case).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 0.1 if name.endswith("bias") else 1.2 / parameter.shape[1] ** 0.5
            parameter.copy_(normal(generator, *parameter.shape, scale=scale))
    return model


def normal(generator: torch.Generator, *shape: int, scale: float = 1.0) -> torch.Tensor:
    """Returns normally distributed numbers that are exact in float32."""
    return as_f32(scale * torch.randn(*shape, generator=generator, dtype=torch.float64))


def as_f32(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float().double()


def minibatch(case: Case, model: ActorCritic, generator: torch.Generator) -> dict:
    rows = case.rows
    observations = normal(generator, rows, case.obs_dim)
    actions = torch.randint(case.n_actions, (rows,), generator=generator)
    actions[0], actions[-1] = case.n_actions - 1, 0
    noise = 0.3 * torch.randn(rows, generator=generator, dtype=torch.float64)
    advantages = normal(generator, rows)
    # four rows for the corners of the objective (ratio above and below its clip range, advantage of either sign), and one for the middle
    noise[:4] = torch.tensor([-0.4, 0.4, -0.35, 0.35])
    noise[-1] = 0.05
    advantages[:4] = torch.tensor([1.5, 1.25, -1.5, -1.25])
    with torch.no_grad():
        log_prob, _, value = model(observations, actions)
    return {
        "observations": observations,
        "actions": actions,
        "old_log_probs": as_f32((log_prob + noise).clamp(max=-0.01)),  # no probability above one
        "advantages": advantages,
        "returns": as_f32(value + normal(generator, rows)),
        "old_values": as_f32(value + normal(generator, rows, scale=0.3)),
    }


def after_steps(start: ActorCritic, case: Case, batch: dict, make_optimiser) -> dict:
    model = ActorCritic(case).double()
    model.load_state_dict(start.state_dict())
    optimiser = make_optimiser(model.parameters())
    for _ in range(STEPS):
        assert distance_to_a_kink(model, batch, case.ppo) > 1e-4, f"{case.name}: too close to a kink, choose another seed"
        optimiser.zero_grad()
        loss_and_terms(model, batch, case.ppo)[0].backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
        optimiser.step()
    return {name: results(parameter) for name, parameter in model.named_parameters()}


def golden(case: Case) -> dict:
    generator = torch.Generator().manual_seed(case.seed)
    model = initial_model(case, generator)
    batch = minibatch(case, model, generator)
    loss, diagnostics, ratio, advantages, value = loss_and_terms(model, batch, case.ppo)
    loss.backward()

    for outside in (ratio > 1 + case.ppo.clip, ratio < 1 - case.ppo.clip):
        for sign in (advantages > 0, advantages < 0):
            assert (outside & sign).any(), f"{case.name}: expected a row in every corner of the clipped objective"
    if case.ppo.clip_value is not None:
        moved = (value - batch["old_values"]).abs() > case.ppo.clip_value
        assert moved.any() and not moved.all(), f"{case.name}: expected values within and outside the clip range"

    log_prob, entropy, value = model(batch["observations"], batch["actions"])
    config = {key: getattr(case, key) for key in ("separate", "activation", "hidden", "obs_dim", "n_actions")}
    return {
        "name": case.name,
        "config": config,
        "parameters": {name: inputs(parameter) for name, parameter in model.named_parameters()},
        **{key: tensor.tolist() if key == "actions" else inputs(tensor) for key, tensor in batch.items()},
        "ppo": asdict(case.ppo),
        "outputs": {"log_prob": results(log_prob), "entropy": results(entropy), "value": results(value)},
        "loss": results(loss),
        "gradients": {name: results(parameter.grad) for name, parameter in model.named_parameters()},
        "grad_norm": results(nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()])),
        "diagnostics": {name: results(value) for name, value in diagnostics.items()},
        "after_adam": after_steps(model, case, batch, lambda p: torch.optim.Adam(p, lr=2.5e-4, betas=(0.9, 0.999), eps=1e-5)),
        "after_rmsprop": after_steps(model, case, batch, lambda p: torch.optim.RMSprop(p, lr=7e-4, alpha=0.99, eps=1e-5)),
    }


def inputs(tensor: torch.Tensor):
    """Returns each number with the fewest digits that give the same 32-bit float back."""
    return printed(tensor, lambda number: float(str(np.float32(number))))


def results(tensor: torch.Tensor):
    """Returns each number with nine digits, more than a 32-bit float can hold."""
    return printed(tensor, lambda number: float(f"{number:.9g}"))


def printed(tensor: torch.Tensor, rule):
    def walk(node):
        return [walk(child) for child in node] if isinstance(node, list) else rule(node)

    return walk(tensor.detach().tolist())


def main():
    torch.set_num_threads(1)
    cases = [golden(case) for case in CASES]
    # one line per entry, so that a diff shows which entry changed
    compact = json.JSONEncoder(separators=(",", ":")).encode
    objects = ["{\n" + ",\n".join(f"{compact(key)}: {compact(entry)}" for key, entry in case.items()) + "\n}" for case in cases]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text("[\n" + ",\n".join(objects) + "\n]\n")
    for case in cases:
        print(f"{case['name']}: loss {case['loss']}, gradient norm {case['grad_norm']}, clipped {case['diagnostics']['clip_fraction']:.2f}")
    print(f"{OUTPUT.stat().st_size} bytes in {OUTPUT}")


if __name__ == "__main__":
    main()
