"""Golden values for truncated sampling, from the logits processors of Hugging Face's transformers.

Writes tests/golden/sampling.json. Run it from the root of the repository:

    python -m pip install -r scripts/golden/requirements.txt
    python scripts/golden/transformers_sampling.py

The file is an array of cases. The inputs are log_probs and the four settings. expected has the log-probabilities of the tokens that are kept,
and null for the other tokens. The order of the processors and the meaning of the settings are those of `generate`: top_k 0 and top_p 1 keep all
tokens.

log_probs are 32-bit floats, printed with the fewest digits that give the same float back: read them as f32. expected is computed in float64
from exactly these floats and printed with nine digits. No case has tokens of equal probability at a threshold or a probability within 1e-4 of a
threshold, so rounding never decides which tokens are kept.
"""

import json
from pathlib import Path

import torch
from pytorch_ppo import as_f32, inputs, results
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "sampling.json"
MARGIN = 1e-4

ALL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
SETTINGS = [
    {"temperature": 0.5},
    {"temperature": 1.7},
    {"top_k": 1},
    {"top_k": 3},
    {"top_k": 50},
    {"top_p": 0.05},
    {"top_p": 0.62},
    {"top_p": 0.93},
    {"min_p": 0.04},
    {"min_p": 0.3},
    {"min_p": 1.0},
    # the order of the processors matters when several settings are active
    {"temperature": 0.6, "top_p": 0.8},
    {"temperature": 1.8, "min_p": 0.1},
    {"top_k": 3, "top_p": 0.75},
    {"top_k": 4, "min_p": 0.22},
    {"temperature": 1.4, "top_k": 5, "top_p": 0.85, "min_p": 0.15},
]


def distributions() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)

    def random(n: int, scale: float) -> torch.Tensor:
        return scale * torch.randn(n, generator=generator, dtype=torch.float64)

    rows = {
        "by hand": torch.tensor([0.05, 0.4, 0.13, 0.22, 0.17, 0.03], dtype=torch.float64).log(),
        "flat": random(9, 0.3),
        "sharp": random(9, 3.0),
        "one token": torch.zeros(1, dtype=torch.float64),
        "many tokens": random(40, 1.5),
    }
    return {name: as_f32(row.log_softmax(dim=-1)) for name, row in rows.items()}


def processors(settings: dict):
    """Returns the processors that `generate` uses for the settings, in its order."""
    tiny = LlamaConfig(vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1)
    model = LlamaForCausalLM(tiny)
    made = model._get_logits_processor(GenerationConfig(do_sample=True, **settings))
    return {type(processor).__name__.removesuffix("LogitsWarper"): processor for processor in made}


def is_near_an_edge(before: torch.Tensor, name: str, settings: dict) -> bool:
    """Returns whether a rounding error could decide which tokens a processor keeps."""
    probs = before.softmax(dim=-1).sort(descending=True).values
    if name == "TopP":
        return bool(((probs.cumsum(dim=-1) - settings["top_p"]).abs() < MARGIN).any())
    if name == "MinP" and 0.0 < settings["min_p"] < 1.0:
        return bool(((probs / probs[0] - settings["min_p"]).abs() < MARGIN).any())
    if name == "TopK" and settings["top_k"] < len(probs):
        return bool((probs[settings["top_k"] - 1] - probs[settings["top_k"]]) < MARGIN)
    return False


def golden(name: str, log_probs: torch.Tensor, settings: dict) -> dict | None:
    scores = log_probs[None]
    for kind, processor in processors(settings).items():
        assert kind in ("Temperature", "TopK", "TopP", "MinP"), kind
        if is_near_an_edge(scores[0], kind, settings):
            return None
        scores = processor(None, scores)
    expected = scores[0].log_softmax(dim=-1)
    assert expected.isfinite().any()
    return {
        "distribution": name,
        **settings,
        "log_probs": inputs(log_probs),
        "expected": [None if x == -torch.inf else results(x) for x in expected],
    }


def main():
    torch.set_num_threads(1)
    rows = distributions()
    cases = [golden(name, row, ALL | settings) for name, row in rows.items() for settings in SETTINGS]
    written = [case for case in cases if case is not None]
    compact = json.JSONEncoder(separators=(",", ":")).encode
    OUTPUT.write_text("[\n" + ",\n".join(map(compact, written)) + "\n]\n")
    print(f"{len(written)} cases of {len(cases)}, {OUTPUT.stat().st_size} bytes in {OUTPUT}")


if __name__ == "__main__":
    main()
