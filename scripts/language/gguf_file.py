#!/usr/bin/env python3
"""Writes a tiny Llama with random parameters as a GGUF file, one type of numbers for each kind of matrix, and what transformers computes with it in double precision: python3 gguf_file.py

tests/golden/language/gguf has tiny.gguf and expected.safetensors: the tensors of the first layer as the package gguf dequantises them, the tokens of a text, and the log-probabilities after each of its
prefixes. Made with gguf 0.19, torch 2.11.0 and transformers 5.24.0.
"""

import pathlib

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "language" / "gguf"
VOCABULARY, WIDTH, HIDDEN, LAYERS, HEADS, KV = 80, 64, 96, 2, 2, 1
KINDS = gguf.GGMLQuantizationType
TYPES = {
    "attn_q": KINDS.Q4_1, "attn_k": KINDS.Q4_0, "attn_v": KINDS.Q8_0, "attn_output": KINDS.F16, "ffn_gate": KINDS.BF16, "ffn_up": KINDS.Q4_1,
    "ffn_down": KINDS.Q8_0, "token_embd": KINDS.Q8_0,
}  # fmt: skip


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(1)
    head = WIDTH // HEADS
    shapes = {"token_embd": (VOCABULARY, WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        own = {
            "attn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (KV * head, WIDTH), "attn_v": (KV * head, WIDTH), "attn_output": (WIDTH, WIDTH),
            "ffn_norm": (WIDTH,), "ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN),
        }  # fmt: skip
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in own.items()}
    writer = gguf.GGUFWriter(FOLDER / "tiny.gguf", "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    letters = [chr(code) for code in range(33, 33 + VOCABULARY - 2)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(["<begin>", "<end>", *letters[:-1], "ab"])
    writer.add_token_types([3, 3] + [1] * (VOCABULARY - 2))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template("{% for message in messages %}{{ bos_token }}{{ message['content'] }}{{ eos_token }}{% endfor %}")
    expected = {}
    for name, shape in shapes.items():
        kind = TYPES.get(name.split(".")[-1], KINDS.F32)
        numbers = generator.standard_normal(shape).astype(np.float32) / (1 if len(shape) == 1 else shape[1] ** 0.5)
        numbers = numbers * 0.2 + 1 if len(shape) == 1 else numbers
        stored = gguf.quantize(numbers, kind)
        writer.add_tensor(f"{name}.weight", stored, raw_dtype=kind)
        expected[f"{name}.weight"] = torch.tensor(np.ascontiguousarray(gguf.dequantize(stored, kind), dtype=np.float32).reshape(shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = AutoModelForCausalLM.from_pretrained(FOLDER, gguf_file="tiny.gguf", dtype=torch.float32).eval().double()
    text = torch.tensor(generator.integers(2, VOCABULARY, (1, 40)))
    with torch.no_grad():
        expected["log_probs"] = torch.log_softmax(model(text).logits, -1)[0].float().contiguous()
    expected = {name: tensor for name, tensor in expected.items() if not name.startswith("blk.1")}
    expected["text"] = text[0].float()
    save_file(expected, FOLDER / "expected.safetensors")
    print(sum(tensor.numel() for tensor in expected.values()))


main()
