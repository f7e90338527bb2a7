#!/usr/bin/env python3
"""An independent reading of a Llama in a GGUF file with NumPy: python3 reference.py MODEL.gguf

Prints one line of JSON for each prompt of prompts.txt: the tokens of the prompt (by the file's own tokeniser, with `tokenizers`), the log-probabilities of every 997th token after the
prompt, and the greedy completion of LENGTH tokens. No test reads these lines yet.
"""

import json
import pathlib
import struct
import sys

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

LENGTH = 256


def read(path):
    """Metadata and tensors of a GGUF file: F32, Q8_0 and Q4_1."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    at = 24
    tensors, values = struct.unpack_from("<QQ", data, 8)

    def number(kind):
        nonlocal at
        (value,) = struct.unpack_from("<" + kind, data, at)
        at += struct.calcsize("<" + kind)
        return value

    def text():
        nonlocal at
        n = number("Q")
        at += n
        return bytes(data[at - n : at]).decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner = number("I")
            return [value(inner) for _ in range(number("Q"))]
        return number("BbHhIif?"[kind] if kind < 8 else {10: "Q", 11: "q", 12: "d"}[kind])

    about = {}
    for _ in range(values):
        key = text()
        about[key] = value(number("I"))
    places = []
    for _ in range(tensors):
        name = text()
        shape = [number("Q") for _ in range(number("I"))][::-1]
        places.append((name, shape, number("I"), number("Q")))
    base = -(-at // 32) * 32
    found = {}
    for name, shape, kind, offset in places:
        count = int(np.prod(shape))
        raw = data[base + offset :]
        if kind == 0:
            numbers = np.frombuffer(raw[: 4 * count].tobytes(), np.float32)
        elif kind == 8:
            blocks = np.frombuffer(raw[: count // 32 * 34].tobytes(), np.dtype([("d", "<f2"), ("q", "i1", 32)]))
            numbers = blocks["d"].astype(np.float32)[:, None] * blocks["q"]
        elif kind == 3:
            blocks = np.frombuffer(raw[: count // 32 * 20].tobytes(), np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)]))
            quants = np.concatenate([blocks["q"] & 15, blocks["q"] >> 4], axis=1).astype(np.float32)
            numbers = blocks["d"].astype(np.float32)[:, None] * quants + blocks["m"].astype(np.float32)[:, None]
        else:
            raise SystemExit(f"{name}: type {kind}")
        found[name] = numbers.reshape(shape).astype(np.float32)
    return about, found


class Llama:
    def __init__(self, about, tensors):
        self.t = tensors
        self.layers = about["llama.block_count"]
        self.heads, self.kv = about["llama.attention.head_count"], about["llama.attention.head_count_kv"]
        self.d = about["llama.embedding_length"] // self.heads
        self.eps, self.base = about["llama.attention.layer_norm_rms_epsilon"], about["llama.rope.freq_base"]
        self.cache = [([], []) for _ in range(self.layers)]

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x) + self.eps) * self.t[name]

    def rotate(self, x, place):
        """Neighbouring numbers are pairs, as in GGUF's Llama."""
        angle = place * self.base ** (-np.arange(0, self.d, 2) / self.d)
        cos, sin = np.cos(angle), np.sin(angle)
        a, b = x[:, 0::2], x[:, 1::2]
        return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape).astype(np.float32)

    def step(self, token, place):
        """The logits after one more token."""
        x = self.t["token_embd.weight"][token]
        for layer, (keys, values) in enumerate(self.cache):
            w = lambda name: self.t[f"blk.{layer}.{name}.weight"]
            h = self.norm(x, f"blk.{layer}.attn_norm.weight")
            q = self.rotate((w("attn_q") @ h).reshape(self.heads, self.d), place)
            keys.append(self.rotate((w("attn_k") @ h).reshape(self.kv, self.d), place))
            values.append((w("attn_v") @ h).reshape(self.kv, self.d))
            k, v = np.stack(keys), np.stack(values)
            mixed = []
            for head in range(self.heads):
                own = head // (self.heads // self.kv)
                scores = k[:, own] @ q[head] / np.sqrt(self.d)
                scores = np.exp(scores - scores.max())
                mixed.append(scores / scores.sum() @ v[:, own])
            x = x + w("attn_output") @ np.concatenate(mixed)
            h = self.norm(x, f"blk.{layer}.ffn_norm.weight")
            gate = w("ffn_gate") @ h
            x = x + w("ffn_down") @ (gate / (1 + np.exp(-gate)) * (w("ffn_up") @ h))
        return self.t["token_embd.weight"] @ self.norm(x, "output_norm.weight")


def tokeniser(about):
    """The file's tokeniser, built by the library's classes."""
    tokens = {text: i for i, text in enumerate(about["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ")) for merge in about["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(tokens, merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    special = [text for text, kind in zip(about["tokenizer.ggml.tokens"], about["tokenizer.ggml.token_type"]) if kind == 3]
    made.add_special_tokens(special)
    return made


def main():
    about, tensors = read(sys.argv[1])
    made = tokeniser(about)
    for prompt in (pathlib.Path(__file__).parent / "prompts.txt").read_text().splitlines():
        text = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
        tokens = made.encode(text, add_special_tokens=False).ids
        model = Llama(about, tensors)
        for place, token in enumerate(tokens):
            logits = model.step(token, place)
        log_probs = logits - logits.max()
        log_probs = log_probs - np.log(np.exp(log_probs.astype(np.float64)).sum())
        completion, margins = [], []
        for place in range(len(tokens), len(tokens) + LENGTH):
            completion.append(int(np.argmax(logits)))
            first, second = np.sort(logits)[-1], np.sort(logits)[-2]
            margins.append(round(float(first - second), 5))
            logits = model.step(completion[-1], place)
        line = {
            "prompt": prompt,
            "tokens": tokens,
            "log_probs": [round(float(x), 5) for x in log_probs[::997]],
            "greedy": completion,
            "least_margin": min(margins),
        }
        print(json.dumps(line), flush=True)


main()
