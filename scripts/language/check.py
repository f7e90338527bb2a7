#!/usr/bin/env python3
"""Compares tokens and chat templates with other programs: python3 scripts/language/check.py MODEL.gguf

Tokens of 10 000 texts and the texts of 2000 rows of tokens, some of which are no UTF-8, with a tokeniser that the package `tokenizers` builds from the file's metadata, and 200
conversations in eight templates with Jinja2, set up as in transformers. Needs the packages gguf, tokenizers and jinja2.
"""

import json
import pathlib
import random
import subprocess
import sys

import gguf
import jinja2.ext
import jinja2.sandbox
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2]


def metadata(path):
    fields = gguf.GGUFReader(path).fields
    return {key: field.contents() for key, field in fields.items()}


def tokeniser(about):
    tokens, kinds = about["tokenizer.ggml.tokens"], about["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in about["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE({text: i for i, text in enumerate(tokens)}, merges))
    assert about["tokenizer.ggml.pre"] == "smollm"
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([text for text, kind in zip(tokens, kinds) if kind == 3])
    return made


WORDS = "the of and to in is it you that he was for on are with as his they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more two".split()
SCRIPTS = [(0x20, 0x7E), (0xA1, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x600, 0x6FF), (0x900, 0x97F), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF)]
CODE = ["def f(x):\n    return x + 1\n", "for (int i = 0; i < n; ++i) {", "let x: Vec<u32> = vec![1, 2];", "SELECT * FROM t WHERE a >= 3;", "\t\tif x == y:", "a[i] += b[j] * 0x1F", "<div class=\"a\">&nbsp;</div>", "x -> y => z :: w"]
PIECES = ["\U0001f469\u200d\U0001f4bb", "\U0001f1eb\U0001f1f7", "e\u0301", "\u00a0", "\u200b", "\r\n", "\n\n\n", "\t", "   ", "...", "!!!", "'s", "'LL", "\u2019t", "1234567", "3.14", "-1e9", "\u0663", "\u00bd", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "\ufeff", "\x00", "\x7f"]


def texts(rng):
    """Texts of words, code, emoji, digits, blanks and many scripts."""
    for number in range(10_000):
        parts = []
        for _ in range(rng.randint(1, 12)):
            kind = rng.randrange(7)
            if kind <= 1:
                word = rng.choice(WORDS)
                parts.append(rng.choice([word, word.upper(), word.title()]))
            elif kind == 2:
                parts.append(rng.choice(CODE))
            elif kind == 3:
                parts.append(rng.choice(PIECES))
            elif kind == 4:
                parts.append(str(rng.randrange(10 ** rng.randint(1, 12))))
            else:
                first, last = rng.choice(SCRIPTS)
                parts.append("".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 8))))
            parts.append(rng.choice(["", " ", " ", " ", "  ", "\n", "\t"]))
        yield "".join(parts)


TEMPLATES = {
    "ChatML": "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "turns in brackets": "{%- if messages[0]['role'] == 'system' -%}{%- set system = '<<SYS>>\n' + messages[0]['content'] | trim + '\n<</SYS>>\n\n' -%}{%- set rest = messages[1:] -%}{%- else -%}{%- set system = '' -%}{%- set rest = messages -%}{%- endif -%}{{ bos_token }}{%- for message in rest -%}{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception('roles must alternate') }}{%- endif -%}{%- if message['role'] == 'user' -%}[INST] {{ (system if loop.first else '') + message['content'] | trim }} [/INST]{%- else -%}{{ ' ' ~ message.content.strip() ~ ' ' ~ eos_token }}{%- endif -%}{%- endfor -%}",
    "headers": "{{- bos_token }}\n{%- set ns = namespace(count=0) %}\n{%- for message in messages %}\n    {%- set ns.count = ns.count + 1 %}\n    {{- '<|header|>' ~ message.role ~ '<|end|>\\n\\n' ~ (message.content | trim) ~ '<|eot|>' }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|header|>assistant<|end|>\\n\\n' }}\n{%- endif %}\n{{- ns.count }}",
    "json": "{% for message in messages %}{{ message | tojson }}\n{% endfor %}{{ messages | tojson(indent=2) }}",
    "macro": "{% macro turn(role, text) %}<{{ role | upper }}>{{ text }}</{{ role | upper }}>{% endmacro %}{% for message in messages if message.role not in ['system'] %}{{ turn(message.role, message['content']) }}{% if not loop.last %}\n{% else %}{{ eos_token }}{% endif %}{% endfor %}",
    "methods": "{% for m in messages %}{% set parts = m.content.split(' ') %}{{ loop.index }}/{{ messages | length }} {{ m.role.title() }}: {{ parts | length }} {{ parts[-1] }} {{ m.content.startswith('A') }} {{ m.content.replace('a', 'b') }} {{ m.content.lstrip().rstrip('.!') }}\n{% endfor %}",
    "blocks": "{# a comment #}\n{% for message in messages %}\n  {% if message.role == 'user' %}\n  User: {{ message.content }}\n  {% elif message.role == 'assistant' %}\n  Answer: {{ message.content }}\n  {% else %}\n  {{ message.content | default('none') }}\n  {% endif %}\n  {% if loop.index > 3 %}{% break %}{% endif %}\n{% endfor %}\nEnd",
}


