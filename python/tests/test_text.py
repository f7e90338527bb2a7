"""Rewards that are functions in Python."""

import asyncio
import functools
import re

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


@pytest.mark.parametrize(
    "given, problem",
    [
        (None, "odd: expected a list of 32 rewards, got None"),
        ({i: 5.0 for i in range(32)}, "odd: expected a list of 32 rewards, got {0: 5.0"),
        ("1" * 32, "odd: expected a list of 32 rewards, got '111"),
        (["1"] * 32, "odd: expected a number, got '1'"),
    ],
)
def test_what_is_no_list_of_numbers_is_refused(given, problem):
    def odd(completions):
        return given

    with pytest.raises(ValueError, match=re.escape(problem)):
        grpo(PROMPTS, odd, max_new_tokens=4, settings=SMALL)


def test_functions_have_lists_of_their_own_and_may_be_asynchronous():
    turns, seen = asyncio.Semaphore(1), []

    def emptied(completions):
        return [float(len(completions.pop(0))) for _ in range(len(completions))]

    async def waited(completions):
        async with turns:
            seen.append(len(completions))
            return [1.0] * len(completions)

    model = grpo(PROMPTS, [emptied, waited], max_new_tokens=4, steps=300, settings=SMALL)
    assert seen and set(seen) == {32} and len(model.history) > 1 and model.history[0]["scores/rewards/waited"] == 1.0
    ones = lambda completions: [1.0] * len(completions)
    model = grpo(PROMPTS, [ones, functools.partial(ones), lambda completions: ones(completions)], max_new_tokens=4, steps=100, settings=SMALL)
    assert all(model.history[0][f"scores/rewards/{name}"] == 1.0 for name in ("<lambda>", "<lambda>_2", "<lambda>_3"))


def test_answers_are_rewarded_without_functions():
    lines = [{"prompt": prompt, "answer": "a"} for prompt in PROMPTS]
    model = grpo(lines, max_new_tokens=2, steps=3000, settings=SMALL)
    assert model.history[-1]["reward/mean"] > 0.0
    with pytest.raises(ValueError, match="text.rewards: expected reward functions, because no problem has a verifier, got none"):
        grpo(PROMPTS, max_new_tokens=2)


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
