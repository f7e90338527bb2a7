"""Rewards that are functions in Python."""

import pytest

from gradus_rl.text import grpo, load, train

PROMPTS = [f"{a}{b}" for a in "abcd" for b in "efgh"]
SMALL = {"envs": 32, "transformer.layers": 1, "transformer.width": 32, "transformer.heads": 2, "transformer.feed_forward_width": 32, "optimiser.learning_rate": 3e-3}


def test_a_reward_is_learned(tmp_path):
    seen = []

    def share_of_a(completions, prompts, finish):
        seen.append((len(completions), set(prompts) <= set(PROMPTS), set(finish) <= {"eos", "stop", "length"}))
        return [completion.count("a") / 4 for completion in completions]

    model = grpo(PROMPTS, share_of_a, max_new_tokens=4, steps=20_000, settings=SMALL)
    assert all(right for _, *rights in seen for right in rights)
    first, last = (model.history[i]["scores/rewards/share_of_a"] for i in (0, -1))
    assert first < 0.3 and last > 0.9
    assert model.generate(["ae"], temperature=0)[0].count("a") >= 3
    assert [len(texts) for texts in model.generate(["ae", "bf"], n=3)] == [3, 3]
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").generate(["ae", "bf"], n=3) == model.generate(["ae", "bf"], n=3)
    with pytest.raises(ValueError, match="choose another folder"):
        model.save(tmp_path / "model")  # there is one


def test_an_exception_is_itself():
    class Fault(Exception):
        pass

    def fault(completions):
        raise Fault("in a reward")

    with pytest.raises(Fault, match="in a reward"):
        grpo(PROMPTS, fault, max_new_tokens=4, settings=SMALL)


def test_wrong_rewards_are_one_sentence():
    with pytest.raises(ValueError, match="short: expected a list of .* numbers, one for each completion, got 1"):

        def short(completions):
            return [1.0]

        grpo(PROMPTS, short, max_new_tokens=4, settings=SMALL)
    with pytest.raises(ValueError, match="nan: expected finite numbers, got NaN"):

        def nan(completions):
            return [float("nan")] * len(completions)

        grpo(PROMPTS, nan, max_new_tokens=4, settings=SMALL)
    with pytest.raises(ValueError, match="named: expected parameters among prompts, .*, got question"):

        def named(question):
            return []

        grpo(PROMPTS, named, max_new_tokens=4, settings=SMALL)


def test_parameters_with_defaults_are_not_needed():
    def short(completions, *, most=3):
        return [float(len(completion) <= most) for completion in completions]

    assert "scores/rewards/short" in grpo(PROMPTS, short, max_new_tokens=4, settings=SMALL, steps=64).history[-1]
    with pytest.raises(ValueError, match="asks: expected parameters among .*, got question"):

        def asks(question, completions, weight=0.5):
            return [weight] * len(completions)

        grpo(PROMPTS, asks, max_new_tokens=4, settings=SMALL)


def test_tasks_of_ours_need_no_function():
    model = train("grpo", "addition", steps=2_000, settings={"envs": 32})
    assert "reward/mean" in model.history[-1]
