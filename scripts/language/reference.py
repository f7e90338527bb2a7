#!/usr/bin/env python3
"""What transformers computes with SmolLM2's GGUF file: python3 scripts/language/reference.py MODEL.gguf

Writes tests/golden/language/smollm2.jsonl, a line for each prompt of prompts.txt: the tokens of the conversation by the file's own template, every 997th log-probability of the next token,
and the greedy completion of 256 tokens. Made with gguf 0.19, torch 2.11.0 and transformers 5.24.0.
"""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = pathlib.Path(__file__).resolve().parent
LENGTH = 256


def main():
    torch.set_num_threads(1)
    path = pathlib.Path(sys.argv[1])
    tokeniser = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    with open(HERE.parents[1] / "tests" / "golden" / "language" / "smollm2.jsonl", "w") as file, torch.no_grad():
        for prompt in (HERE / "prompts.txt").read_text().splitlines():
            text = tokeniser.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True)
            tokens = tokeniser(text, add_special_tokens=False)["input_ids"]
            said, completion, margin = model(torch.tensor([tokens])), [], float("inf")
            first = torch.log_softmax(said.logits[0, -1].double(), -1)
            for _ in range(LENGTH):
                best = torch.topk(said.logits[0, -1], 2).values
                margin = min(margin, float(best[0] - best[1]))
                completion.append(int(said.logits[0, -1].argmax()))
                said = model(torch.tensor([completion[-1:]]), past_key_values=said.past_key_values)
            line = {"prompt": prompt, "tokens": tokens, "log_probs": [round(x, 5) for x in first[::997].tolist()], "greedy": completion, "least_margin": round(margin, 5)}
            file.write(json.dumps(line) + "\n")
            print(prompt, round(margin, 5), flush=True)


main()
