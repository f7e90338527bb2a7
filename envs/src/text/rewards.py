"""Calls the reward functions of a file for a program of Gradus. A request is a letter, 4 bytes with a length, and JSON; so is an answer."""

import sys

sys.path = [path for path in sys.path if path] + [""]

import asyncio
import faulthandler
import importlib.util
import inspect
import json
import math
import os
import signal
import struct
import threading
import time
import traceback

# the pipes of the protocol; what a function reads or prints must not touch them
requests = os.dup(0)
answers = os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
# Ctrl-C is for the program, which ends this process by closing the pipe
signal.signal(signal.SIGINT, signal.SIG_IGN)

process = os.getpid()
parent = os.getppid()


def end():
    """Ends this process, with those that functions have forked."""
    if hasattr(os, "killpg") and os.getpgrp() == process == os.getpid():
        os.killpg(process, signal.SIGKILL)
    os._exit(0)


def watch_parent():
    while os.getppid() == parent:
        time.sleep(1)
    end()


# a function that hangs would not see that the program has ended
threading.Thread(target=watch_parent, daemon=True).start()


class Problem(Exception):
    """What is wrong, in one line for the user."""


def receive(n):
    data = b""
    while len(data) < n:
        part = os.read(requests, n - len(data))
        if not part:
            end()
        data += part
    return data


def send(answer):
    if os.getpid() != process:
        os._exit(0)  # a process that a function has forked
    sys.stdout.flush()
    sys.stderr.flush()
    text = json.dumps(answer).encode()
    data = b"j" + struct.pack("<I", len(text)) + text
    while data:
        data = data[os.write(answers, data) :]


def one_line(error):
    if isinstance(error, Problem):
        return str(error)
    what = traceback.format_exception_only(type(error), error)[-1].strip().replace("\n", " ")
    # the line of the user's file in which it was raised
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"{what} (line {own[-1].lineno})" if own else what


def limit_memory(megabytes):
    if megabytes:
        try:
            import resource

            resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))
        except (ImportError, ValueError, OSError):
            pass  # not on this system


def load(file, wanted):
    """Returns the reward functions of a file, with their names: those that are wanted, or all that take completions."""
    sys.path.insert(0, os.path.dirname(file))
    spec = importlib.util.spec_from_file_location("rewards", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    own = {name: f for name, f in vars(module).items() if callable(f) and not name.startswith("_") and not inspect.isclass(f)}

    def takes_completions(f):
        try:
            return "completions" in inspect.signature(f).parameters
        except (TypeError, ValueError):
            return False

    names = wanted or [name for name, f in own.items() if takes_completions(f) and getattr(f, "__module__", None) == "rewards"]
    for name in names:
        if name not in own:
            raise Problem(f"expected a function {name}, got {', '.join(own) or 'none'}")
        if not takes_completions(own[name]):
            raise Problem(f"{name}: expected a function with a parameter `completions`, got one without")
        if names.count(name) > 1:
            raise Problem(f"expected each function once, got {name} twice")
    if not names:
        raise Problem("expected a function with a parameter `completions`, got none")
    return [(name, own[name]) for name in names]


def arguments_of(f, all):
    parameters = inspect.signature(f).parameters.values()
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        return all
    return {parameter.name: all[parameter.name] for parameter in parameters if parameter.name in all}


def shown(value):
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 40 else text[:37] + "..."


async def awaited(value):
    return await value


def rewards_of(name, f, all):
    """Returns the rewards of one function, None where it has none, and the problems: the number of a completion, and what is wrong."""
    try:
        given = f(**arguments_of(f, all))
        if inspect.isawaitable(given):
            given = asyncio.run(awaited(given))
        n = len(all["completions"])
        try:
            # the order of a dictionary or a set is not that of the completions
            values = None if isinstance(given, (dict, set, frozenset, str)) else list(given)
        except TypeError:
            values = None
        if values is None:
            raise Problem(f"expected a list of {n} rewards, got {shown(given)}")
        if len(values) != n:
            raise Problem(f"expected {n} rewards, got {len(values)}")
    except BaseException as error:
        raise Problem(f"{name}: {one_line(error)}") from None
    rewards, problems = [], []
    for i, value in enumerate(values):
        try:
            reward = None if value is None else float(value)
        except BaseException:
            reward = math.nan
        if reward is not None and not math.isfinite(reward):
            problems.append([i, f"{name}: expected a finite reward, got {shown(value)}"])
            reward = None
        rewards.append(reward)
    return rewards, problems


path, functions = None, []
nowhere = open(os.devnull, "w")
while True:
    request = json.loads(receive(struct.unpack("<xI", receive(5))[0]))
    seconds = request.pop("seconds")
    try:
        # code that never lets another thread run would not see that the program, and its limit, are gone
        faulthandler.dump_traceback_later(seconds + 30, exit=True, file=nowhere)
        if "file" in request:
            path = os.path.abspath(request["file"])
            limit_memory(request["megabytes"])
            functions = load(path, request["functions"])
            send({"names": [name for name, _ in functions]})
        else:
            columns, problems = [], []
            for name, f in functions:
                rewards, wrong = rewards_of(name, f, request)
                columns.append(rewards)
                problems += wrong
            send({"rewards": columns, "problems": problems})
    except BaseException as error:
        send({"problem": one_line(error)})
    faulthandler.cancel_dump_traceback_later()
