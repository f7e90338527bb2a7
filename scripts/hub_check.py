"""Checks that Hugging Face's package reads the model card of `gradus export --hub`, without a network, and that the exported files work:
`python scripts/hub_check.py GRADUS`, where GRADUS is the program. Needs huggingface_hub and numpy.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from huggingface_hub import ModelCard
from huggingface_hub.utils import validate_repo_id


def main():
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *arguments: subprocess.run([program, *arguments], check=True, cwd=folder, capture_output=True, text=True).stdout
        run("train", "ppo", "cartpole", "--steps", "100k", "--out", "run", "--quiet")
        run("export", "run", "--hub", "hub", "--name", "me/cartpole-ppo")
        # the names that the program gives and accepts are names of the hub
        validate_repo_id("me/cartpole-ppo")
        hub = Path(folder, "hub")
        card = ModelCard.load(hub / "README.md")
        [result] = card.data.eval_results
        evaluation = json.loads((hub / "results.json").read_text())
        assert card.data.library_name == "gradus" and "reinforcement-learning" in card.data.tags, card.data
        assert (result.task_type, result.dataset_name, result.metric_type) == ("reinforcement-learning", "CartPole-v1", "mean_reward"), result
        assert card.data.model_name == "me/cartpole-ppo", card.data.model_name
        assert result.metric_value == f"{evaluation['mean']:.2f} +/- {evaluation['std']:.2f}", result.metric_value
        for name in ["replay.gif", "curve.png"]:
            assert f"]({name})" in card.text and (hub / name).stat().st_size > 1000, name
        assert json.loads(run("eval", "hub", "--json"))["mean"] == evaluation["mean"]
        loads = "from gradus_policy import load; print(load('.').act([0.0, 0.0, 0.1, 0.0]))"
        action = subprocess.run([sys.executable, "-c", loads], check=True, cwd=hub, capture_output=True, text=True).stdout.strip()
        assert action == "1", action
        print(f"the card of {card.data.model_name}: {result.metric_name} {result.metric_value} on {result.dataset_name}; its files work")


main()
