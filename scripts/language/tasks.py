#!/usr/bin/env python3
"""Writes the tasks for pretrained models: python3 scripts/language/tasks.py

language/tasks/one-word.jsonl: questions whose answer must be one word. The nouns of the test questions are in no other question.
"""

import json
import pathlib

NOUNS = """
apple river mountain music chair winter doctor garden piano bread island teacher train window forest ocean bicycle candle camera bridge desert kitchen library
market mirror pencil rocket school spider temple valley village wagon whale hammer jacket lemon cloud summer horse castle guitar pepper tiger engine letter
ladder dragon farmer harbor carpet cotton pillow basket button circus dinner eagle feather glacier honey insect jungle kettle lantern magnet needle onion
painter rabbit saddle tunnel umbrella volcano wizard yellow zebra anchor blanket coffee diamond elephant flower hospital planet
""".split()

QUESTIONS = [
    "Describe {} {} in one word.",
    "Say one word about {} {}.",
    "What do you think of when you hear {}? Answer with one word.",
    "What colour is {} {}? Answer with one word.",
    "Where do you find {} {}? Answer with one word.",
    "What is {} {} used for? Answer with one word.",
    "Which verb goes with {}? Answer with one word.",
    "What is the opposite of {} {}? Answer with one word.",
]


def main():
    folder = pathlib.Path(__file__).resolve().parents[2] / "language" / "tasks"
    with open(folder / "one-word.jsonl", "w") as file:
        settings = {"system": "You are a helpful assistant.", "max_new_tokens": 16}
        file.write(json.dumps(settings) + "\n")
        for number, noun in enumerate(NOUNS):
            split = "test" if number % 3 == 0 else "validation" if number % 16 == 1 else "train"
            for question in QUESTIONS:
                article = "an" if noun[0] in "aeiou" else "a"
                prompt = question.format(article, noun) if question.count("{}") == 2 else question.format(noun)
                line = {"prompt": prompt, "answer": "^[A-Za-z]+[.!]?$", "verifier": "regex", "split": split}
                file.write(json.dumps(line) + "\n")


main()
