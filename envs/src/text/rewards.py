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
    # half a pair of UTF-16 is no text for JSON
    what = what.encode("utf-8", "replace").decode()
    # the line of the user's file in which it was raised
    own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    if isinstance(error, SyntaxError) and error.filename == path:
        own = [error.lineno]
    return f"{what} (line {own[-1]})" if own else what


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
    # processes that a function starts import the file by its name, unless a module of Python's has it
    own_name = os.path.splitext(os.path.basename(file))[0]
    module_name = own_name if own_name.isidentifier() and own_name not in sys.modules and own_name not in sys.stdlib_module_names else "rewards"
    spec = importlib.util.spec_from_file_location(module_name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    own = {name: f for name, f in vars(module).items() if callable(f) and not name.startswith("_") and not inspect.isclass(f)}

    def takes_completions(f):
        try:
            return "completions" in inspect.signature(f).parameters
        except (TypeError, ValueError):
            return False

    taking = [name for name, f in own.items() if takes_completions(f)]
    names = wanted or [name for name in taking if getattr(own[name], "__module__", None) == module_name]
    for name in names:
        if name not in own:
            raise Problem(f"expected a function {name}, got {', '.join(own) or 'none'}")
        if not takes_completions(own[name]):
            raise Problem(f"{name}: expected a function with a parameter `completions`, got one without")
        if names.count(name) > 1:
            raise Problem(f"expected each function once, got {name} twice")
    if not names:
        imported = f" of its own; python:FILE:{','.join(taking)} names those that it imports" if taking else ""
        raise Problem(f"expected a function with a parameter `completions`, got none{imported}")
    return [(name, own[name]) for name in names]


def arguments_of(f, all):
    parameters = inspect.signature(f).parameters.values()
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        return all
    return {parameter.name: all[parameter.name] for parameter in parameters if parameter.name in all}


# the largest number of 32 bits
LARGEST = 3.4028234663852886e38


def shown(value):
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 40 else text[:37] + "..."


async def awaited(value):
    return await value


# asynchronous functions may keep what belongs to their loop, such as connections
loop = None


def finished(value):
    """What an asynchronous function returns, after all its work."""
    global loop
    if loop is None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    return loop.run_until_complete(awaited(value))


def rewards_of(name, f, all):
    """Returns the rewards of one function, None where it has none, and the problems: the number of a completion, and what is wrong."""
    n = len(all["completions"])
    try:
        # lists of its own, which a function may change
        given = f(**arguments_of(f, {key: list(values) for key, values in all.items()}))
        if inspect.isawaitable(given):
            given = finished(given)
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
        if not isinstance(error, Problem):
            traceback.print_exception(error)
        raise Problem(f"{name}: {one_line(error)}") from None
    rewards, problems = [], []
    for i, value in enumerate(values):
        try:
            reward = None if value is None else math.nan if isinstance(value, (str, bytes)) else float(value)
        except BaseException:
            reward = math.nan
        if reward is not None and not abs(reward) <= LARGEST:
            expected = "a finite reward" if not math.isfinite(reward) else "a reward from -3.4e38 to 3.4e38"
            problems.append([i, f"{name}: expected {expected}, got {shown(value)}"])
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
