"""Tables as other programs write them: training, eval and predict read them alike, and assumptions are reported."""
import random
import unittest

from command import CommandTest


class Tables(CommandTest):
    def write(self, name, text, encoding="utf-8"):
        (self.folder / name).write_bytes(text.encode(encoding))

    def accuracy(self, *words):
        return self.json("eval", *words, "--json")["accuracy"]

    def test_one_table_in_every_format(self):
        """With any header, separator, byte order mark and line end: 40 rows of two numbers and two classes."""
        rows = [f"{k},{k * 3 % 7},{'xy'[k % 2]}" for k in range(40)]
        plain = "\n".join(["a,b,label", *rows, ""])
        numbered = "\n".join(["0,1,label", *rows, ""])
        texts = {"plain": plain, "numbers above numbers": numbered, "no header": "\n".join([*rows, ""]), "mark": "\ufeff" + plain,
                 "sep": "sep=;\n" + plain.replace(",", ";"), "bars": plain.replace(",", "|"), "tabs": plain.replace(",", "\t"),
                 "spaces": plain.replace(",", " "), "carriage returns": plain.replace("\n", "\r"), "a comment with a comma": "# a, b\n" + plain.replace(",", ";")}
        for name, text in texts.items():
            self.write("dress.csv", text)
            self.assertEqual(self.samples("csv:dress.csv"), [20, 20], name)
            self.assertEqual(self.json("data", "info", "csv:dress.csv", "--json")["train"]["input"], [2], name)
        self.write("utf16.csv", plain, "utf-16")
        self.assertEqual(self.json("data", "info", "csv:utf16.csv", "--json")["train"]["input"], [2])
        self.fails(3, "data", "info", "csv:dress.csv,header=no", says="is not a finite number")

    def test_words_that_training_has_not_seen_are_counted(self):
        towns = ["paris", "lyon", "nice"]
        text = "town,n,label\n" + "".join(f"{towns[k % 3]},{k % 5},{k % 2}\n" for k in range(60))
        self.write("towns.csv", text)
        self.ok("train", "mlp:4-4-2", "--data", "csv:towns.csv", "--epochs", "1", "--quiet", "--out", "towns")
        self.write("others.csv", text.replace("paris", "berlin"))
        says = "others.csv, line 2: column 'town': 20 fields contain words that training has not seen, such as 'berlin'"
        for words in (["eval", "towns", "--data", "csv:others.csv"], ["predict", "towns", "others.csv"]):
            self.assertIn(says, " ".join(self.ok(*words).err.split()), words)
            self.fails(3, *words, "--strict", says=["has not seen", "refused because 'strict' is on"])
        self.write("others.tab", text)
        self.fails(3, "predict", "towns", "others.tab", says="csv:FILE")
        self.ok("predict", "towns", "csv:others.tab")

    def test_two_columns_of_one_name_stay_two(self):
        draw = random.Random(5)
        rows = "".join(f"{a:.3f},{b:.3f},{int(b > 0.5)}\n" for a, b in ((draw.random(), draw.random()) for _ in range(400)))
        for k, header in enumerate(["a,a", "x,X", "x, x"]):
            self.write("two.csv", f"{header},label\n{rows}")
            self.ok("train", "mlp:2-8-2", "--data", "csv:two.csv", "--epochs", "20", "--lr", "0.1", "--quiet", "--out", f"two{k}")
            self.assertGreater(self.accuracy(f"two{k}", "--data", "csv:two.csv"), 0.95, header)

    def test_other_files_are_read_as_the_training_data_was(self):
        draw = random.Random(2)
        rows = [(draw.choice(["Orléans", "Orlèans", "Lyon"]), draw.randrange(5)) for _ in range(300)]
        text = "".join(f"{town};{n},5;{'thé' if town == 'Orlèans' else 'café'}\n" for town, n in rows)
        self.write("latin.csv", "town;n;label\n" + text, "latin-1")
        told = self.fails(3, "train", "mlp:4-8-2", "--data", "csv:latin.csv", "--out", "none", says="is not UTF-8")
        self.assertIn("encoding=", told.err)
        spec = "csv:latin.csv,encoding=latin1,decimal=,"
        self.ok("train", "mlp:4-8-2", "--data", spec, "--epochs", "10", "--lr", "0.2", "--quiet", "--out", "latin")
        self.assertGreater(self.accuracy("latin", "--data", spec), 0.99)
        self.assertGreater(self.accuracy("latin", "--data", "csv:latin.csv"), 0.99)
        self.write("new.csv", "n;town\n2,5;Orlèans\n1,5;Lyon\n")
        self.ok("predict", "latin", "new.csv", "--write")
        lines = (self.folder / "new.predictions.csv").read_text().splitlines()
        self.assertEqual([line.split(";")[2] for line in lines[1:]], ["thé", "café"])

    def test_dates_are_kept_with_the_model(self):
        self.write("dates.csv", "when,label\n" + "".join(f"{1 + k % 28}/{1 + k % 12}/2024,{'late' if k % 12 > 5 else 'early'}\n" for k in range(240)))
        self.ok("train", "mlp:5-8-2", "--data", "csv:dates.csv,date=when", "--epochs", "20", "--lr", "0.2", "--quiet", "--out", "dates")
        self.write("some.csv", "when\n2/11/2024\n3/1/2024\n")
        self.ok("predict", "dates", "some.csv", "--write")
        lines = (self.folder / "some.predictions.csv").read_text().splitlines()
        self.assertEqual([line.split(",")[1] for line in lines[1:]], ["late", "early"])

    def test_labels_are_names(self):
        self.write("one.csv", "a,label\n" + "".join(f"{k % 2},{1 + k % 2}\n" for k in range(200)))
        self.ok("train", "mlp:1-8-2", "--data", "csv:one.csv", "--epochs", "10", "--lr", "0.2", "--quiet", "--out", "one")
        self.write("twos.csv", "a,label\n1,2\n1,2\n")
        self.assertEqual(self.accuracy("one", "--data", "csv:twos.csv"), 1)

    def test_assumptions_are_reported_and_refused_by_strict(self):
        self.write("notes.csv", "# made by hand\n,b,label\n" + "".join(f"{k},{'' if k == 7 else k % 5},{k % 2}\n" for k in range(40)))
        told = self.ok("data", "info", "csv:notes.csv").out
        for words in ("begins with '#' was skipped", "Unnamed: 0", "1 missing field of the test part is filled"):
            self.assertIn(words, " ".join(told.split()))
        self.fails(3, "data", "info", "csv:notes.csv", "--strict", says="refused")
        self.write("plain.csv", "a,label\n" + "".join(f"{k},{k % 2}\n" for k in range(40)))
        self.ok("data", "info", "csv:plain.csv", "--strict")

    def test_the_label_column_is_reported(self):
        self.write("middle.csv", "a,species,b\n" + "".join(f"{k},{'xy'[k % 2]},{k % 3}\n" for k in range(40)))
        told = self.ok("train", "mlp:2-8-2", "--data", "csv:middle.csv,label=species", "--epochs", "1", "--out", "middle").out
        self.assertIn("label: column 'species' (number 1, counted from 0)", told)
        self.assertIn("label: column 'b' (number 2", self.ok("data", "info", "csv:middle.csv").out)
        # Without a header the printed column numbers are those that options accept.
        self.write("bare.csv", "".join(f"{'xy'[k % 2]},{k}.5,{k % 3}.5\n" for k in range(40)))
        told = self.ok("data", "info", "csv:bare.csv,label=0").out
        self.assertIn("label: column 0 (counted from 0)", told)
        self.assertIn("columns 1; 2", told)
        self.ok("train", "mlp:2-8-2", "--data", "csv:bare.csv,label=0", "--epochs", "1", "--quiet", "--out", "bare")
        self.assertEqual(self.json("eval", "bare", "--data", "csv:bare.csv", "--json")["items"], 4)

    def test_only_predictions_include_rows_without_a_label(self):
        self.write("some.csv", "a,label\n" + "".join(f"{k % 2},{['', 'NA', 'x', 'y'][min(k, 2 + k % 2)]}\n" for k in range(80)))
        told = self.ok("train", "mlp:1-8-2", "--data", "csv:some.csv", "--epochs", "20", "--lr", "0.2", "--out", "some").out
        self.assertIn("2 rows have no label", " ".join(told.split()))
        self.fails(3, "data", "info", "csv:some.csv", "--strict", says="no label")
        self.assertEqual(self.json("eval", "some", "--data", "csv:some.csv", "--json")["items"], 8)
        rows = self.json("predict", "some", "some.csv", "--json")
        self.assertEqual([len(rows), "label" in rows[0], "label" in rows[1], rows[2]["label_name"]], [80, False, False, "x"])
        self.ok("predict", "some", "some.csv", "--write")
        self.assertEqual(len((self.folder / "some.predictions.csv").read_text().splitlines()), 81)
        # A missing price does not turn prices into classes.
        self.write("prices.csv", "a,price\n" + "".join(f"{k},{'NA' if k == 3 else 1000 + 17 * k}\n" for k in range(80)))
        self.fails(3, "data", "info", "csv:prices.csv", says="--task regression")
        self.ok("train", "mlp:1-8-1", "--data", "csv:prices.csv", "--task", "regression", "--epochs", "2", "--quiet", "--out", "prices")
        rows = self.json("predict", "prices", "prices.csv", "--json")
        self.assertEqual([len(rows), "target" in rows[3], rows[4]["target"]], [80, False, [1068]])

    def test_what_reads_a_column_is_named(self):
        for field, words in [("1,5", "decimal=comma"), ("2024-01-05", "date=a"), ("A17", "category=a"), ("inf", "not a finite number")]:
            self.write("odd.csv", "a;label\n" + "".join(f"{field};{k % 2}\n" for k in range(20)))
            self.fails(3, "data", "info", "csv:odd.csv", says=words)
        self.ok("data", "info", "csv:odd.csv,category=a")


if __name__ == "__main__":
    unittest.main()
