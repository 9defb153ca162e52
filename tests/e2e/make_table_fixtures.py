#!/usr/bin/env python3
"""Writes tests/e2e/fixtures/tables.json: random tables that pandas writes in many dialects, and the values that it reads.

    pip install pandas numpy (3.1 and 2.4 made the committed file)
    tests/e2e/make_table_fixtures.py

A case has "spec", the data source options for the dialect; "bytes", the file, with one character from U+0000 to U+00FF for
each byte; "inputs", rows of float32; "targets"; "classes"; and "columns", the names of those that are inputs.

A column of numbers is one input; missing numbers are filled with the mean. A column of words has one input for each word, in the
order of their UTF-8 bytes. A column of dates has year, month, weekday, hour and days since 2000-01-01.
"""
import csv
import io
import json
import pathlib

import numpy as np
import pandas as pd

WORDS = {"utf-8": ["naïve", "Zürich", "a;b", "c,d", 'the "best"', "tab\there", "two\nlines", "plain", "x|y", "日本", "# hash"],
         "latin1": ["naïve", "Zürich", "a;b", "c,d", 'the "best"', "Orléans", "plain"],
         "cp1252": ["naïve", "Zürich", "“quoted”", "10€".replace("10", "zehn"), "Orléans", "plain"],
         "ascii": ["red", "green", "blue", "dark red"]}


def frame(rng, rows, words, labels):
    out = pd.DataFrame({
        "Width": np.round(rng.normal(0, 100, rows), 3),
        "count": rng.integers(-5, 2000, rows),
        "word": rng.choice(words, rows),
        "share": np.round(rng.random(rows), 4),
    })
    out.loc[rng.choice(rows, 2, replace=False), "share"] = np.nan
    out.loc[rng.choice(np.arange(1, rows), 1), "Width"] = np.nan
    out["label"] = rng.choice(labels, rows)
    return out


def sorted_classes(labels):
    numbers = all(isinstance(label, (int, np.integer)) for label in labels)
    found = sorted(set(labels)) if numbers else sorted(set(labels), key=lambda label: str(label).encode())
    return found


def expected(table, names):
    """The inputs of a table that pandas read."""
    columns = []
    for name in names:
        values = table[name]
        if pd.api.types.is_datetime64_any_dtype(values):
            days = (values - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1)
            columns += [values.dt.year, values.dt.month, values.dt.day_of_week, values.dt.hour, days]
        elif pd.api.types.is_numeric_dtype(values):
            columns.append(values.astype("float32").astype("float64").fillna(values.astype("float32").astype("float64").mean()))
        else:
            for word in sorted(set(values.dropna()), key=lambda text: text.encode()):
                columns.append((values == word).astype(float))
    return np.stack([np.asarray(column, "float32") for column in columns], 1)


def case(rng, name, *, separator=",", decimal=".", encoding="utf-8", header="names", end="\n", index=False, quoting=csv.QUOTE_MINIMAL,
         missing="", labels=("no", "yes"), words=None, double_names=False, dates=False, spec="", rows=12, read_encoding=None, only_words=False,
         missing_labels=False, zone=None):
    table = frame(rng, rows, words or WORDS[encoding if encoding in WORDS else "utf-8"], list(labels))
    if only_words:
        table = pd.DataFrame({name: rng.choice(WORDS["ascii"], rows) for name in ("a", "b")} | {"label": table["label"]})
    if missing_labels:
        table["label"] = table["label"].astype(object)
        table.loc[rng.choice(rows, 3, replace=False), "label"] = None
    if dates:
        table.insert(0, "when", pd.to_datetime("2023-01-15 06:30") + pd.to_timedelta(rng.integers(0, 400 * 24, rows), "h"))
        if zone:
            table["when"] = table["when"].dt.tz_localize("UTC").dt.tz_convert(zone)
    if header == "all numbers":
        table.columns = range(len(table.columns))
    if header == "numbers":
        table.columns = [*range(len(table.columns) - 1), "label"]
    if double_names:
        table.columns = ["a", "a", "a", "share", "label"]
    text = table.to_csv(sep=separator, decimal=decimal, header=header != "none", index=index, quoting=quoting, na_rep=missing,
                        lineterminator=end)
    data = text.encode(encoding)
    read = pd.read_csv(io.BytesIO(data), sep=separator, decimal=decimal, encoding=read_encoding or encoding,
                       header=None if header == "none" else 0, parse_dates=["when"] if dates else None, keep_default_na=True)
    if zone:
        read["when"] = pd.to_datetime(read["when"], utc=True).dt.tz_localize(None)
    last = read.columns[-1]
    read = read.rename(columns={last: "label"}).dropna(subset=["label"])
    if pd.api.types.is_float_dtype(read["label"]):  # integers and missing numbers
        read["label"] = read["label"].astype(int)
    if header == "none":
        read.columns = [str(k) for k in range(len(read.columns) - 1)] + ["label"]
    names = [column for column in read.columns if column != "label"]
    classes = sorted_classes(list(read["label"]))
    return {"name": name, "spec": spec, "bytes": data.decode("latin1"), "columns": [] if header == "none" else [str(c) for c in names],
            "inputs": [[float(x) for x in row] for row in expected(read, names)],
            "targets": [classes.index(label) for label in read["label"]], "classes": [str(label) for label in classes]}


