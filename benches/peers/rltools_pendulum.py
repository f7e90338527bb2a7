"""Measures steps per second of RLtools' SAC, TD3 or PPO on Pendulum, environment steps and updates together.

    python rltools_pendulum.py --work sac-small [--rounds 9] [--threads 1]

Compiles rltools_pendulum.cpp against the headers in the Python package `rltools` and against OpenBLAS, with the options that the package itself uses. The
works are those of off_policy_sb3.py whose layers have equal widths, as RLtools needs, and PPO with four environments, rollouts of 1024 steps and ten epochs.
The last line is `rltools: 1234 steps/s`, the median over slices of half a second.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

# agent, width of the two hidden layers, decisions of an update
WORK = {"sac": ("sac", 256, 256), "sac-small": ("sac", 64, 100), "td3-256": ("td3", 256, 256), "td3-small": ("td3", 64, 100), "ppo": ("ppo", 64, 256)}
SOURCE = pathlib.Path(__file__).with_suffix(".cpp")
OPTIONS = "-std=c++17 -O3 -march=native -ffast-math -DRL_TOOLS_BACKEND_ENABLE_OPENBLAS -DRL_TOOLS_DISABLE_UNALIGNED_MEMORY_ALLOCATIONS".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--work", choices=WORK, required=True)
    parser.add_argument("--rounds", type=int, default=9, help="slices that are timed")
    parser.add_argument("--threads", type=int, default=1, help="threads of OpenBLAS")
    args = parser.parse_args()
    headers = pathlib.Path(importlib.util.find_spec("rltools").origin).parent / "external" / "rl_tools" / "include"
    agent, width, batch = WORK[args.work]
    macros = [f"-DWORK_HIDDEN={width}", f"-DWORK_BATCH={batch}", f"-DWORK_{agent.upper()}"]
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / agent
        command = [os.environ.get("CXX", "g++"), *OPTIONS, *macros, "-I", headers, SOURCE, "-o", program, "-lopenblas"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
            sys.exit(f"{SOURCE.name}: {(lines or ['the compiler failed without a message'])[0].strip()}")
        # without it, OpenBLAS may choose kernels without AVX-512 on a processor that has it
        chosen = {"OPENBLAS_CORETYPE": "SkylakeX"} if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text() else {}
        environment = os.environ | chosen | {"OPENBLAS_NUM_THREADS": str(args.threads)}
        sys.exit(subprocess.run([program, str(args.rounds)], env=environment).returncode)


if __name__ == "__main__":
    main()
