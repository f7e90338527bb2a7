#!/usr/bin/env python3
"""Writes the tasks for pretrained models: python3 scripts/language/tasks.py

language/tasks/four-to-ten-words.jsonl: requests whose answer must have four to ten words. The nouns of the test requests are in no other request.
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
    "Say something about {}.",
    "Describe {}.",
    "Tell me about {}.",
    "What is {}?",
    "What do you think of when you hear {}?",
    "Where do you find {}?",
    "What is {} used for?",
    "Write about {}.",
]


def main():
    folder = pathlib.Path(__file__).resolve().parents[2] / "language" / "tasks"
    with open(folder / "four-to-ten-words.jsonl", "w") as file:
        settings = {"system": "You are a helpful assistant.", "max_new_tokens": 16}
        file.write(json.dumps(settings) + "\n")
        for number, noun in enumerate(NOUNS):
            split = "test" if number % 3 == 0 else "validation" if number % 16 == 1 else "train"
            for question in QUESTIONS:
                line = {"prompt": f"{question.format(noun)} Use at most ten words, but at least four.", "answer": "^\\S+( \\S+){3,9}$", "verifier": "regex", "split": split}
                file.write(json.dumps(line) + "\n")


main()
