"""Run folders and comparisons as tables of pandas."""

import pathlib

__all__ = ["read_comparison", "read_episodes", "read_metrics"]


def _read(folder, name):
    import pandas

    path = pathlib.Path(folder, name)
    if not path.exists():
        raise ValueError(f"{folder}: expected a folder with {name}, got none")
    return pandas.read_csv(path)


def read_metrics(folder):
    """Returns a row for each update of the run in `folder`."""
    return _read(folder, "metrics.csv")


def read_episodes(folder):
    """Returns a row for each episode of the run in `folder`."""
    return _read(folder, "episodes.csv")


def read_comparison(folder):
    """Returns a row for each evaluation of the comparison in `folder`."""
    return _read(folder, "results.csv")