DIALECTS = {
    "plain": {},
    "semicolons": {"separator": ";"},
    "tabs": {"separator": "\t"},
    "pipes": {"separator": "|"},
    "spaces": {"separator": " ", "missing": "NA", "words": ["red", "green", "dark red"]},
    "decimal commas": {"separator": ";", "decimal": ",", "spec": "decimal=,"},
    "decimal commas and tabs": {"separator": "\t", "decimal": ",", "spec": "decimal=,"},
    "decimal commas in quotes": {"decimal": ",", "spec": "decimal=,,separator=comma", "quoting": csv.QUOTE_ALL},
    "all quoted": {"quoting": csv.QUOTE_ALL},
    "words quoted": {"quoting": csv.QUOTE_NONNUMERIC, "separator": ";"},
    "byte order mark": {"encoding": "utf-8-sig"},
    "Latin-1": {"encoding": "latin1", "spec": "encoding=latin1"},
    "Windows-1252": {"encoding": "cp1252", "separator": ";", "spec": "encoding=cp1252"},
    "UTF-16": {"encoding": "utf-16", "separator": "\t"},
    "CRLF": {"end": "\r\n"},
    "CR": {"end": "\r", "words": WORDS["ascii"]},
    "index": {"index": True},
    "names of numbers": {"header": "numbers"},
    "names of numbers and index": {"header": "numbers", "index": True, "separator": ";"},
    "no header": {"header": "none", "words": WORDS["ascii"]},
    "NA": {"missing": "NA"},
    "NaN": {"missing": "NaN", "separator": "\t"},
    "null": {"missing": "null", "quoting": csv.QUOTE_ALL},
    "<NA>": {"missing": "<NA>", "separator": "|"},
    "labels from 1": {"labels": [1, 2, 3]},
    "labels 10, 20, 30": {"labels": [10, 20, 30], "separator": ";"},
    "labels -1 and 1": {"labels": [-1, 1]},
    "double names": {"double_names": True},
    "dates": {"dates": True, "spec": "date=when"},
    "dates between semicolons": {"dates": True, "separator": ";", "decimal": ",", "spec": "decimal=,,date=when"},
    "dates with a zone": {"dates": True, "zone": "Asia/Kolkata", "spec": "date=when"},
    "dates with summer time": {"dates": True, "zone": "Europe/Berlin", "separator": ";", "spec": "date=when"},
    "UTF-16, little-endian without a mark": {"encoding": "utf-16-le", "spec": "encoding=utf-16"},
    "UTF-16, big-endian without a mark": {"encoding": "utf-16-be", "separator": ";", "spec": "encoding=utf-16"},
    "UTF-16, named": {"encoding": "utf-16-be", "spec": "encoding=utf-16-be", "end": "\r\n"},
    "numbers above words": {"header": "all numbers", "only_words": True},
    "numbers above words and index": {"header": "all numbers", "only_words": True, "index": True, "separator": "\t"},
    "numbers above numbers": {"header": "all numbers", "separator": ";"},
    "missing labels": {"missing_labels": True},
    "missing labels as NA": {"missing_labels": True, "missing": "NA", "separator": ";", "labels": [1, 2, 3]},
    "labels of truth": {"labels": [False, True]},
}


def main():
    rng = np.random.default_rng(38)
    cases = [case(rng, f"{name} {k}", **how) for name, how in DIALECTS.items() for k in range(2)]
    path = pathlib.Path(__file__).parent / "fixtures" / "tables.json"
    path.write_text("[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n")
    print(f"{len(cases)} tables, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
