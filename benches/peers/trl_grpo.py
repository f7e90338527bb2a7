"""Measures completion tokens per second of TRL's GRPOTrainer, generation and learning together, on a CPU.

    python trl_grpo.py --layers 4 --width 128 --heads 4 --feed-forward-width 352 --prompts 32 --group 8

There is one update per rollout with the whole batch, and no reference policy. Everything that is not needed is off: logs, checkpoints, progress,
and gradient checkpointing and bfloat16, which are on by default in TRL. The EOS token is outside the model's vocabulary, so completions
have their full length without a logits processor.

The table lists what was tried, with the processor time of an update on one thread in ms, accurate to about 5 %. The machine was busy, so
wall-clock times would not be comparable. The first column is for 4 layers of width 128 and 32 prompts x 8 completions, the second for 2 layers of
width 64 and 8 prompts x 8 completions. A range is from two to four runs:

    the settings of this script                    770 to 830     68 to 73
    min_new_tokens, with a reachable EOS           797 to 921     67 to 80
    attention eager instead of sdpa                896            86
    cache_implementation static                    872            94
    continuous batching of transformers            6900           fails
    bfloat16                                       814            137
    two micro-batches                              762 to 823     86
    four micro-batches                             753 to 799     96
    four micro-batches in bfloat16                 864
    torch.compile                                  691 to 722     83
    torch.compile, four micro-batches              921
    loss_type grpo, no clipping of the gradient, AdamW not fused: no difference

torch.compile saves 5 % with 2 layers of width 64 and 32 x 8 completions, and costs 20 % with 4 layers of width 128 and 8 x 8. Therefore text.py tries
the settings of this script alone, with --compile and with four micro-batches, and keeps the fastest. On two idle cores, with 2 layers of width 64
and 8 x 8 completions, two threads were 1.2 times as fast as one thread. GOMP_SPINCOUNT=100 made two threads 1.5 times slower.

With --defaults only the numbers of prompts and tokens are set, and everything else is GRPOConfig's default: micro-batches of 8 completions,
accumulated to the whole batch, bfloat16, gradient checkpointing, logs and a progress bar. With 2 layers of width 64, 32 x 8 completions and one
thread of a busy machine, --defaults was 4.6 times slower than the settings of this script, and --defaults --micro-batches 1 was 1.4 times slower.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "2")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

PROMPT_TOKENS, NEW_TOKENS = 6, 16
WORDS = [str(digit) for digit in range(10)] + ["+", "-", "=", ">", "<pad>"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name in ("layers", "width", "heads", "feed-forward-width", "prompts", "group"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--updates", type=int, default=20, help="updates that are timed, after the warm-up")
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--attention", default="sdpa", choices=["sdpa", "eager"])
    parser.add_argument("--compile", action="store_true", help="torch.compile for the learning pass; compiling takes a minute")
    parser.add_argument("--micro-batches", type=int, help="micro-batches per update; default: 1, with --defaults one per 8 completions")
    parser.add_argument("--defaults", action="store_true", help="defaults of GRPOConfig, except for the sizes")
    parser.add_argument("--grpo", type=json.loads, default={}, help="settings of GRPOConfig to try, as JSON")
    return parser.parse_args()


def tokenizer() -> PreTrainedTokenizerFast:
    # EOS is outside the model's vocabulary: it is never sampled, and no logits have to be changed.
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*WORDS, "<eos>"])}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<pad>")


def model(args) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=args.width,
        intermediate_size=args.feed_forward_width,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        num_key_value_heads=args.heads,
        max_position_embeddings=PROMPT_TOKENS + NEW_TOKENS,
        tie_word_embeddings=True,
        pad_token_id=WORDS.index("<pad>"),
        bos_token_id=None,
        eos_token_id=len(WORDS),
        attn_implementation=args.attention,
    )
    return LlamaForCausalLM(config)


def prompts(n: int) -> Dataset:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(10, (n, PROMPT_TOKENS), generator=generator).tolist()
    return Dataset.from_dict({"prompt": [" ".join(map(str, row)) for row in rows]})


def reward(completion_ids, **_):
    """Returns numbers that differ within a group."""
    for ids in completion_ids:
        assert len(ids) == NEW_TOKENS, f"expected {NEW_TOKENS} new tokens, got {len(ids)}"
    return [float(sum(ids) % 7) for ids in completion_ids]


class Clock(TrainerCallback):
    """Records when each update ends, which is when the generation of the next one begins."""

    def __init__(self):
        self.ends = []

    def on_step_end(self, *_, **__):
        self.ends.append(time.perf_counter())


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    batch = args.prompts * args.group
    micro_batches = args.micro_batches or (batch // 8 if args.defaults else 1)
    updates = args.warm_up + args.updates
    sizes = {
        "per_device_train_batch_size": batch // micro_batches,
        "gradient_accumulation_steps": micro_batches,
        "num_generations": args.group,
        "max_steps": updates,
        "max_completion_length": NEW_TOKENS,
        "use_cpu": True,
    }
    tuned = {
        "steps_per_generation": micro_batches,
        "beta": 0.0,
        "learning_rate": 1e-3,
        "bf16": False,
        "torch_compile": args.compile,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": False,
        "report_to": "none",
        "logging_strategy": "no",
        "save_strategy": "no",
        "disable_tqdm": True,
    }
    clock = Clock()
    network = model(args)
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=network,
            reward_funcs=reward,
            args=GRPOConfig(output_dir=folder, **(sizes | ({} if args.defaults else tuned) | args.grpo)),
            train_dataset=prompts(args.prompts * updates),
            processing_class=tokenizer(),
            callbacks=[clock],
        )
        if not args.defaults:
            trainer.remove_callback(PrinterCallback)
        before = network.model.embed_tokens.weight.detach().clone()
        trainer.train()
    assert len(clock.ends) == updates and not torch.equal(before, network.model.embed_tokens.weight)

    seconds = [end - begin for begin, end in zip(clock.ends, clock.ends[1:])][args.warm_up - 1 :]
    speed = batch * NEW_TOKENS / statistics.median(seconds)
    name = f"layers={args.layers} width={args.width} prompts={args.prompts} group={args.group}"
    print(f"trl {name}: {speed:.0f} tokens/s")


if __name__ == "__main__":
    main()
