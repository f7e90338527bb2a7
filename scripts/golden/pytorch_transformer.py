"""Golden values for the transformer, from autograd on a transformer of plain PyTorch operations.

Writes tests/golden/transformer.json. Run it from the root of the repository:

    python -m pip install -r scripts/golden/requirements.txt
    python scripts/golden/pytorch_transformer.py

The file is an array of cases. They cover both kinds of positions, of feed-forward layers and of critics, one and two layers, and one to four heads.
For a case with the architecture of LlamaForCausalLM, the script asserts that LlamaForCausalLM gives the same logits.

texts are lists of tokens. A decision follows a prefix of a text. prefixes has, for each decision, the index of its text and the length of its prefix
in tokens. Decisions are ordered by text and by length. Not every prefix has a decision, and the last decision of a text may come before its end.
The outputs of each decision are log pi(a|s), the entropy, the value, kl_old = KL(old || pi) and kl_ref = KL(pi || reference). old and reference are
rows of log-probabilities. The loss is the sum over decisions of weight x (sum over the five outputs of coefficient x output).

parameters are integers in units of 1/64, exact as 32-bit floats. weights, old, reference and coefficients are 32-bit floats, printed with the
fewest digits that give the same float back. All other numbers are results, computed in float64 from exactly these floats and printed with nine
digits. Matrices have PyTorch's layout, [out, in]. gradients has, for each flattened tensor, the numbers whose index is a multiple of stride. stride
is 1 or a prime that divides no side of a matrix, so all rows and columns occur.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from pytorch_ppo import as_f32, inputs, normal, results
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "transformer.json"
UNIT = 1 / 64
EPSILON = 1e-5
BASE = 10_000.0
OUTPUTS = ["log_prob", "entropy", "value", "kl_old", "kl_ref"]


@dataclass
class Config:
    layers: int
    width: int
    heads: int
    feed_forward: str
    feed_forward_width: int
    positions: str
    critic: str
    shared_embeddings: bool
    temperature: float
    vocabulary: int
    context: int


@dataclass
class Case:
    name: str
    seed: int
    stride: int
    config: Config


CASES = [
    Case("rotary_swiglu_head", 1, 5, Config(2, 32, 2, "swiglu", 48, "rotary", "head", False, 0.7, 11, 12)),
    Case("learned_gelu_separate", 2, 1, Config(1, 16, 1, "gelu", 48, "learned", "separate", False, 1.0, 11, 12)),
    Case("rotary_gelu_shared_embeddings", 3, 13, Config(2, 64, 4, "gelu", 48, "rotary", "separate", True, 1.3, 11, 12)),
]

# Lengths of the texts, and of their prefixes that have a decision. One text has one token, one fills the context, one has decisions with gaps and
# none at its end, and one has no decisions.
TEXTS = [(7, [4, 5, 6, 7]), (1, [1]), (12, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), (5, [2, 4]), (3, []), (9, [1, 2, 5, 8])]


def shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the tensors by name."""

    def trunk(prefix: str, embeds: bool) -> dict:
        width, hidden = config.width, config.feed_forward_width
        tensors = {}
        if embeds:
            tensors[prefix + "embed_tokens.weight"] = (config.vocabulary, width)
            if config.positions == "learned":
                tensors[prefix + "embed_positions.weight"] = (config.context, width)
        for i in range(config.layers):
            layer = f"{prefix}layers.{i}."
            tensors[layer + "input_layernorm.weight"] = (width,)
            tensors |= {f"{layer}self_attn.{name}_proj.weight": (width, width) for name in "qkvo"}
            tensors[layer + "post_attention_layernorm.weight"] = (width,)
            if config.feed_forward == "swiglu":
                tensors[layer + "mlp.gate_proj.weight"] = (hidden, width)
            tensors[layer + "mlp.up_proj.weight"] = (hidden, width)
            tensors[layer + "mlp.down_proj.weight"] = (width, hidden)
        tensors[prefix + "norm.weight"] = (width,)
        return tensors

    tensors = trunk("model.", True)
    if config.critic == "head":
        return tensors | {"value_head.weight": (1, config.width)}
    return tensors | trunk("critic.", not config.shared_embeddings) | {"critic.value_head.weight": (1, config.width)}


