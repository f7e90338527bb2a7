#!/usr/bin/env python3
"""GRPO on text in plain PyTorch, with the transformer, the work and the options of `gradus bench text`.

    python3 benches/peers/grpo_pytorch.py [--device cpu] [--precision f32] [--compile]

Its last lines are `generating 0.123 s, learning 0.456 s an update` and `pytorch: 12345 tokens/s`: completion tokens per second of generation and
learning together. Times are medians over the updates after the warm-up. The script has only the algorithm, without logs, statistics or texts that
end early, so that only PyTorch limits its speed. Each prompt is computed once for its group, keys and values are cached, tokens are sampled on
the device, and the host synchronises only at the end of generation and of learning.

An update generates completions, takes the share of tokens equal to the prompt's first token as the reward, computes advantages within groups, and
takes one step of Adam. The loss is the mean of the clipped surrogate over all tokens. The gradient norm is clipped. The old log-probabilities
are those of sampling, so they need no separate pass. There is no reference policy.
"""

import argparse
import contextlib
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY = 15
NORM_EPSILON, ROTARY_BASE = 1e-5, 10_000.0
CLIP, LEARNING_RATE, ADAM_EPSILON, MAX_GRAD_NORM = 0.2, 1e-4, 1e-5, 0.5
WARM_UP = 3


def layers_kind(args):
    return torch.bfloat16 if args.precision == "bf16" else torch.float32


