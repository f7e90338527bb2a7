"""Measures completion tokens per second of TRL's GRPOTrainer with the adapters of a pretrained model, generation and learning together, on a CPU.

    python trl_lora.py MODEL.gguf PROBLEMS.jsonl

The model, the prompts in its chat template, the batch (8 prompts with 8 completions of at most 16 tokens), the temperature, rank and targets of the adapters are those of the preset of
`gradus train grpo chat:...`. The learning rate is so small that completions stay as long as they are; a completion has a reward of 1 if it matches the problem's pattern and has ended.
Tokens behind the end of a completion do not count. As in trl_grpo.py, everything that is not needed is off. --micro-batches, --compile and --defaults are as there.
"""

import argparse
import json
import pathlib
import re
import statistics
import tempfile

from trl_grpo import Clock  # first, because it sets the number of threads before torch is imported

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback
from trl import GRPOConfig, GRPOTrainer

PROMPTS, GROUP, NEW_TOKENS = 8, 8, 16


def opened(path):
    """The tokeniser and the model of a file, in float32."""
    tokeniser = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    read = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    # a model that still knows of its quantised file is not trained
    if hasattr(read.config, "quantization_config"):
        del read.config.quantization_config
    model = AutoModelForCausalLM.from_config(read.config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    return tokeniser, model


def questions(path):
    """The message of the system and the training problems of a file."""
    settings, *problems = [json.loads(line) for line in path.read_text().splitlines()]
    return {"role": "system", "content": settings["system"]}, [problem for problem in problems if problem["split"] == "train"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("problems", type=pathlib.Path)
    parser.add_argument("--updates", type=int, default=4, help="updates that are timed, after the first")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--defaults", action="store_true", help="TRL's defaults, except for the sizes: bfloat16 and gradient checkpointing")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tokeniser, model = opened(args.model)
    system, problems = questions(args.problems)
    rows = {"prompt": [[system, {"role": "user", "content": problem["prompt"]}] for problem in problems], "pattern": [problem["answer"] for problem in problems]}
    lengths = []

    def reward(completions, pattern, completion_ids, **_):
        lengths.append(sum(len(ids) for ids in completion_ids))
        ended = [len(ids) < NEW_TOKENS or ids[-1] == tokeniser.eos_token_id for ids in completion_ids]
        return [float(end and bool(re.match(one, said[0]["content"]))) for said, one, end in zip(completions, pattern, ended)]

    sizes = {
        "per_device_train_batch_size": PROMPTS * GROUP // args.micro_batches, "gradient_accumulation_steps": args.micro_batches, "num_generations": GROUP,
        "max_steps": args.updates + 1, "max_completion_length": NEW_TOKENS, "use_cpu": True, "temperature": 0.7, "learning_rate": 1e-20, "seed": 1,
    }  # fmt: skip
    tuned = {
        "steps_per_generation": args.micro_batches, "beta": 0.0, "bf16": False, "torch_compile": args.compile, "gradient_checkpointing": False,
        "dataloader_pin_memory": False, "report_to": "none", "logging_strategy": "no", "save_strategy": "no", "disable_tqdm": True,
    }  # fmt: skip
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=reward,
            args=GRPOConfig(output_dir=folder, **(sizes | ({"report_to": "none"} if args.defaults else tuned))),
            train_dataset=Dataset.from_dict(rows),
            processing_class=tokeniser,
            peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"),
            callbacks=[clock],
        )
        if not args.defaults:
            trainer.remove_callback(PrinterCallback)
        trainer.train()
    seconds = [end - begin for begin, end in zip(clock.ends, clock.ends[1:])]
    # with several micro-batches, all completions of a batch are generated at once
    tokens = lengths[-len(seconds) :]
    speed = statistics.median(n / s for n, s in zip(tokens, seconds))
    print(f"trl: {speed:.1f} tokens/s, {statistics.mean(tokens) / PROMPTS / GROUP:.1f} tokens a completion, {statistics.median(seconds):.2f} s an update")


if __name__ == "__main__":
    main()
