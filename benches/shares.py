"""Measures the shares of the roofline that results/speed has, in turn: python3 benches/shares.py --to results/speed/shares.csv [--rounds 7]

For every network and number of threads runs `gradus bench roofline` once a round, and adds a row: what is trained, the threads, the date, the peak of multiplications in GFLOP/s of all threads, the
steps per second, and the share. A row that is there is not made again, so the script can be stopped and continued. GRADUS names the program [default: target/debug/gradus, that of `cargo run`].
No other program may run on the machine.
"""

import argparse
import csv
import datetime
import os
import pathlib
import re
import subprocess

COLUMNS = ["what", "threads", "round", "date", "peak", "steps_per_second", "share"]
OFF_POLICY = ["--env", "pendulum"]


def widths(*numbers):
    return ["--set", f"network.hidden=[{','.join(map(str, numbers))}]"]


WORK = {
    "PPO, 64-64, 4 environments, minibatches of 128": [],
    "PPO, 64-64, 64 environments, minibatches of 2048": ["--envs", "64"],
    "PPO, 64-64, 2048 environments, minibatches of 65 536": ["--envs", "2048"],
    **{f"PPO, {n}-{n}, 4 environments, minibatches of 128": widths(n, n) for n in (32, 128, 256, 512)},
    "DQN, 256-256, samples of 128": ["--agent", "dqn", *widths(256, 256)],
    "DQN, 120-84, samples of 128": ["--agent", "dqn"],
    "SAC, 256-256, samples of 256": ["--agent", "sac", *OFF_POLICY],
    "TD3, 400-300, samples of 256": ["--agent", "td3", *OFF_POLICY, *widths(400, 300)],
    "DDPG, 400-300, samples of 256": ["--agent", "ddpg", *OFF_POLICY, *widths(400, 300)],
    "TD3, 64-64, samples of 100": ["--agent", "td3", *OFF_POLICY, *widths(64, 64), "--set", "td3.batch_size=100"],
    "SAC, 64-64, samples of 100": ["--agent", "sac", *OFF_POLICY, *widths(64, 64), "--set", "sac.batch_size=100"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    program = os.environ.get("GRADUS", "target/debug/gradus")
    if not args.to.exists():
        args.to.write_text(",".join(COLUMNS) + "\n")
    done = {(row["what"], row["threads"], row["round"]) for row in csv.DictReader(args.to.open())}
    for round in range(1, args.rounds + 1):
        for what, options in WORK.items():
            for threads in (1, 2):
                if (what, str(threads), str(round)) in done:
                    continue
                text = subprocess.run([program, "bench", "roofline", "--threads", str(threads), *options], check=True, capture_output=True, text=True).stdout
                number = lambda pattern: re.search(pattern, text, re.MULTILINE)[1]
                peak, speed = number(r"^multiply peak\s+([0-9.]+)"), number(r"^measured\s+([0-9.]+)")
                # with two digits in the output, the share is computed again
                roofline = float(number(r"^roofline\s+([0-9.]+)"))
                with args.to.open("a", newline="") as file:
                    csv.writer(file).writerow([what, threads, round, datetime.date.today(), peak, speed, f"{float(speed) / roofline:.3f}"])
                print(f"{what}, {threads} threads: {float(speed) / roofline:.3f}", flush=True)


if __name__ == "__main__":
    main()
