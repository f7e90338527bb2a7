"""Measures completion tokens per second of TRL's PPOTrainer with the adapters of a pretrained model and a critic of its own, generation and learning together, on a CPU.

    python trl_ppo.py MODEL.gguf PROBLEMS.jsonl --micro-batches 4

Needs TRL 1.12.0, the last one that has PPO (trl.experimental.ppo). Model, prompts, adapters, batch (64 completions of at most 16 tokens) and temperature are those of trl_lora.py; the critic
is the same model with adapters and a head of its own, the reference is the policy without its adapters, and there is one pass over all completions. The learning rate is so small that
completions stay as long as they are. The reward model is a module that costs nothing and gives every completion a reward of 0. Tokens behind the end of a completion do not count.
"""

import argparse
import copy
import pathlib
import resource
import statistics
import tempfile
import types

from trl_lora import Clock, NEW_TOKENS, opened, questions  # first, because it sets the number of threads before torch is imported

import torch
from datasets import Dataset
from peft import LoraConfig, inject_adapter_in_model
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, PrinterCallback
from trl.experimental.ppo import PPOConfig, PPOTrainer

COMPLETIONS = 64


class NoReward(torch.nn.Module):
    """A reward model in the form that PPOTrainer asks for. It counts the tokens of its texts."""

    base_model_prefix = "counts"

    def __init__(self):
        super().__init__()
        self.tokens = []

    def counts(self, input_ids, attention_mask, **_):
        self.tokens.append(int(attention_mask.sum()))
        return types.SimpleNamespace(hidden_states=[torch.zeros(*input_ids.shape, 1)])

    def score(self, hidden):
        return hidden


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("problems", type=pathlib.Path)
    parser.add_argument("--updates", type=int, default=4, help="updates that are timed, after the first")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=1, help="parts of the 64 completions that are computed one after the other [default: 1, which needs more than 24 GB]")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tokeniser, model = opened(args.model)
    # the default is a token that ends each message
    tokeniser.pad_token = tokeniser.convert_ids_to_tokens(0)
    tokeniser.padding_side = "left"
    config = copy.deepcopy(model.config)
    config.num_labels = 1
    critic = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
    critic.model.load_state_dict(model.model.state_dict())
    adapters = {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]}
    inject_adapter_in_model(LoraConfig(**adapters), critic)
    for name, parameter in critic.named_parameters():
        parameter.requires_grad = "lora_" in name or name.startswith("score")
    system, problems = questions(args.problems)
    texts = [tokeniser.apply_chat_template([system, {"role": "user", "content": problem["prompt"]}], add_generation_prompt=True, tokenize=False) for problem in problems]
    rows = [tokeniser(text, add_special_tokens=False)["input_ids"] for text in texts]
    collate, prompts = DataCollatorWithPadding(tokeniser), []

    def collated(batch):
        prompts.append(sum(len(row["input_ids"]) for row in batch))
        return collate(batch)

    clock, reward = Clock(), NoReward()
    with tempfile.TemporaryDirectory() as folder:
        config = PPOConfig(
            output_dir=folder,
            per_device_train_batch_size=COMPLETIONS // args.micro_batches, gradient_accumulation_steps=args.micro_batches, num_mini_batches=1, num_ppo_epochs=1,
            local_rollout_forward_batch_size=COMPLETIONS // args.micro_batches, total_episodes=COMPLETIONS * (args.updates + 1), response_length=NEW_TOKENS, temperature=0.7, stop_token="eos",
            learning_rate=1e-20, seed=1, use_cpu=True, bf16=False, gradient_checkpointing=False, num_sample_generations=0, dataloader_pin_memory=False,
            report_to="none", logging_strategy="no", save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        dataset = Dataset.from_dict({"input_ids": rows})
        trainer = PPOTrainer(
            args=config,
            processing_class=tokeniser,
            model=model,
            ref_model=None,
            reward_model=reward,
            value_model=critic,
            train_dataset=dataset,
            eval_dataset=dataset,
            data_collator=collated,
            callbacks=[clock],
            peft_config=LoraConfig(**adapters, task_type="CAUSAL_LM"),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    seconds = [end - begin for begin, end in zip(clock.ends, clock.ends[1:])]
    parts = args.micro_batches
    seen = [sum(reward.tokens[i : i + parts]) for i in range(0, len(reward.tokens), parts)]
    tokens = [all_tokens - asked for all_tokens, asked in zip(seen, prompts)][-len(seconds) :]
    speed = statistics.median(n / s for n, s in zip(tokens, seconds))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"trl: {speed:.1f} tokens/s, {statistics.mean(tokens) / COMPLETIONS:.1f} tokens a completion, {statistics.median(seconds):.2f} s an update, {memory:.0f} MB")


if __name__ == "__main__":
    main()
