"""Language models that learn from rewards: GRPO with a function in Python.

    from gradus_rl.text import grpo

    def brief(completions, **kwargs):
        return [-len(completion.split()) / 10 for completion in completions]

    model = grpo(["Describe a river.", "What is tea?"], brief, model="models/SmolLM2-135M-Instruct.Q4_1.gguf", max_new_tokens=24)
    print(model.generate(["Describe a mountain."]))
"""

import asyncio
import inspect
import json
import os
import pathlib
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

from gradus_rl import _core

__all__ = ["TextModel", "grpo", "load", "train"]


# a loop for asynchronous functions, and the process in which its thread runs
_loop, _process = None, None


def _finished(awaitable):
    """What an asynchronous function returns. All have one loop, in a thread of its own, so that it also runs where a notebook's loop does."""
    global _loop, _process
    if _loop is None or _process != os.getpid():
        _process = os.getpid()
        _loop = asyncio.new_event_loop()
        threading.Thread(target=_loop.run_forever, daemon=True).start()

    async def awaited():
        return await awaitable

    return asyncio.run_coroutine_threadsafe(awaited(), _loop).result()


def _called(function):
    """Returns a function of a dictionary of lists that passes those which `function` names."""
    own = getattr(function, "__name__", "reward")
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters)
    named = [parameter for parameter in parameters if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]
    names = [parameter.name for parameter in named]
    needed = [parameter.name for parameter in named if parameter.default is parameter.empty]

    def call(columns):
        missing = [name for name in needed if name not in columns]
        if missing:
            raise ValueError(f"{own}: expected parameters among {', '.join(columns)}, got {missing[0]}")
        count = len(columns["completions"])
        # lists of its own, which a function may change
        given = {name: list(columns[name]) for name in columns if takes_all or name in names}
        result = function(**given)
        if inspect.isawaitable(result):
            result = _finished(result)
        # the order of a dictionary or a set is not that of the completions
        if result is None or isinstance(result, (dict, set, frozenset, str, bytes)) or not hasattr(result, "__iter__"):
            raise ValueError(f"{own}: expected a list of {count} rewards, got {result!r:.80}")
        rewards = list(result)
        for one in rewards:
            if isinstance(one, (str, bytes)):
                raise ValueError(f"{own}: expected a number, got {one!r:.80}")
        return [None if one is None else float(one) for one in rewards]

    return call


class TextModel:
    """A model that writes. `history` has a dictionary of metrics for each update of its training."""

    def __init__(self, policy, folder=None):
        self._policy, self._folder = policy, folder
        self.history = list[dict[str, float]]()

    def generate(self, prompts: Sequence[Any], n: int = 1, temperature: float = 1.0, seed: int = 1) -> list[Any]:
        """Returns completions: a text for each prompt or, if n > 1, a list of texts. A temperature of 0 takes the most probable token."""
        if isinstance(prompts, str):
            raise ValueError(f"prompts: expected a list of texts, got the text {prompts!r}")
        completions = self._policy.generate(list(prompts), n, float(temperature), seed)
        return [one[0] for one in completions] if n == 1 else completions

    def save(self, folder: Any) -> None:
        """Writes the model to a new folder, for `load` and the commands `gradus chat`, `sample` and `eval`; of a pretrained model, adapters that the library peft reads."""
        self._policy.save(folder)


def load(folder: Any) -> TextModel:
    """Returns the model that `save` or `gradus train` wrote to a folder."""
    return TextModel(_core.Policy.open(folder))


def train(
    agent: str,
    prompts: Any,
    reward_funcs: Any = (),
    *,
    model: Any = None,
    reward_weights: Sequence[float] | None = None,
    task_weight: float = 1.0,
    max_new_tokens: int = 16,
    system: str | None = None,
    steps: int = 20_000,
    seed: int = 1,
    settings: dict[str, Any] | None = None,
    callback: Callable[[dict[str, float]], Any] | None = None,
) -> TextModel:
    """Trains a text agent (`grpo`, `reinforce`, `ppo` or `dpo`).

    Args:
        agent: its name.
        prompts: texts, or dictionaries as the lines of a file of problems (`prompt`, `answer`, `verifier`, `split`; the verifier is `none` if there are functions, and otherwise `equality`); the name of a text task such as `addition`, or of a world `chat:...`.
        reward_funcs: a function or several, in the form of TRL's: they take lists (`prompts`, `completions`, `completion_ids`, `answer`, `finish`), of which they name those
            that they need, and return a number for each completion, or None.
        model: a folder or a GGUF file of a pretrained model; None: a small transformer of one's own, whose symbols are the characters of the prompts and answers.
        reward_weights: a weight for each function.
        task_weight: the weight of the task's own reward.
        max_new_tokens: the longest completion.
        system: what begins every conversation with a pretrained model.
        steps: generated tokens.
        settings: a dictionary of settings such as {"grpo.group_size": 4}.
        callback: is called with the metrics of each update; training ends if it returns False.

    An exception in a function ends the training, and is raised as it is.
    """
    functions = list(reward_funcs) if isinstance(reward_funcs, (list, tuple)) else [reward_funcs]
    weights = [1.0] * len(functions) if reward_weights is None else [float(weight) for weight in reward_weights]
    if len(weights) != len(functions):
        raise ValueError(f"reward_weights: expected {len(functions)}, one for each function, got {len(weights)}")
    names = list[str]()
    for function in functions:
        name = getattr(function, "__name__", None) or getattr(getattr(function, "func", None), "__name__", None) or type(function).__name__
        same = sum(other == name or other.startswith(f"{name}_") and other[len(name) + 1 :].isdigit() for other in names)
        names.append(f"{name}_{same + 1}" if same else name)
    folder = None
    if isinstance(prompts, str):
        world = prompts
    else:
        folder = tempfile.TemporaryDirectory(prefix="gradus")
        file = pathlib.Path(folder.name, "problems.jsonl")
        lines = [{"prompt": one} if isinstance(one, str) else dict(one) for one in prompts]
        # with functions, answers are for them alone, unless a line names a verifier
        is_judged = not functions and any("answer" in line for line in lines)
        first = {"max_new_tokens": max_new_tokens, **({} if is_judged else {"verifier": "none"}), **({} if system is None else {"system": system})}
        file.write_text("".join(json.dumps(line) + "\n" for line in [first, *lines]))
        world = f"file:{file}" if model is None else f"chat:{file}?model={model}"
    own = [f"{key}={json.dumps(value) if not isinstance(value, str) else value}" for key, value in (settings or {}).items()]
    trainer = _core.TextTrainer(
        agent,
        world,
        [f"steps={steps}", f"seed={seed}", *own],
        [(name, _called(function), weight) for name, function, weight in zip(names, functions, weights)],
        float(task_weight),
    )
    trained = TextModel(trainer, folder)
    while not trainer.is_finished:
        trained.history.append(dict(trainer.iterate()))
        if callback is not None and callback(trained.history[-1]) is False:
            break
    return trained


def grpo(prompts: Any, reward_funcs: Any = (), **arguments: Any) -> TextModel:
    """Trains with group relative policy optimisation (arXiv 2402.03300): see `train`."""
    return train("grpo", prompts, reward_funcs, **arguments)
