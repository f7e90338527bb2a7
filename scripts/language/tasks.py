#!/usr/bin/env python3
"""Writes the tasks for pretrained models into language/tasks: python3 scripts/language/tasks.py

four-to-ten-words.jsonl has requests whose answer must have four to ten words, and one-question.jsonl requests for a question; the nouns of the test requests are in no other request.
sums.jsonl has sums of two numbers from 1 to 49, no pair twice.
"""

import json
import pathlib
import random

NOUNS = """
apple river mountain music chair winter doctor garden piano bread island teacher train window forest ocean bicycle candle camera bridge desert kitchen library
market mirror pencil rocket school spider temple valley village wagon whale hammer jacket lemon cloud summer horse castle guitar pepper tiger engine letter
ladder dragon farmer harbor carpet cotton pillow basket button circus dinner eagle feather glacier honey insect jungle kettle lantern magnet needle onion
painter rabbit saddle tunnel umbrella volcano wizard yellow zebra anchor blanket coffee diamond elephant flower hospital planet
""".split()

QUESTIONS = [
    "Say something about {}.",
    "Describe {}.",
    "Tell me about {}.",
    "What is {}?",
    "What do you think of when you hear {}?",
    "Where do you find {}?",
    "What is {} used for?",
    "Write about {}.",
]


QUESTIONERS = [
    "Ask me one short question about {}.",
    "Ask a question about {}, and nothing else.",
    "What would you ask somebody about {}? Give one question.",
    "Write one question about {}.",
    "Make up a short question on the subject of {}.",
    "Give me a quiz question about {}.",
    "What is a good question about {}?",
    "Turn the word {} into a question.",
]

SYSTEM = {"system": "You are a helpful assistant."}


def split(number):
    return "test" if number % 3 == 0 else "validation" if number % 16 == 1 else "train"


def write(name, settings, lines):
    with open(pathlib.Path(__file__).resolve().parents[2] / "language" / "tasks" / name, "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in [{**SYSTEM, **settings}, *lines])


def about_nouns(questions, answer):
    return [
        {"prompt": question.format(noun), "answer": answer, "verifier": "regex", "split": split(number)}
        for number, noun in enumerate(NOUNS)
        for question in questions
    ]


def main():
    brief = [f"{question} Use at most ten words, but at least four." for question in QUESTIONS]
    write("four-to-ten-words.jsonl", {"max_new_tokens": 16}, about_nouns(brief, "^\\S+( \\S+){3,9}$"))
    write("one-question.jsonl", {"max_new_tokens": 16}, about_nouns(QUESTIONERS, "^[A-Z][^.!?]*[?]$"))
    pairs = random.Random(1).sample([(a, b) for a in range(1, 50) for b in range(1, 50)], 720)
    sums = [{"prompt": f"What is {a} + {b}? Answer with the number only.", "answer": str(a + b), "split": split(number)} for number, (a, b) in enumerate(pairs)]
    write("sums.jsonl", {"max_new_tokens": 4, "verifier": "equality"}, sums)


main()
