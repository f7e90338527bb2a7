"""Golden values for parameter groups with separate optimisers, from plain PyTorch.

Writes tests/golden/groups.json. Run it from the root of the repository:

    python -m pip install -r scripts/golden/requirements.txt
    python scripts/golden/pytorch_groups.py

Each parameter group (trunk, actor, critic) has its own torch.optim.AdamW. STEPS names the loss of each step. A step takes the loss gradient and
steps the optimisers of the groups that the loss depends on, so the optimisers take different numbers of steps. clip_grad_norm_ clips the
gradients of these groups together ("joint"), or those of each group alone ("per_group").

The file is an array of cases. Parameters, observations, coefficients and targets are 32-bit floats, printed with the fewest digits that
give the same float back. The actor's loss is the mean of coefficient x log pi. The critic's loss is half the mean squared error.
"joint" and "per_group" are the parameters after all steps, computed in float64 and printed with nine digits. "norms" are the gradient norms of
the groups before clipping, at the first step of the loss "all" in the run with joint clipping.
"""

import json
from pathlib import Path

import torch
from pytorch_ppo import ActorCritic, Case, Ppo, initial_model, inputs, normal, results
from torch import nn

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "groups.json"
MOVES = {"actor": ["trunk", "actor"], "critic": ["trunk", "critic"], "all": ["trunk", "actor", "critic"]}
STEPS = ["critic", "critic", "all", "actor", "critic", "all"]
OPTIMISER = {"learning_rate": 0.01, "critic_learning_rate": 0.02, "epsilon": 1e-5, "weight_decay": 0.1, "max_grad_norm": 0.5}
UNUSED = Ppo(0.2, 0.0, 0.5, None, False)
CASES = [
    Case("separate_tanh_8", 11, 12, True, "tanh", [8], 3, 4, UNUSED),
    Case("shared_tanh_8", 12, 12, False, "tanh", [8], 3, 4, UNUSED),
]


def golden(case: Case) -> dict:
    generator = torch.Generator().manual_seed(case.seed)
    start = initial_model(case, generator)
    observations, targets = normal(generator, case.rows, case.obs_dim), normal(generator, case.rows, scale=3.0)
    actions, coefficients = torch.randint(case.n_actions, (case.rows,), generator=generator), normal(generator, case.rows)
    norms = {}

    def after(is_per_group: bool) -> dict:
        model = ActorCritic(case).double()
        model.load_state_dict(start.state_dict())
        groups = {name: list(part.parameters()) for name, part in model.named_children()}
        adam = lambda name: torch.optim.AdamW(  # noqa: E731
            groups[name],
            lr=OPTIMISER["critic_learning_rate" if name == "critic" else "learning_rate"],
            eps=OPTIMISER["epsilon"],
            weight_decay=OPTIMISER["weight_decay"],
        )
        optimisers = {name: adam(name) for name in groups}
        for step in STEPS:
            moved = [name for name in MOVES[step] if name in groups]
            model.zero_grad()
            log_prob, _, value = model(observations, actions)
            terms = {"actor": (coefficients * log_prob).mean(), "critic": 0.5 * ((value - targets) ** 2).mean()}
            (terms["actor"] + terms["critic"] if step == "all" else terms[step]).backward()
            if step == "all" and not norms:
                norms.update({name: nn.utils.get_total_norm([p.grad for p in groups[name]]).item() for name in groups})
            for names in [[name] for name in moved] if is_per_group else [moved]:
                nn.utils.clip_grad_norm_([p for name in names for p in groups[name]], OPTIMISER["max_grad_norm"])
            for name in moved:
                optimisers[name].step()
        return {name: results(parameter) for name, parameter in model.named_parameters()}

    joint, per_group = after(False), after(True)
    return {
        "name": case.name,
        "shared": not case.separate,
        "hidden": case.hidden,
        "steps": STEPS,
        "optimiser": OPTIMISER,
        "parameters": {name: inputs(parameter) for name, parameter in start.named_parameters()},
        "observations": inputs(observations),
        "actions": actions.tolist(),
        "coefficients": inputs(coefficients),
        "targets": inputs(targets),
        "norms": norms,
        "joint": joint,
        "per_group": per_group,
    }


def main():
    cases = ",\n".join(json.dumps(golden(case)) for case in CASES)
    OUTPUT.write_text(f"[\n{cases}\n]\n")


if __name__ == "__main__":
    main()
