#!/usr/bin/env python3
"""Writes fixtures/spans.json: results of Hugging Face's tokenizers for pairs of texts and for answers in texts: python3 make_span_fixtures.py

    pip install tokenizers            (0.23 made the committed file)

tokenizers/bert.json tokenizes lines of tokenizers/corpus.txt. "pairs": [first, second, length, numbers, types], cut by "longest_first".
"spans": SQuAD's form, with "length" and "stride"; "rows": [question, numbers, types, first token, last token] of each window, as
transformers' run_qa.py computes them ("only_second", positions by offsets; 0 and 0 if the window does not contain the answer).
"""
import json
import pathlib
import random
import re

import tokenizers

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"


def reader(length, stride, strategy):
    tokenizer = tokenizers.Tokenizer.from_file(str(FIXTURES / "tokenizers" / "bert.json"))
    tokenizer.enable_truncation(length, stride=stride, strategy=strategy)
    return tokenizer


def rows_of(tokenizer, question, context, answer, start):
    first = tokenizer.encode(question, context)
    for row in [first, *first.overflowing]:
        places = [k for k, s in enumerate(row.sequence_ids) if s == 1]
        begin = end = 0
        if answer and places and row.offsets[places[0]][0] <= start and row.offsets[places[-1]][1] >= start + len(answer):
            begin = max(k for k in places if row.offsets[k][0] <= start)
            end = min(k for k in places if row.offsets[k][1] >= start + len(answer))
        yield row.ids, row.type_ids, begin, end


def main():
    draw = random.Random(7)
    lines = (FIXTURES / "tokenizers" / "corpus.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if 10 < len(line) < 150][:24]
    pairs = []
    for length in (5, 8, 16, 33, 64, 128):
        tokenizer = reader(length, 0, "longest_first")
        for _ in range(12):
            a, b = draw.choice(lines), draw.choice(lines)
            a, b = a[:draw.randint(1, len(a))], b[:draw.randint(1, len(b))]
            if not tokenizer.encode(a).ids or not tokenizer.encode(b).ids:
                continue
            row = tokenizer.encode(a, b)
            pairs.append([a, b, length, row.ids, row.type_ids])
    spans, length, stride = [], 48, 12
    tokenizer = reader(length, stride, "only_second")
    for k in range(16):
        context = " ".join(draw.sample(lines, 3))
        words = [m for m in re.finditer(r"\S+", context) if m.group().isalnum() and m.group().isascii()]
        question = " ".join(draw.choice(lines).split()[:3])
        answer, start = "", -1
        if k % 5 and words:
            at = draw.randrange(len(words))
            start, answer = words[at].start(), context[words[at].start():words[min(at + draw.randint(0, 1), len(words) - 1)].end()]
        if len(answer) > 60 or len(tokenizer.encode(question).ids) > 20:
            continue
        spans.append({"question": question, "context": context, "answer": answer, "start": start,
                      "rows": [list(row) for row in rows_of(tokenizer, question, context, answer, start)]})
    data = {"data": [{"paragraphs": [{"context": s["context"], "qas": [
        {"id": str(k), "question": s["question"], "answers": [{"text": s["answer"], "answer_start": s["start"]}] if s["answer"] else []}]}
        for k, s in enumerate(spans)]}]}
    rows = [[k, *row] for k, s in enumerate(spans) for row in s["rows"]]
    out = {"pairs": pairs, "spans": data, "length": length, "stride": stride, "rows": rows}
    text = ",\n".join(f'{json.dumps(key)}: {json.dumps(value, separators=(",", ":"))}' for key, value in out.items())
    (FIXTURES / "spans.json").write_text("{" + text + "}\n", encoding="utf-8")
    print(len(pairs), "pairs,", len(spans), "questions,", len(rows), "rows,", sum(r[3] > 0 for r in rows), "with their answer")


main()
