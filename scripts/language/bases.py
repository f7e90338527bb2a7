#!/usr/bin/env python3
"""Writes the questions of the second table of results/language/README.md but for its first two rows, a file for each kind: python3 scripts/language/bases.py FOLDER

For each of them and each temperature T:

    gradus train grpo "chat:FOLDER/KIND.jsonl?model=MODEL" --steps 64 --envs 8 --set optimiser.learning_rate=1e-12 --set transformer.temperature=T --out runs/base
    gradus eval runs/base --episodes 16 --best-of 8
"""

import json
import pathlib
import sys

NOUNS = "apple river mountain music chair winter doctor garden piano bread island teacher train window forest ocean".split()
KINDS = "animal,fruit,colour,country,city,vegetable,bird,fish,tree,sport,planet,metal,river,language,instrument,drink".split(",")
FACTS = "the sun hot,ice cold,a whale a fish,the earth flat,gold a metal,a cat a bird,water wet,Paris in Spain,a square round,the moon a star,7 an odd number,fire cold,iron a gas,a dog an animal,snow black,a bee an insect".split(",")
SUMS = [(2, 3), (4, 1), (5, 5), (7, 2), (3, 3), (6, 2), (1, 8), (9, 1), (4, 4), (2, 6), (5, 3), (8, 1), (7, 7), (6, 6), (9, 5), (3, 8)]


def words(first, more):
    return f"^{first}( {first}){{0,{more - 1}}}[.!]?$"


TASKS = {
    "eight-words": [(f"Say something about {noun} in at most eight words.", words("[A-Za-z',]+", 8)) for noun in NOUNS],
    "question": [(f"Ask me one short question about {noun}.", "^[A-Z][^.!?]*[?]$") for noun in NOUNS],
    "sentence": [(f"Write one short sentence about {noun}.", "^[A-Z][^.!?]*[.!]$") for noun in NOUNS],
    "five-words": [(f"Say something about {noun} in at most five words.", words("[A-Za-z']+", 5)) for noun in NOUNS],
    "yes": [(f"Is {fact}? Answer yes or no.", "^(Yes|No)[.]?$") for fact in FACTS],
    "one-word": [(f"Name one {kind}. Answer with one word.", "^[A-Za-z]+[.!]?$") for kind in KINDS],
    "letter": [(f"Which letter does the word {noun} begin with? Answer with one letter.", "^[A-Za-z][.]?$") for noun in NOUNS],
    "sum": [(f"What is {a} + {b}? Answer with the number only.", f"^{a + b}[.]?$") for a, b in SUMS],
}


def main():
    for name, questions in TASKS.items():
        lines = [{"system": "You are a helpful assistant.", "max_new_tokens": 16}]
        lines += [{"prompt": prompt, "answer": answer, "verifier": "regex", "split": "test"} for prompt, answer in questions]
        # a training needs other problems than the test
        lines += [{"prompt": f"Say {word}.", "answer": "x", "verifier": "regex", "split": split} for word, split in [("hello", "train"), ("hi", "validation")]]
        pathlib.Path(sys.argv[1], f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")


main()
