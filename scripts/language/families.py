#!/usr/bin/env python3
"""Writes tiny models of each family with random parameters, and what transformers computes with them: python3 scripts/language/families.py

tests/golden/language/FAMILY has the model's folder and expected.safetensors: the tokens of two texts, the log-probabilities of every token after each of their prefixes, and the
gradient of the mean of -log p of the next tokens. Made with torch 2.11.0 and transformers 5.24.0.
"""

import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "language"
VOCABULARY = 80
COMMON = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None,
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500_000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
FAMILIES = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**COMMON, rms_norm_eps=1e-5, tie_word_embeddings=False)),
    "llama3": lambda: LlamaForCausalLM(LlamaConfig(**COMMON, tie_word_embeddings=True, rope_parameters=LLAMA3)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**COMMON, tie_word_embeddings=True)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**COMMON, head_dim=32, tie_word_embeddings=False)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=1, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0)
    ),
}


def tokeniser():
    """Two special tokens, then bytes."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())[: VOCABULARY - 2]
    made = Tokenizer(models.BPE({text: i for i, text in enumerate(["<begin>", "<end>", *letters])}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_special_tokens(["<begin>", "<end>"])
    return made


def main():
    for name, make in FAMILIES.items():
        torch.manual_seed(1)
        folder = ROOT / name
        shutil.rmtree(folder, ignore_errors=True)
        model = make().eval().float()
        with torch.no_grad():
            for parameter in model.parameters():
                # far from linear
                parameter.mul_(5.0).add_(0.1 * torch.randn_like(parameter)) if parameter.dim() > 1 else parameter.add_(0.2 * torch.randn_like(parameter))
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        tokeniser().save(str(folder / "tokenizer.json"))
        about = {"bos_token": "<begin>", "eos_token": "<end>", "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}"}
        (folder / "tokenizer_config.json").write_text(json.dumps(about))
        texts = torch.randint(2, VOCABULARY, (2, 24))
        log_probs = torch.log_softmax(model(texts).logits, -1)
        loss = -log_probs[:, :-1].gather(-1, texts[:, 1:, None]).mean()
        loss.backward()
        found = {"texts": texts.float(), "log_probs": log_probs[:, :-1].detach().contiguous()}
        found |= {f"gradient.{key}": value.grad.contiguous() for key, value in model.named_parameters()}
        save_file(found, folder / "expected.safetensors")
        print(name, float(loss), sum(parameter.numel() for parameter in model.parameters()))


main()