def rotary_table(context: int, width: int):
    angles = torch.outer(torch.arange(context), ROTARY_BASE ** (-torch.arange(0, width, 2) / width)).repeat(1, 2)
    # rotate-half as one product: the first half has a minus sign
    signs = torch.cat([-torch.ones(width // 2), torch.ones(width // 2)])
    return angles.cos(), angles.sin() * signs


def turned(x, cos, sin):
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


class RMSNorm(nn.RMSNorm):
    """RMSNorm that computes in f32 under autocast too, because its input is f32."""

    def __init__(self, width: int):
        super().__init__(width, eps=NORM_EPSILON)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, rotary, memory, place):
        texts, n, width = x.shape
        q, k, v = (project(x).view(texts, n, self.heads, -1).transpose(1, 2) for project in (self.q_proj, self.k_proj, self.v_proj))
        q, k = turned(q, *rotary), turned(k, *rotary)
        if memory is not None:
            keys, values = memory
            keys[:, :, place : place + n], values[:, :, place : place + n] = k, v
            k, v = keys[:, :, : place + n], values[:, :, : place + n]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=n > 1)
        return self.o_proj(mixed.transpose(1, 2).reshape(texts, n, width))


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(args.width), RMSNorm(args.width)
        self.self_attn, self.mlp = Attention(args.width, args.heads), FeedForward(args.width, args.feed_forward_width)

    def forward(self, x, rotary, memory, place):
        x = x + self.self_attn(self.input_layernorm(x), rotary, memory, place)
        return x + self.mlp(self.post_attention_layernorm(x))


class Trunk(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, args.width)
        self.layers = nn.ModuleList(Layer(args) for _ in range(args.layers))
        self.norm = RMSNorm(args.width)


class Transformer(nn.Module):
    """A transformer with Llama's layers and parameter names. The output layer is tied to the embeddings."""

    def __init__(self, args):
        super().__init__()
        self.model = Trunk(args)
        for name, matrix in self.named_parameters():
            if matrix.dim() == 2:
                writers = 2 * args.layers if name.endswith(("o_proj.weight", "down_proj.weight")) else 1
                nn.init.normal_(matrix, std=0.02 if "embed" in name else (matrix.shape[1] * writers) ** -0.5)
        # in the layers' precision: under autocast an f32 table would promote queries and keys to f32
        cos, sin = rotary_table(args.prompt_tokens + args.new_tokens, args.width // args.heads)
        self.register_buffer("cos", cos.to(layers_kind(args)), persistent=False)
        self.register_buffer("sin", sin.to(layers_kind(args)), persistent=False)

    def forward(self, tokens, first: int = 0, memories=None, place: int = 0):
        """Returns log-probabilities of the next token for each token from `first` on. The tokens start at position `place`."""
        rotary = self.cos[place : place + tokens.shape[1]], self.sin[place : place + tokens.shape[1]]
        x = self.model.embed_tokens(tokens)
        for i, layer in enumerate(self.model.layers):
            x = layer(x, rotary, memories and memories[i], place)
        logits = F.linear(self.model.norm(x[:, first:]), self.model.embed_tokens.weight)
        return torch.log_softmax(logits.float(), -1)


class Learner:
    def __init__(self, args):
        self.args, self.device = args, torch.device(args.device)
        self.transformer = Transformer(args).to(self.device)
        # fused Adam has one kernel for all parameters instead of several per parameter; not every device supports it
        fused = {"fused": True} if self.device.type in ("cpu", "cuda", "mps") else {}
        self.parameters = list(self.transformer.parameters())
        self.optimiser = torch.optim.Adam(self.parameters, lr=LEARNING_RATE, eps=ADAM_EPSILON, **fused)
        self.compiled_loss = torch.compile(self.loss) if args.compile else self.loss
        head_width, context = args.width // args.heads, args.prompt_tokens + args.new_tokens
        shape = (args.prompts * args.group, args.heads, context, head_width)
        empty = lambda: torch.empty(shape, dtype=layers_kind(args), device=self.device)
        self.memories = [(empty(), empty()) for _ in range(args.layers)]

    def precision(self):
        if self.args.precision == "bf16":
            return torch.autocast(self.device.type, torch.bfloat16)
        return contextlib.nullcontext()

    @torch.no_grad()
    def generate(self):
        """Returns texts and the log-probabilities of their new tokens."""
        args, texts = self.args, self.args.prompts * self.args.group
        prompts = torch.randint(VOCABULARY, (args.prompts, args.prompt_tokens), device=self.device)
        tokens, log_probs = [prompts.repeat_interleave(args.group, 0)], []
        with self.precision():
            # the prompt of a group is computed once
            of_prompts = [tuple(part[: args.prompts] for part in memory) for memory in self.memories]
            said = self.transformer(prompts, args.prompt_tokens - 1, of_prompts)[:, -1].repeat_interleave(args.group, 0)
            for part in (part for memory in self.memories for part in memory):
                known = part[: args.prompts, :, : args.prompt_tokens].repeat_interleave(args.group, 0)
                part[:, :, : args.prompt_tokens] = known
            for i in range(args.new_tokens):
                if i > 0:
                    said = self.transformer(tokens[-1], 0, self.memories, args.prompt_tokens + i - 1)[:, -1]
                # samples as torch.multinomial does (the smallest exponential time), without its checks
                token = (said.exp() / torch.empty_like(said).exponential_()).argmax(-1, keepdim=True)
                tokens.append(token)
                log_probs.append(said.gather(1, token))
        tokens, log_probs = torch.cat(tokens, 1), torch.cat(log_probs, 1)
        assert tokens.shape == (texts, args.prompt_tokens + args.new_tokens)
        return tokens, log_probs

    def advantages(self, tokens):
        """Returns (R - mean R) / (std R + 1e-4) within each group."""
        hits = tokens[:, self.args.prompt_tokens :] == tokens[:, :1]
        rewards = hits.float().mean(1).view(self.args.prompts, self.args.group)
        return ((rewards - rewards.mean(1, True)) / (rewards.std(1, correction=0, keepdim=True) + 1e-4)).view(-1, 1)

    def loss(self, tokens, old, advantages):
        """Returns the sum of the clipped surrogate loss over the tokens."""
        first = self.args.prompt_tokens - 1
        said = self.transformer(tokens[:, :-1], first)
        ratio = (said.gather(2, tokens[:, first + 1 :, None]).squeeze(2) - old).exp()
        return -torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages).sum()

    def learn(self, tokens, old):
        advantages, texts, length = self.advantages(tokens), len(tokens), tokens.shape[1] - 1
        most = texts if self.args.micro_batch == 0 else max(1, self.args.micro_batch // length)
        for part in zip(tokens.split(most), old.split(most), advantages.split(most)):
            with self.precision():
                loss = self.compiled_loss(*part) / old.numel()
            loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, MAX_GRAD_NORM)
        self.optimiser.step()
        self.optimiser.zero_grad()

    def wait(self):
        if self.device.type != "cpu":
            # without an argument CUDA waits for cuda:0
            torch.cuda.synchronize(self.device) if self.device.type == "cuda" else getattr(torch, self.device.type).synchronize()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    sizes = {"layers": 2, "width": 64, "heads": 4, "feed-forward-width": 176}
    sizes |= {"prompts": 32, "group": 8, "prompt-tokens": 6, "new-tokens": 16}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="f32", choices=["f32", "tf32", "bf16"])
    parser.add_argument("--micro-batch", type=int, default=0, help="tokens per backward pass; 0: all")
    parser.add_argument("--updates", type=int, default=15, help="updates that are timed, after the warm-up")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--compile", action="store_true", help="torch.compile for the learning pass; compiling takes a minute")
    return parser.parse_args()


def main():
    args = arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.set_float32_matmul_precision("high" if args.precision == "tf32" else "highest")
    torch.manual_seed(1)
    learner, seconds = Learner(args), []
    for _ in range(args.updates + WARM_UP):
        began = time.perf_counter()
        tokens, old = learner.generate()
        learner.wait()
        generated = time.perf_counter()
        learner.learn(tokens, old)
        learner.wait()
        ended = time.perf_counter()
        seconds.append((generated - began, ended - generated, ended - began))
    generating, learning, both = (statistics.median(column) for column in zip(*seconds[WARM_UP:]))
    assert all(parameter.isfinite().all() for parameter in learner.parameters), "expected finite parameters"
    print(f"{sum(parameter.numel() for parameter in learner.parameters)} parameters on {args.device} in {args.precision}")
    print(f"generating {generating:.3f} s, learning {learning:.3f} s an update")
    print(f"pytorch: {args.prompts * args.group * args.new_tokens / both:.0f} tokens/s")


if __name__ == "__main__":
    main()
