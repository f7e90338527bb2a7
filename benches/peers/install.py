"""Installs the peers: one Python environment for each, from its requirements file, created on first use."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gradus" / "peers"

# peers that need a particular Python version
PYTHONS = {"cleanrl": "3.10", "envpool": "3.11", "pufferlib": "3.11"}
# commands to run after the requirements are installed
AFTER = {
    "cleanrl": ["-m", "pip", "install", "--no-deps", "cleanrl==1.2.0"],
    "pufferlib": [HERE / "build_pufferlib.py"],
}


class Missing(Exception):
    """Raised if a peer cannot be measured on this machine. The message is one line."""


def output(command: list, **options) -> str:
    """Returns the output of a command. Raises Missing with its error message."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except OSError as error:
        raise Missing(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no error message"]
        # pip's last lines are hints; its error message begins with ERROR
        wrong = next((line for line in lines if line.startswith("ERROR")), lines[-1])
        raise Missing(f"{' '.join(command[-4:])}: exit code {done.returncode}: {wrong.strip()}")
    return done.stdout


def base(name: str) -> str:
    """Returns an interpreter of the Python version that this peer needs."""
    version = PYTHONS.get(name)
    if version is None or sys.version.startswith(version + "."):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in [f"python{version}", *sorted(pyenv.glob(f"{version}.*/bin/python"))]:
        try:
            output([candidate, "-c", "import venv"])
            return str(candidate)
        except Missing:
            continue
    if uv := shutil.which("uv"):
        output([uv, "python", "install", version])
        return output([uv, "python", "find", version]).strip()
    raise Missing(f"expected python{version} or uv on the path, got neither")


@cache
def python(name: str) -> str:
    """Returns an interpreter in which this peer is installed: PYTHON_NAME if it is set, otherwise an interpreter in the cache."""
    if given := os.environ.get(f"PYTHON_{name.upper()}"):
        return given
    requirements = HERE / f"requirements-{name}.txt"
    folder, wanted = CACHE / name, "".join([requirements.read_text(), repr([str(part) for part in AFTER.get(name, [])])])
    interpreter, done = folder / "bin" / "python", folder / "installed.txt"
    if not done.exists() or done.read_text() != wanted:
        print(f"installing {name} in {folder}", file=sys.stderr)
        output([base(name), "-m", "venv", "--clear", folder])
        output([interpreter, "-m", "pip", "install", "-r", requirements])
        if after := AFTER.get(name):
            output([interpreter, *after])
        done.write_text(wanted)
    return str(interpreter)


@cache
def version(name: str, package: str) -> str:
    return output([python(name), "-c", f"from importlib.metadata import version; print(version({package!r}))"]).strip()


@cache
def gradus() -> str:
    """Returns the path of our binary: GRADUS if it is set, otherwise the binary of `cargo run`."""
    if given := os.environ.get("GRADUS"):
        return given
    print("building gradus", file=sys.stderr)
    subprocess.run(["cargo", "build", "--quiet", "--bin", "gradus"], cwd=ROOT, check=True)
    return str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "gradus")


@cache
def processor() -> str:
    """Returns the name of the processor."""
    try:
        return re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1]
    except (OSError, TypeError):
        import platform

        return platform.processor() or platform.machine()