def parameters(config: Config, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Returns random integers in units of UNIT: weights of norms near 1, others near 0 with a scale that keeps the logits of the order of 1."""

    def tensor(name: str, shape: tuple[int, ...]) -> torch.Tensor:
        if len(shape) == 1:
            return 1 / UNIT + 0.3 / UNIT * torch.randn(shape, generator=generator, dtype=torch.float64)
        fan_in = shape[1] ** 0.5
        scale = 1.2 / fan_in if "embed" in name else 1.0 / fan_in
        return scale / UNIT * torch.randn(shape, generator=generator, dtype=torch.float64)

    return {name: tensor(name, shape).round() for name, shape in shapes(config).items()}


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / (x.square().mean(dim=-1, keepdim=True) + EPSILON).sqrt() * weight


def rotate(x: torch.Tensor) -> torch.Tensor:
    """Rotates the pair of elements i and i + n/2 of a head by position x base^(-2i/n)."""
    n = x.shape[-1]
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * BASE ** (-torch.arange(0, n, 2, dtype=torch.float64) / n)
    first, second = x[..., : n // 2], x[..., n // 2 :]
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], dim=-1)


def attention(x: torch.Tensor, layer, config: Config) -> torch.Tensor:
    length, head_width = len(x), config.width // config.heads
    q, k, v = ((x @ layer(f"self_attn.{name}_proj").T).view(length, config.heads, head_width).transpose(0, 1) for name in "qkv")
    if config.positions == "rotary":
        q, k = rotate(q), rotate(k)
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(1, 2) / math.sqrt(head_width)).masked_fill(later, -torch.inf)
    mixed = (scores.softmax(dim=-1) @ v).transpose(0, 1).reshape(length, config.width)
    return mixed @ layer("self_attn.o_proj").T


def feed_forward(x: torch.Tensor, layer, config: Config) -> torch.Tensor:
    hidden = x @ layer("mlp.up_proj").T
    if config.feed_forward == "swiglu":
        hidden = F.silu(x @ layer("mlp.gate_proj").T) * hidden
    else:
        hidden = F.gelu(hidden, approximate="tanh")
    return hidden @ layer("mlp.down_proj").T


def trunk(tokens: torch.Tensor, tensors: dict, prefix: str, embeddings: str, config: Config) -> torch.Tensor:
    """Returns the input of the heads, one row per token."""
    x = tensors[embeddings + "embed_tokens.weight"][tokens]
    if config.positions == "learned":
        x = x + tensors[embeddings + "embed_positions.weight"][: len(tokens)]
    for i in range(config.layers):

        def layer(name: str, i=i):
            return tensors[f"{prefix}layers.{i}.{name}.weight"]

        x = x + attention(norm(x, layer("input_layernorm")), layer, config)
        x = x + feed_forward(norm(x, layer("post_attention_layernorm")), layer, config)
    return norm(x, tensors[prefix + "norm.weight"])


def forward(tokens: torch.Tensor, tensors: dict, config: Config):
    """Returns logits and values of every prefix of one text."""
    features = trunk(tokens, tensors, "model.", "model.", config)
    logits = features @ tensors["model.embed_tokens.weight"].T / config.temperature
    if config.critic == "head":
        return logits, features @ tensors["value_head.weight"][0]
    features = trunk(tokens, tensors, "critic.", "model." if config.shared_embeddings else "critic.", config)
    return logits, features @ tensors["critic.value_head.weight"][0]


def assert_llama(texts: list[torch.Tensor], tensors: dict, config: Config):
    """Asserts that the logits at temperature 1 equal those of Hugging Face's Llama up to rounding. Llama computes norms,
    angles and softmax in float32."""
    llama = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=config.vocabulary,
            hidden_size=config.width,
            intermediate_size=config.feed_forward_width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            max_position_embeddings=config.context,
            rms_norm_eps=EPSILON,
            rope_parameters={"rope_type": "default", "rope_theta": BASE},
            tie_word_embeddings=True,
        )
    ).double()
    report = llama.load_state_dict({name: x for name, x in tensors.items() if name.startswith("model.")}, strict=False)
    assert not report.unexpected_keys and report.missing_keys == ["lm_head.weight"], report
    llama.tie_weights()
    with torch.no_grad():
        for tokens in texts:
            expected = llama(tokens[None]).logits[0]
            got = forward(tokens, tensors, config)[0] * config.temperature
            torch.testing.assert_close(got, expected, rtol=0, atol=3e-6)


def log_probs(generator: torch.Generator, rows: int, n: int) -> torch.Tensor:
    return as_f32(torch.randn(rows, n, generator=generator, dtype=torch.float64).log_softmax(dim=-1))


def every(tensor: torch.Tensor, stride: int) -> list:
    return results(tensor.flatten()[::stride])


def golden(case: Case) -> dict:
    generator, config = torch.Generator().manual_seed(case.seed), case.config
    assert all(side % case.stride or side == 1 or case.stride == 1 for shape in shapes(config).values() for side in shape)
    units = parameters(config, generator)
    tensors = {name: (x * UNIT).requires_grad_() for name, x in units.items()}
    texts = [torch.randint(config.vocabulary, (length,), generator=generator) for length, _ in TEXTS]
    prefixes = [(text, length) for text, (_, lengths) in enumerate(TEXTS) for length in lengths]
    rows, n = len(prefixes), config.vocabulary
    actions = torch.randint(n, (rows,), generator=generator)
    weights = as_f32((0.5 + torch.rand(rows, generator=generator, dtype=torch.float64)) / rows)
    old, reference = log_probs(generator, rows, n), log_probs(generator, rows, n)
    coefficients = {name: normal(generator, rows) for name in OUTPUTS}
    if config.positions == "rotary" and config.feed_forward == "swiglu":
        assert_llama(texts, {name: x.detach() for name, x in tensors.items()}, config)

    passes = [forward(tokens, tensors, config) for tokens in texts]
    pi = torch.stack([passes[text][0][length - 1] for text, length in prefixes]).log_softmax(dim=-1)
    outputs = {
        "log_prob": pi[torch.arange(rows), actions],
        "entropy": -(pi.exp() * pi).sum(dim=-1),
        "value": torch.stack([passes[text][1][length - 1] for text, length in prefixes]),
        "kl_old": (old.exp() * (old - pi)).sum(dim=-1),
        "kl_ref": (pi.exp() * (pi - reference)).sum(dim=-1),
    }
    loss = (weights * sum(coefficients[name] * outputs[name] for name in OUTPUTS)).sum()
    loss.backward()
    return {
        "name": case.name,
        "config": asdict(config),
        "parameters": {name: x.int().tolist() for name, x in units.items()},
        "texts": [text.tolist() for text in texts],
        "prefixes": prefixes,
        "actions": actions.tolist(),
        "weights": inputs(weights),
        "old": inputs(old),
        "reference": inputs(reference),
        "coefficients": {name: inputs(x) for name, x in coefficients.items()},
        "distribution": results(pi),
        "outputs": {name: results(x) for name, x in outputs.items()},
        "loss": results(loss),
        "stride": case.stride,
        "gradients": {name: every(x.grad, case.stride) for name, x in tensors.items()},
    }


def main():
    torch.set_num_threads(1)
    cases = [golden(case) for case in CASES]
    # one line per entry, so that a diff shows which entry changed
    compact = json.JSONEncoder(separators=(",", ":")).encode
    objects = ["{\n" + ",\n".join(f"{compact(key)}: {compact(entry)}" for key, entry in case.items()) + "\n}" for case in cases]
    OUTPUT.write_text("[\n" + ",\n".join(objects) + "\n]\n")
    print(f"{len(cases)} cases, {OUTPUT.stat().st_size} bytes in {OUTPUT}")


if __name__ == "__main__":
    main()
