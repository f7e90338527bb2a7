"""What the critic of PPO costs: python3 scripts/language/costs.py [PROGRAM] (default target/release/gradus, with the feature `language`), on a machine that does nothing else.

Trains PPO with a critic of its own, PPO with a value head on the policy's trunk, and GRPO in groups of eight and of two, each with 64 completions of at most 16 tokens an update and one pass over them, in three sizes of our own transformer and with
SmolLM2-135M (adapters, and all parameters). Writes results/language/costs.csv: the numbers that are trained (policy and critic), the median of the seconds for 1000 tokens over the updates after the first, and the
largest memory in MB. The learning rate changes nothing, so completions stay as long as they are.
"""

import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

MODEL = "chat:language/tasks/four-to-ten-words.jsonl?model=models/SmolLM2-135M-Instruct.Q4_1.gguf"
OWN = "addition"
SIZES = {
    "width 64, 2 layers": (OWN, {"transformer.width": 64, "transformer.layers": 2, "transformer.heads": 4, "transformer.feed_forward_width": 256}),
    "width 256, 4 layers": (OWN, {"transformer.width": 256, "transformer.layers": 4, "transformer.heads": 8, "transformer.feed_forward_width": 1024}),
    "width 768, 6 layers": (OWN, {"transformer.width": 768, "transformer.layers": 6, "transformer.heads": 12, "transformer.feed_forward_width": 3072}),
    "135M, adapters": (MODEL, {}),
    "135M, all parameters": (MODEL, {"transformer.lora_rank": 0}),
}
AGENTS = {
    "PPO, critic of its own": ("ppo", {"transformer.critic": "separate"}),
    "PPO, value head": ("ppo", {"transformer.critic": "head"}),
    "GRPO": ("grpo", {"grpo.group_size": 8}),
    # completions of a group share their prompt, which is read once
    "GRPO, groups of two": ("grpo", {"grpo.group_size": 2}),
}
EQUAL = {"ppo": {"ppo.epochs": 1, "ppo.minibatch_size": 1024, "ppo.episodes_per_env": 1}, "grpo": {"grpo.epochs": 1, "grpo.minibatches": 1}}


def trained(file):
    """The number of numbers in a file of tensors, but for those of a base that is not trained."""
    with open(file, "rb") as bytes:
        header = json.loads(bytes.read(int.from_bytes(bytes.read(8), "little")))
    total = 0
    for name, tensor in header.items():
        if name != "__metadata__" and tensor["dtype"] == "F32":
            count = 1
            for n in tensor["shape"]:
                count *= n
            total += count
    return total


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/gradus"
    path = pathlib.Path("results/language/costs.csv")
    if not path.exists():
        path.write_text("size,agent,trained,seconds,megabytes\n")
    done = {(row["size"], row["agent"]) for row in csv.DictReader(path.open())}
    for size, (world, shape) in SIZES.items():
        for agent, (name, own) in AGENTS.items():
            if (size, agent) in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                out = f"{folder}/run"
                tokens = 3000 if world == MODEL else {64: 40_000, 256: 4096, 768: 1024}[shape["transformer.width"]]
                settings = {**shape, **own, **EQUAL[name], "envs": 64, "optimiser.learning_rate": "1e-20", "optimiser.schedule": "constant", "seed": 1}
                command = [program, "train", name, world, "--steps", str(tokens), "--threads", "2", "--quiet", "--out", out]
                command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
                # a child of a child: the largest memory is that of all children so far
                code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
                memory = int(subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True, text=True).stdout) * 1024
                times = [(int(row["time/total_timesteps"]), float(row["time/time_elapsed"])) for row in csv.DictReader(open(f"{out}/timing.csv"))]
                seconds = [1000 * (b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(times, times[1:])]
                with path.open("a") as file:
                    file.write(f'"{size}","{agent}",{trained(f"{out}/policy.safetensors")},{statistics.median(seconds):.3f},{memory / 1e6:.0f}\n')


if __name__ == "__main__":
    main()
