"""What updates report: by name, printed, and for TensorBoard."""

import pathlib
import re

from gradus_rl import _core


class Logger:
    """The last values by name. With `prints`, `dump` prints them; with a folder, it writes them for TensorBoard."""

    def __init__(self, prints=False, folder=None):
        self.name_to_value, self._counts, self._new = {}, {}, set()
        self.prints, self.dir = prints, None if folder is None else str(folder)
        self._events = None if folder is None else _core.EventWriter(folder)

    def record(self, key, value, exclude=None):
        """Sets a value."""
        self.name_to_value[key] = value
        self._new.add(key)

    def record_mean(self, key, value, exclude=None):
        """Adds to a mean, which begins again after `dump`."""
        if value is not None:
            count = self._counts.get(key, 0)
            self._counts[key] = count + 1
            self._new.add(key)
            self.name_to_value[key] = value if count == 0 else self.name_to_value[key] + (value - self.name_to_value[key]) / (count + 1)

    def dump(self, step=0):
        """Prints the values, which stay until they are recorded again, and writes those that were recorded since the last call."""
        numbers = {}
        for key, value in self.name_to_value.items():
            try:
                numbers[key] = float(value)
            except (TypeError, ValueError):
                continue  # a figure, or other things that only Stable-Baselines3's logger writes
        if self.prints:
            print(table(numbers), flush=True)
        if self._events is not None:
            self._events.write(int(step), [(key, value) for key, value in numbers.items() if key in self._new])
        self._counts.clear()
        self._new.clear()


def table(numbers):
    """Returns numbers with names such as `train/loss` as a table with a part for each first word."""
    lines, last = [], None
    for key in sorted(numbers):
        part, _, name = key.rpartition("/")
        if part != last:
            lines.append((f"{part}/", ""))
            last = part
        value = numbers[key]
        lines.append((f"   {name}", str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.3g}") if value == value and abs(value) != float("inf") else (f"   {name}", str(value)))
    widths = [max(len(line[i]) for line in lines) for i in (0, 1)] if lines else [0, 0]
    rule = "-" * (sum(widths) + 7)
    return "\n".join([rule, *(f"| {left:<{widths[0]}} | {right:<{widths[1]}} |" for left, right in lines), rule])


def folder_of(parent, name, is_new):
    """Returns the folder `parent/name_N` of the next run or, unless it is new, of the last one."""
    numbers = [int(found[1]) for path in pathlib.Path(parent).glob(f"{name}_*") if (found := re.fullmatch(rf"{re.escape(name)}_(\d+)", path.name))]
    return pathlib.Path(parent, f"{name}_{max(numbers, default=0) + (1 if is_new or not numbers else 0)}")


class Callbacks:
    """Calls functions, and callbacks of Stable-Baselines3."""

    def __init__(self, callback, model):
        self.functions, self.objects = [], []
        for one in callback if isinstance(callback, (list, tuple)) else [callback]:
            if hasattr(one, "init_callback"):
                one.init_callback(model)
                self.objects.append(one)
            elif callable(one):
                self.functions.append(one)
            elif one is not None:
                raise ValueError(f"callback: expected a function or a callback, got {type(one).__name__}")

    def __bool__(self):
        return bool(self.functions or self.objects)

    def call(self, method, *arguments):
        """Calls a method of all callbacks of Stable-Baselines3."""
        for one in self.objects:
            getattr(one, method)(*arguments)

    def on_step(self, scope, other):
        """Returns whether training goes on."""
        results = [function(scope, other) for function in self.functions]
        for one in self.objects:
            one.update_locals(scope)
            results.append(one.on_step())
        return all(result is None or result for result in results)