def jinja(template, bos, eos, messages):
    def fail(text):
        raise jinja2.exceptions.TemplateError(text)

    def tojson(value, indent=None):
        return json.dumps(value, ensure_ascii=False, indent=indent)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = fail
    try:
        return environment.from_string(template).render(messages=messages, add_generation_prompt=True, bos_token=bos, eos_token=eos)
    except jinja2.exceptions.TemplateError as error:
        return {"error": str(error)}


def conversations(rng):
    for _ in range(200):
        messages = [{"role": "system", "content": rng.choice(["Be brief.", "  Blanks around.  ", "\u00c9t\u00e9 \u2603"])}] if rng.random() < 0.5 else []
        for turn in range(rng.randint(1, 6)):
            words = " ".join(rng.choices(WORDS + ["A\nnew line", "<b>&amp;</b>", "\"quoted\"", "{{ braces }}", "\U0001f600"], k=rng.randint(1, 9)))
            role = ["user", "assistant"][turn % 2] if rng.random() < 0.95 else "user"
            messages.append({"role": role, "content": rng.choice(["", " ", "A "]) + words + rng.choice(["", ".", "!\n", " "])})
        yield messages


def main():
    model, rng = sys.argv[1], random.Random(1)
    about = metadata(model)
    made = tokeniser(about)
    questions, expected, kinds = [], [], []

    def ask(kind, question, answer):
        questions.append(json.dumps(question))
        expected.append(answer)
        kinds.append(kind)

    special = {id for id, kind in enumerate(about["tokenizer.ggml.token_type"]) if kind == 3}
    made_plain = Tokenizer.from_str(made.to_str())
    made_plain.encode_special_tokens = True
    for text in texts(rng):
        ask("tokens", {"text": text}, made_plain.encode(text, add_special_tokens=False).ids)
    for _ in range(2000):
        ids = [rng.randrange(made.get_vocab_size()) for _ in range(rng.randint(1, 12))]
        ask("texts", {"ids": ids}, made.decode(ids, skip_special_tokens=False))
    own = about["tokenizer.chat_template"]
    tokens = about["tokenizer.ggml.tokens"]
    bos, eos = tokens[about["tokenizer.ggml.bos_token_id"]], tokens[about["tokenizer.ggml.eos_token_id"]]
    for messages in conversations(rng):
        ask("conversations", {"messages": messages}, jinja(own, bos, eos, messages))
        for name, template in TEMPLATES.items():
            ask(name, {"messages": messages, "template": template, "bos": "<s>", "eos": "</s>"}, jinja(template, "<s>", "</s>", messages))
    command = ["cargo", "run", "--quiet", "--release", "--locked", "--example", "answers", "--", str(pathlib.Path(model).resolve())]
    answers = subprocess.run(command, cwd=ROOT / "language", input="\n".join(questions), capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in answers.stdout.splitlines()]
    assert len(found) == len(expected), (len(found), len(expected))
    wrong = 0
    for kind, question, ours, theirs in zip(kinds, questions, found, expected):
        failed = isinstance(theirs, dict)
        if (failed and not (isinstance(ours, dict) and theirs["error"] in ours["error"])) or (not failed and ours != theirs):
            wrong += 1
            if wrong <= 5:
                print(f"{kind}: {question[:300]}\n  expected {theirs!r:.300}\n  got      {ours!r:.300}")
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    print(f"{len(expected)} compared, {wrong} differ: {counts}, {len(special)} special tokens")
    sys.exit(wrong > 0)


main()
