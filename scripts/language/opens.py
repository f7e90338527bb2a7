#!/usr/bin/env python3
"""Opens exported models with transformers and peft: python3 scripts/language/opens.py GRADUS

Trains adapters of each tiny model in tests/golden/language for a moment, exports them for peft and as a whole model, and compares the log-probabilities of both in transformers with each
other, and with those of the model before. Needs the packages torch, transformers and peft; GRADUS is a program with the feature `language`.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "language"


def main():
    gradus = str(pathlib.Path(sys.argv[1]).resolve())
    texts = torch.arange(2, 42)[None]
    for family in ("llama", "llama3", "qwen2", "qwen3", "gpt2"):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            lines = [{"max_new_tokens": 5}] + [{"prompt": f"H{c}", "answer": "^[!-P]", "verifier": "regex"} for c in "abcdefg"]
            (folder / "problems.jsonl").write_text("\n".join(map(json.dumps, lines)))
            world = f"chat:{folder}/problems.jsonl?model={GOLDEN / family}"
            run = [gradus, "train", "grpo", world, "--quiet", "--steps", "1500", "--set", "optimiser.learning_rate=0.01", "--out", folder / "run"]
            subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
            export = [gradus, "export", folder / "run", "--hub", folder / "hub", "--transformers", folder / "whole", "--episodes", "3"]
            subprocess.run(export, check=True, stdout=subprocess.DEVNULL)

            def log_probs(model):
                with torch.no_grad():
                    return torch.log_softmax(model.eval()(texts).logits, -1)

            def plain():
                return AutoModelForCausalLM.from_pretrained(GOLDEN / family, dtype=torch.float32)

            before, whole = log_probs(plain()), log_probs(AutoModelForCausalLM.from_pretrained(folder / "whole", dtype=torch.float32))
            line = f"{family}: training changed {(whole - before).abs().max():.2f}"
            if family == "gpt2":
                assert not (folder / "hub" / "adapter_config.json").exists()
            else:
                apart = (log_probs(PeftModel.from_pretrained(plain(), folder / "hub")) - whole).abs().max()
                assert apart < 1e-4, (family, apart)
                line += f", peft and the whole model are {apart:.1e} apart"
            assert (whole - before).abs().max() > 0.1, family
            tokens = AutoTokenizer.from_pretrained(folder / "whole").apply_chat_template([{"role": "user", "content": "Ha"}], tokenize=True)
            theirs = AutoTokenizer.from_pretrained(GOLDEN / family).apply_chat_template([{"role": "user", "content": "Ha"}], tokenize=True)
            assert tokens == theirs, (family, tokens, theirs)
            print(line)


main()
