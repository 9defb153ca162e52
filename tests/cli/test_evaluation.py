"""What eval and predict measure and print: which part of which data, every row of a file, names of files and rows."""
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from command import CommandTest, table, write_idx, write_npy, write_png  # noqa: E402

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "e2e" / "fixtures" / "tokenizers"


class Tables(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, text in {"rows.csv": table(200, 1), "others.csv": table(50, 2), "bare.csv": table(13, 3, "a,b\n", label=False),
                           "plain.csv": table(9, 4, "", label=False), "told.csv": table(8, 5, "")}.items():
            (cls.folder / name).write_text(text)
        cls().ok("train", "mlp:2-8-2", "--data", "csv:rows.csv,split=0.25", "--epochs", "10", "--lr", "0.2", "--quiet", "--out", "run")

    def runTest(self):
        pass

    def test_own_data_is_measured_by_the_runs_own_test_part(self):
        own = self.json("eval", "run", "--json")
        self.assertEqual((own["part"], own["items"], own["of_items"]), ("test", 50, 200))
        self.assertIn("test part of csv:rows.csv,split=0.25: 50 of 200 samples", self.ok("eval", "run").out)
        (self.folder / "link.csv").symlink_to(self.folder / "rows.csv")
        for given in ("csv:rows.csv", "csv:./rows.csv", f"csv:{self.folder}/rows.csv,split=0.5", "csv:link.csv"):
            result = self.ok("eval", "run", "--data", given, "--json")
            same = json.loads(result.out)
            self.assertEqual((same["items"], same["accuracy"], same["loss"]), (50, own["accuracy"], own["loss"]), given)
            self.assertIn("is the data that the run was trained on", result.err)

    def test_other_files_are_measured_whole(self):
        figures = self.json("eval", "run", "--data", "csv:others.csv", "--json")
        self.assertEqual((figures["part"], figures["items"], figures["of_items"]), ("all", 50, 50))
        self.assertIn("all of csv:others.csv: 50 samples", self.ok("eval", "run", "--data", "csv:others.csv").out)
        self.assertLess(self.json("eval", "run", "--data", "csv:others.csv", "--part", "test", "--json")["items"], 20)
        self.assertEqual(self.json("eval", "run", "--part", "all", "--json")["items"], 200)
        self.fails(2, "eval", "run", "--part", "tset", says="--part")

    def test_labels_that_are_not_read_are_said(self):
        (self.folder / "new.csv").write_text("a,b,label\n0.1,0.2,yes\n0.2,0.1,perhaps\n")
        said = self.ok("predict", "run", "new.csv", "--count", "1").err
        self.assertIn("new.csv, line 3: column 'label': 1 row has a label that is not one of the 2 known classes, such as 'perhaps': no label", said)
        rows = self.json("predict", "run", "new.csv", "--json")
        self.assertEqual([row.get("label_name") for row in rows], ["yes", None])
        self.fails(3, "predict", "run", "new.csv", "--strict", says="'perhaps'")
        # A column of other labels contains none of the model's.
        (self.folder / "newer.csv").write_text("a,b,label\n0.1,0.2,yes\n0.2,0.1,perhaps\n0.3,0.1,never\n")
        said = " ".join(self.ok("predict", "run", "newer.csv", "--count", "1").err.split())
        self.assertIn("labels are not read", said)
        self.assertIn("line 3, column 'label': the label 'perhaps' is not one of the 2 known classes, in 2 of 3 rows", said)
        self.fails(3, "predict", "run", "newer.csv", "--strict", says="labels are not read")
        self.fails(3, "eval", "run", "--data", "csv:newer.csv", says=["line 3, column 'label'", "in 2 of 3 rows"])

    def test_seen_samples_are_accepted_when_asked_for(self):
        (self.folder / "again.csv").write_text((self.folder / "rows.csv").read_text())
        for words in (("eval", "run", "--data", "csv:again.csv"), ("predict", "run", "again.csv"), ("predict", "run", "again.csv", "--write")):
            self.fails(3, *words, "--strict", says=["training has seen", "to accept it, allow 'seen'"])
            self.assertIn("training has seen", self.ok(*words, "--strict", "--allow", "seen").err, words)
        self.fails(2, "eval", "run", "--allow", "everything", says="--allow")

    def test_a_test_file_with_training_samples_is_said_and_refused_by_train(self):
        (self.folder / "kept.csv").write_text(table(60, 21))
        rows = (self.folder / "kept.csv").read_text().splitlines(keepends=True)
        (self.folder / "mixed.csv").write_text("".join(rows[:11]) + table(10, 22, ""))
        train = ("train", "mlp:2-4-2", "--data", "csv:kept.csv,validation=0,test=mixed.csv", "--epochs", "1", "--out")
        told = self.ok(*train, "mixed")
        self.assertIn("training has seen 10 of 20 samples of the test part", told.out)
        self.assertIn("note: csv:kept.csv,validation=0,test=mixed.csv: training has seen 10 of 20 samples", " ".join((told.out + told.err).split()))
        self.fails(3, *train, "strict", "--strict", says="training has seen 10 of 20 samples of the test part")
        self.assertFalse((self.folder / "strict").exists())
        self.ok(*train, "allowed", "--strict", "--allow", "seen")
        self.fails(2, *train, "other", "--allow", "all", says="seen")
        # Equal rows of one file may be in two parts.
        (self.folder / "twice.csv").write_text("".join(rows + rows[1:]))
        self.ok("train", "mlp:2-4-2", "--data", "csv:twice.csv", "--epochs", "1", "--strict", "--out", "twice")

    def test_a_test_file_that_changed_since_is_said(self):
        (self.folder / "own.csv").write_text(table(60, 31))
        (self.folder / "own_test.csv").write_text(table(20, 32))
        self.ok("train", "mlp:2-4-2", "--data", "csv:own.csv,test=own_test.csv", "--epochs", "1", "--quiet", "--out", "own")
        self.assertNotIn("has changed", self.ok("eval", "own").err)
        (self.folder / "own_test.csv").write_text(table(20, 33))
        self.assertIn("the test part has changed since the run began", " ".join(self.ok("eval", "own").err.split()))
        self.fails(3, "eval", "own", "--strict", says="the test part has changed")
        resumed = self.ok("train", "--resume", "own", "--epochs", "2")
        self.assertIn("the test part has changed since the run began", " ".join((resumed.out + resumed.err).split()))
        self.fails(3, "train", "--resume", "own", "--epochs", "3", "--strict", says="the test part has changed")
        (self.folder / "own_test.csv").write_text(table(20, 32))
        self.assertNotIn("has changed", self.ok("eval", "own").err)

    def test_a_model_within_its_run_knows_what_was_trained_on(self):
        own = self.json("eval", "run", "--json")
        alone = self.json("eval", "run/model.safetensors", "--data", "csv:rows.csv", "--json")
        self.assertEqual((alone["part"], alone["items"], alone["accuracy"]), ("test", 50, own["accuracy"]))

    def test_data_that_changed_since_is_said(self):
        rows = (self.folder / "rows.csv").read_text()
        self.assertNotIn("has changed", self.ok("eval", "run").err)
        head, *others = rows.splitlines(keepends=True)
        (self.folder / "rows.csv").write_text(head + "".join(sorted(others)))
        try:
            self.assertIn("the data has changed since the run was trained on it", self.ok("eval", "run").err)
            self.fails(3, "eval", "run", "--strict", says="the data has changed")
            self.fails(2, "train", "--resume", "run", "--epochs", "11", says="other training samples")
        finally:
            (self.folder / "rows.csv").write_text(rows)

    def test_another_column_is_not_taken_for_the_labels(self):
        (self.folder / "flag.csv").write_text("a,b,flag\n0.1,0.2,yes\n0.2,0.1,no\n")
        self.fails(3, "eval", "run", "--data", "csv:flag.csv", says="has no column 'label'")
        self.assertEqual(self.json("eval", "run", "--data", "csv:flag.csv,label=flag", "--json")["items"], 2)
        self.assertTrue(all("label" not in row for row in self.json("predict", "run", "flag.csv", "--json")))

    def test_figures(self):
        figures = self.json("eval", "run", "--json")
        for name in ("balanced_accuracy", "matthews", "roc_auc", "average_precision", "log_loss", "weighted_f1"):
            self.assertGreater(figures[name], 0, name)
        self.assertEqual(figures["top5_accuracy"], 1)
        text = self.ok("eval", "run").out
        self.assertNotIn("top-3", text, "two classes have none")
        for word in ("balanced acc.", "Matthews", "ROC AUC"):
            self.assertIn(word, text)
        self.ok("eval", "run", "--confusion", "matrix.csv")
        lines = (self.folder / "matrix.csv").read_text().splitlines()
        self.assertEqual(lines[0], r"true \ predicted,no,yes")
        self.assertEqual(sum(int(n) for line in lines[1:] for n in line.split(",")[1:]), 50)

    def test_predict_has_every_row(self):
        for file, rows, labelled in (("others.csv", 50, True), ("bare.csv", 13, False), ("plain.csv", 9, False), ("told.csv", 8, True)):
            told = self.json("predict", "run", file, "--json")
            self.assertEqual(len(told), rows, file)
            self.assertEqual(len({row["name"] for row in told}), rows)
            self.assertTrue(all(file in row["name"] for row in told), told[0])
            self.assertEqual(["label" in row for row in told], [labelled] * rows, file)
            self.assertEqual(len(self.json("predict", "run", file, "--count", "2", "--json")), rows)
            out = self.ok("predict", "run", file, "--count", "2").out
            self.assertEqual(out.count("class "), 2)
            self.assertIn(f"{rows - 2} of {rows} samples of {file} are not shown", out)
            for ending in "csv", "txt", "json":
                self.ok("predict", "run", file, "--out", f"all.{ending}", "--count", "1")
            self.assertEqual(len((self.folder / "all.csv").read_text().splitlines()), rows + 1)
            self.assertEqual([line.split("\t")[1] for line in (self.folder / "all.txt").read_text().splitlines()[1:]],
                             [row["class_name"] for row in told])
            self.assertEqual(json.loads((self.folder / "all.json").read_text()), told)
            self.ok("predict", "run", file, "--write")
            written = (self.folder / file.replace(".csv", ".predictions.csv")).read_text().splitlines()
            self.assertEqual(len(written), rows + (not file.startswith(("plain", "told"))))
            self.assertEqual([line.split(",")[-2] for line in written[-rows:]], [row["class_name"] for row in told])
        self.fails(2, "predict", "run", "bare.csv", "--out", "all.xml", says=["--out", ".csv, .txt and .json"])

    def test_predict_reads_files_as_sources_do(self):
        rows = [line.split(",") for line in table(12, 6).splitlines()]
        (self.folder / "dress.csv").write_bytes(("% sensor 3\n" + "\n".join(f"{a.replace('.', ',')};{b.replace('.', ',')};{c}" for a, b, c in rows) + "\n").encode("utf-16"))
        (self.folder / "plainly.csv").write_text("\n".join(",".join(row) for row in rows) + "\n")
        source = "csv:dress.csv,encoding=utf-16,separator=;,comment=%,decimal=,"
        plain, told = self.json("predict", "run", "plainly.csv", "--json"), self.json("predict", "run", source, "--json")
        self.assertEqual([(row["class"], row["label"]) for row in told], [(row["class"], row["label"]) for row in plain])
        self.assertEqual(self.json("eval", "run", "--data", source, "--json")["loss"], self.json("eval", "run", "--data", "csv:plainly.csv", "--json")["loss"])
        self.ok("predict", "run", source, "--write")
        self.assertEqual(len((self.folder / "dress.predictions.csv").read_text().splitlines()), 13)
        self.fails(2, "predict", "run", "csv:plainly.csv,label=kind", says="no column 'kind'")
        self.fails(2, "predict", "run", "csv:plainly.csv,colour=red", says="separator=CHAR")
        out = self.ok("predict", "run", "csv:plainly.csv", "--count", "2").out
        self.assertIn("10 of 12 samples of csv:plainly.csv are not shown", out)
        # A run's own way of writing is the default.
        self.ok("train", "mlp:2-8-2", "--data", "csv:dress.csv,encoding=utf-16,separator=;,comment=%,decimal=,,split=0.3", "--epochs", "1", "--quiet", "--out", "dressed")
        (self.folder / "again.csv").write_text("a;b\n% none\n0,25;0,5\n")
        self.assertEqual(len(self.json("predict", "dressed", "again.csv", "--json")), 1)

    def test_figures_that_say_nothing_are_refused_by_strict(self):
        (self.folder / "huge.csv").write_text("a,b,label\n3e38,-3e38,yes\n-3e38,3e38,no\n")
        notes = [note["text"] for note in self.json("eval", "run", "--data", "csv:huge.csv", "--json")["notes"]]
        if notes:  # the network may bound them
            self.assertIn("the outputs of the network are not finite, so the metrics have no meaning", notes)
            self.fails(3, "eval", "run", "--data", "csv:huge.csv", "--strict", says="not finite")

    def test_unknown_words_are_counted_where_they_are_measured(self):
        head, *lines = table(100, 12).splitlines()
        words = {70: "oslo", 85: "rome", 95: "bern", 96: "bern"}  # in the validation part, in the test part
        rows = [f"{words.get(k, 'paris' if k % 2 else 'lyon')},{line.split(',', 1)[1]}" for k, line in enumerate(lines)]
        (self.folder / "towns.csv").write_text("\n".join(["town,b,label"] + rows) + "\n")
        self.ok("train", "mlp:3-4-2", "--data", "csv:towns.csv,split=0.2,validation=0.2,chronological", "--epochs", "1", "--quiet", "--out", "towns")
        found = {}
        for part in "train", "validation", "test", "all":
            notes = self.json("eval", "towns", "--part", part, "--json")["notes"]
            found[part] = [note["text"] for note in notes if "not seen" in note["text"]]
        says = "towns.csv, line {}: column 'town': {} that training has not seen, such as '{}'"
        self.assertEqual(found, {"train": [], "validation": [says.format(72, "1 field of the validation part contains a word", "oslo")],
                                 "test": [says.format(87, "3 fields of the test part contain words", "rome")],
                                 "all": [says.format(72, "4 fields contain words", "oslo")]})

    def test_missing_fields_are_counted_where_they_are_measured(self):
        head, *lines = table(100, 11).splitlines()
        (self.folder / "gaps.csv").write_text("\n".join([head] + ["," + line.split(",", 1)[1] if k % 2 else line for k, line in enumerate(lines)]) + "\n")
        self.ok("train", "mlp:2-8-2", "--data", "csv:gaps.csv,split=0.2", "--epochs", "1", "--quiet", "--out", "gaps")
        counts = {}
        for part in "train", "validation", "test", "all":
            figures = self.json("eval", "gaps", "--part", part, "--json")
            note = [note for note in figures["notes"] if "missing" in note["text"]]
            counts[part] = note[0]["count"]
            self.assertLess(note[0]["count"], figures["items"])
            if part != "all":
                self.assertIn(f"of the {'training' if part == 'train' else part} part", note[0]["text"])
        self.assertEqual(counts["train"] + counts["validation"] + counts["test"], counts["all"])
        self.assertEqual(counts["all"], 50)

    def test_predict_data_says_its_part(self):
        out = self.ok("predict", "run", "--data", "csv:rows.csv", "--count", "3").out
        self.assertTrue(out.startswith("test part of csv:rows.csv,split=0.25: 50 samples\n"), out)
        self.assertIn("of 3 right (3 of 50 samples of the test part of csv:rows.csv,split=0.25)", out)
        self.assertIn("of 5 samples of rows.csv", self.ok("predict", "run", "rows.csv").err)
        self.assertNotIn("training has seen", self.ok("predict", "run", "others.csv").err)
        self.assertIn("47 of 50 samples of the test part of csv:rows.csv,split=0.25 are not shown", out)
        self.assertNotIn("test #", out)
        whole = self.ok("predict", "run", "--data", "csv:rows.csv", "--part", "all", "--count", "3").out
        self.assertIn("of 3 right (3 of 200 samples of all of csv:rows.csv,split=0.25)\n", whole)
        self.assertEqual(len(self.json("predict", "run", "--data", "csv:others.csv", "--json")), 50)
        self.assertEqual(len(self.json("predict", "run", "--data", "csv:others.csv", "--part", "all", "--start", "45", "--json")), 5)


class Arrays(CommandTest):
    def test_npy(self):
        draw = random.Random(3)
        for name, count in (("x", 60), ("new", 17)):
            pairs = [(draw.random(), draw.random()) for _ in range(count)]
            write_npy(self.folder / f"{name}.npy", "<f4", (count, 2), [v for pair in pairs for v in pair], "f")
            write_npy(self.folder / f"{name}_y.npy", "<i8", (count,), [int(a > b) for a, b in pairs], "q")
        self.ok("train", "mlp:2-8-2", "--data", "npy:x.npy,x_y.npy", "--epochs", "5", "--quiet", "--out", "run")
        own = self.json("eval", "run", "--json")
        self.assertEqual((own["part"], own["of_items"]), ("test", 60))
        self.assertEqual(self.json("eval", "run", "--data", "npy:./x.npy,x_y.npy", "--json")["loss"], own["loss"])
        others = self.json("eval", "run", "--data", "npy:new.npy,new_y.npy", "--json")
        self.assertEqual((others["part"], others["items"]), ("all", 17))
        told = self.json("predict", "run", "new.npy", "--json")
        self.assertEqual(len(told), 17)
        self.assertEqual(told[16]["name"], "new.npy, row 17")
        self.assertNotIn("label", told[0])
        labelled = self.json("predict", "run", "--data", "npy:new.npy,new_y.npy", "--json")
        self.assertEqual([row["class"] for row in labelled], [row["class"] for row in told])
        self.assertIn("label", labelled[0])

    def test_quantities_that_are_no_numbers(self):
        draw = random.Random(6)
        values = [draw.uniform(-1, 1) for _ in range(80)]
        write_npy(self.folder / "q.npy", "<f4", (40, 2), values, "f")
        write_npy(self.folder / "q_y.npy", "<f4", (40, 1), values[::2], "f")
        write_npy(self.folder / "q_nan.npy", "<f4", (40, 1), [float("nan"), float("inf"), *values[4::2]], "f")
        self.ok("train", "mlp:2-4-1", "--data", "npy:q.npy,q_y.npy", "--task", "regression", "--epochs", "1", "--quiet", "--out", "quantities")
        notes = [note["text"] for note in self.json("eval", "quantities", "--data", "npy:q.npy,q_nan.npy", "--json")["notes"]]
        self.assertIn("the targets of 2 samples (the first: q.npy, row 1) are NaN or infinite, so the metrics have no meaning", notes)
        self.assertFalse([note for note in notes if "outputs of the network" in note])
        words = ["train", "mlp:2-4-1", "--task", "regression", "--epochs", "1", "--out", "refused", "--data"]
        refused = self.fails(3, *words, "npy:q.npy,q_nan.npy,split=0,validation=0",
                             says="in the training part, the targets of 2 samples (the first: q.npy, row 1) are NaN or infinite")
        self.assertNotIn("learning rate", refused.err)
        write_npy(self.folder / "q_inf.npy", "<f4", (40, 2), [*values[:26], float("-inf"), *values[27:]], "f")
        refused = self.fails(3, *words, "npy:q_inf.npy,q_y.npy,split=0,validation=0", says="the input of q_inf.npy, row 14 is NaN or infinite")
        self.assertNotIn("--lr", refused.err)
        self.assertFalse((self.folder / "refused").exists(), "nothing was trained")
        # A part that is only measured counts too.
        self.fails(3, *words, "npy:q.npy,q_y.npy,q_inf.npy,q_y.npy", says="in the test part, the input of q_inf.npy, row 14")
        info = self.json("data", "info", "npy:q_inf.npy,q_y.npy,split=0,validation=0", "--task", "regression", "--json")["train"]
        self.assertEqual(info["not_finite"], 1)
        self.assertLess(abs(info["mean"]), 1)
        self.assertIn("the first in q_inf.npy, row 14", " ".join(self.ok("data", "info", "npy:q_inf.npy,q_y.npy,split=0,validation=0", "--task", "regression").out.split()))

    def test_labels_that_do_not_count_are_not_counted(self):
        write_npy(self.folder / "i.npy", "<f4", (30, 1), [k / 30 for k in range(30)], "f")
        write_npy(self.folder / "i_y.npy", "<i8", (30,), [-100 if k % 3 == 0 else k % 3 - 1 for k in range(30)], "q")
        info = self.json("data", "info", "npy:i.npy,i_y.npy,split=0,validation=0", "--json")["train"]
        self.assertEqual((info["size"], info["counts"]), (30, [10, 10]))

    def test_several_labels(self):
        draw = random.Random(4)
        values = [draw.uniform(-1, 1) for _ in range(600)]
        write_npy(self.folder / "x.npy", "<f4", (200, 3), values, "f")
        write_npy(self.folder / "y.npy", "<f4", (200, 3), [float(v > 0) for v in values], "f")
        out = self.ok("train", "mlp:3-16-3", "--data", "npy:x.npy,y.npy", "--task", "multi_label", "--epochs", "30", "--batch", "16", "--out", "labels").out
        self.assertRegex(out, r"epoch 30/30  training loss \S+, accuracy \S+ %  validation F1 \S+ %, all labels right \S+ %, labels right \S+ %")
        self.assertRegex(out, r"best validation F1 \S+ % \(epoch \d+, \d+ samples\)")
        self.assertRegex(out, r"test F1 \S+ %, all labels right \S+ %, labels right \S+ % \(epoch")
        self.assertIn("F1, and shares of labels and of samples that are right", out)
        figures = self.json("eval", "labels", "--json")
        self.assertGreater(figures["f1"], 0.9)
        self.assertGreater(figures["accuracy"], 0.9)
        self.assertLessEqual(figures["exact"], figures["accuracy"])
        self.assertNotIn("confusion", figures)
        self.assertRegex(self.ok("eval", "labels").out, r"F1 +\S+ %\nall labels right \S+ %\nlabels right +\S+ %\nloss")
        told = self.json("predict", "labels", "--data", "npy:x.npy,y.npy", "--json")[0]
        self.assertEqual(len(told["values"]), 3)
        self.assertEqual([v > 0.5 for v in told["values"]], [t == 1 for t in told["target"]])
        self.fails(2, "eval", "labels", "--confusion", "c.csv", says="does not classify samples")
        self.fails(3, "train", "mlp:3-16-2", "--data", "npy:x.npy,y.npy", "--task", "multi_label", "--out", "none", says="has 3 labels")
        self.fails(3, "train", "mlp:3-16-3", "--data", "npy:x.npy,y.npy", "--out", "none",
                   says=["has no classes", "use --task regression, or --task multi_label if each is a label from 0 to 1"])
        self.fails(2, "train", "mlp:3-16-3", "--data", "npy:x.npy,x.npy", "--task", "multi_label", "--out", "none", says=["a label is 0 or 1", "--task regression"])


class ImageFiles(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        draw = random.Random(5)
        for folder, count in (("all", 20), ("others", 4)):
            for name, red in (("dark", 40), ("light", 210)):
                (cls.folder / folder / name).mkdir(parents=True)
                for k in range(count):
                    rows = [[min(255, red + draw.randrange(30)) for _ in range(36)] for _ in range(12)]
                    write_png(cls.folder / folder / name / f"{k}.png", rows, channels=3)
        lines = [f"others/{name}/{k}.png,{name}" for name in ("dark", "light") for k in range(4)]
        (cls.folder / "list.csv").write_text("\n".join(lines) + "\n")
        cls().ok("train", "resnet20:width=4", "--data", "folder:all,size=12,split=0.2", "--epochs", "1", "--quiet", "--out", "run")

    def runTest(self):
        pass

    def test_folders_and_lists(self):
        own = self.json("eval", "run", "--json")
        self.assertEqual((own["part"], own["items"], own["of_items"]), ("test", 8, 40))
        for given in "folder:all,size=12", "folder:all/":  # training images would be among them
            self.assertEqual(self.json("eval", "run", "--data", given, "--json")["items"], 8)
        for given in "folder:others", "list:list.csv":
            figures = self.json("eval", "run", "--data", given, "--json")
            self.assertEqual((figures["part"], figures["items"]), ("all", 8))
            names = [row["name"] for row in self.json("predict", "run", "--data", given, "--json")]
            self.assertEqual(len(names), 8)
            self.assertTrue(all(name.endswith(".png") for name in names), names)

    def test_images_are_written_as_what_they_are(self):
        out = self.ok("predict", "run", "others/dark/1.png", "others/light/2.png", "--write").out
        self.assertIn("others/dark/1.png: 1 row, with predictions in others/dark/1.png.predictions.csv", out)
        lines = (self.folder / "others/dark/1.png.predictions.csv").read_text().splitlines()
        self.assertEqual(lines[0], "name,prediction,probability,label")
        self.assertTrue(lines[1].startswith("others/dark/1.png,"))
        self.ok("predict", "run", "others/dark/1.png", "others/light/2.png", "--out", "both.csv")
        self.assertEqual(len((self.folder / "both.csv").read_text().splitlines()), 3)

    def test_background(self):
        clear = [[v for _ in range(12) for v in (20, 20, 20, 0)] for _ in range(12)]
        for name in "dark", "light":
            (self.folder / "clear" / name).mkdir(parents=True)
            write_png(self.folder / "clear" / name / "0.png", clear, channels=4)
        seen = {}
        for colour in "white", "black", "none":
            one = self.json("predict", "run", "clear/dark/0.png", "--background", colour, "--json")[0]
            of_set = self.json("predict", "run", "folder:clear", "--background", colour, "--json")[0]
            self.assertAlmostEqual(one["probability"], of_set["probability"], places=5)
            seen[colour] = (one["class"], one["probability"])
            if colour != "none":
                told = self.json("predict", "run", f"folder:clear,background={colour}", "--json")[0]
                self.assertEqual((told["class"], told["probability"]), (of_set["class"], of_set["probability"]))
                self.assertEqual(self.json("eval", "run", "--data", f"folder:clear,background={colour}", "--json")["loss"],
                                 self.json("eval", "run", "--data", "folder:clear", "--background", colour, "--json")["loss"])
        self.assertNotEqual(seen["white"], seen["black"])
        self.fails(2, "predict", "run", "clear/dark/0.png", "--background", "clear", says=["--background", "clear"])

    def test_videos_are_no_idx_files(self):
        (self.folder / "clip.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + b"\0" * 40)
        (self.folder / "clip.mov").write_bytes(b"\0\0\x08\x03moov" + b"\0" * 40)
        for name in "clip.mp4", "clip.mov":
            result = self.run_command("predict", "run", name)
            self.assertNotEqual(result.code, 0)
            self.assertNotIn("IDX", result.err, name)
        (self.folder / "noname").write_bytes(b"\0\0\x08\x03moov" + b"\0" * 40)
        self.assertNotIn("IDX", self.run_command("predict", "run", "noname").err)


class Digits(CommandTest):
    def test_one_folder_by_two_names(self):
        """mnist:FOLDER, idx:FOLDER and mnist, where it is the folder of fetched datasets, name the same files."""
        folder = self.folder / "data" / "mnist"
        folder.mkdir(parents=True)
        for stem, count in (("train", 60), ("t10k", 30)):
            write_idx(folder / f"{stem}-images-idx3-ubyte", (count, 28, 28), [(k * 7 + k // 784 * 31) % 251 for k in range(count * 784)])
            write_idx(folder / f"{stem}-labels-idx1-ubyte", (count,), [k % 10 for k in range(count)])
        for run, own in enumerate(("mnist", "mnist:data/mnist", "idx:data/mnist")):
            named = f"named-{run}"
            self.ok("train", "mlp:784-8-10", "--data", own, "--epochs", "1", "--quiet", "--out", named)
            for given in ("mnist", "mnist:./data/mnist", "idx:data/mnist"):
                figures = self.json("eval", named, "--data", given, "--part", "validation", "--json")
                self.assertEqual((figures["data"], figures["items"]), (own, 6))
                told = self.json("predict", named, "--data", given, "--json")
                self.assertEqual(len(told), 30)
                self.assertRegex(told[0]["name"], "t10k-images-idx3-ubyte, image 1$")
        by_file = self.json("predict", named, "data/mnist/t10k-images-idx3-ubyte", "--json")
        self.assertEqual([row["name"] for row in by_file], [row["name"] for row in told])

    def test_drawn_data_and_idx(self):
        self.ok("train", "lenet5", "--data", "digits:60,20", "--epochs", "1", "--quiet", "--out", "run")
        figures = self.json("eval", "run", "--data", "digits:10,30", "--json")
        self.assertEqual((figures["part"], figures["items"]), ("test", 30))
        for name in ("top3_accuracy", "top5_accuracy"):
            self.assertLessEqual(figures["accuracy"], figures[name])
        write_idx(self.folder / "seven-idx3-ubyte", (7, 28, 28), [k % 251 for k in range(7 * 784)])
        told = self.json("predict", "run", "seven-idx3-ubyte", "--json")
        self.assertEqual(len(told), 7)
        self.assertEqual(told[0]["name"], "seven-idx3-ubyte, image 1")
        out = self.ok("predict", "run", "seven-idx3-ubyte", "--count", "2", "--no-image").out
        self.assertIn("5 of 7 samples of seven-idx3-ubyte are not shown", out)
        self.ok("predict", "run", "seven-idx3-ubyte", "--write")
        self.assertEqual(len((self.folder / "seven-idx3-ubyte.predictions.csv").read_text().splitlines()), 8)

    def test_a_matrix_fits_the_terminal(self):
        names = [f"a class with the long name {k}" for k in range(12)]
        draw = random.Random(6)
        rows = [f"{draw.random():.3f},{k % 12},{names[k % 12]}" for k in range(240)]
        (self.folder / "many.csv").write_text("a,b,label\n" + "\n".join(rows) + "\n")
        self.ok("train", "mlp:2-8-12", "--data", "csv:many.csv,split=0.5", "--epochs", "1", "--quiet", "--out", "many")
        code, text = self.in_terminal("eval", "many", columns=100, NO_COLOR="1")
        self.assertEqual(code, 0)
        self.assertIn("confusion: rows are true classes", text)
        matrix = text.split("confusion:")[1].splitlines()[1:14]
        self.assertLessEqual(max(len(line) for line in matrix), 100)
        rows = [f"{draw.random():.3f},{k % 60},class {k % 60}" for k in range(600)]
        (self.folder / "more.csv").write_text("a,b,label\n" + "\n".join(rows) + "\n")
        self.ok("train", "mlp:2-8-60", "--data", "csv:more.csv,split=0.5", "--epochs", "1", "--quiet", "--out", "more")
        self.assertIn("--confusion FILE.csv writes it", self.ok("eval", "more", "--confusion", "more_matrix.csv").out)
        self.assertEqual(len((self.folder / "more_matrix.csv").read_text().splitlines()), 61)


class Texts(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kinds = [("water", "the sea is wide"), ("earth", "the land is far")]
        (cls.folder / "lines.txt").write_text("".join(f"{name}\t{text}\n" for name, text in kinds) * 40)
        (cls.folder / "told.txt").write_text("".join(f"{name}\t{text}\n" for name, text in kinds) * 6)
        (cls.folder / "bare.txt").write_text("".join(f"{text}\n" for _, text in kinds) * 5 + "the sea is wide\n\nthe land is far\n")
        vocabulary = len((FIXTURES / "bert" / "vocab.txt").read_text(encoding="utf-8").split("\n"))
        cls().ok("train", f"bert_classifier:layers=1,heads=2,width=16,context=16,vocabulary={vocabulary}", "--tokenizer", str(FIXTURES / "bert"),
                 "--data", "lines:lines.txt", "--epochs", "8", "--lr", "0.01", "--quiet", "--out", "run")

    def runTest(self):
        pass

    def test_lines(self):
        own = self.json("eval", "run", "--json")
        self.assertEqual((own["part"], own["of_items"]), ("test", 80))
        self.assertEqual(self.json("eval", "run", "--data", "lines:./lines.txt", "--json")["items"], own["items"])
        figures = self.json("eval", "run", "--data", "lines:told.txt", "--json")
        self.assertEqual((figures["part"], figures["items"]), ("all", 12))
        self.assertEqual(len(self.json("predict", "run", "--data", "lines:told.txt", "--json")), 12)
        told = self.json("predict", "run", "told.txt", "--json")
        result = self.ok("predict", "run", "bare.txt", "--json")
        self.assertIn("1 empty line was skipped", result.err)
        bare = json.loads(result.out)
        self.assertEqual([row["class"] for row in told], [row["class"] for row in bare])
        self.assertEqual((bare[11]["name"], bare[11]["text"]), ("bare.txt, line 13", "the land is far"))
        self.assertIn("label", told[0])
        self.assertIn("10 of 12 samples of bare.txt are not shown", self.ok("predict", "run", "bare.txt", "--count", "2").out)
        later = self.ok("predict", "run", "bare.txt", "--start", "3", "--count", "2").out
        self.assertIn("7 of 9 samples of bare.txt from --start 3 on are not shown", " ".join(later.split()))
        self.fails(2, "predict", "run", "bare.txt", "--start", "12", says="--start: bare.txt has 12 lines, numbered from 0")
        self.ok("predict", "run", "bare.txt", "--write")
        self.assertEqual(len((self.folder / "bare.txt.predictions.csv").read_text().splitlines()), 13)

    def test_classes_of_lines(self):
        """One class that is not known takes the classes from no other line, and is not read as text."""
        lines = ["water\tthe sea is wide", "earth\tthe land is far", "fire\tthe sun is hot", "the rock is old", "water\tthe lake is deep"]
        (self.folder / "mixed.txt").write_text("\n".join(lines) + "\n")
        result = self.ok("predict", "run", "mixed.txt", "--json")
        rows = json.loads(result.out)
        self.assertEqual([row["text"] for row in rows], [line.split("\t")[-1] for line in lines])
        self.assertEqual([row.get("label_name", row.get("label")) is not None for row in rows], [True, True, False, False, True])
        self.assertIn("mixed.txt, line 3: 1 line has a class that the model does not know, such as 'fire': no label", result.err)
        self.assertIn("mixed.txt, line 4: 1 line has no class", result.err)
        self.assertIn("of 3 right (3 of 5 samples of mixed.txt)", " ".join(self.ok("predict", "run", "mixed.txt").out.split()))
        self.fails(3, "predict", "run", "mixed.txt", "--strict", says="the first field of each line is taken as its class")
        # The options of lines:, and the run's where they do not say otherwise.
        (self.folder / "last.csv").write_bytes("text;class\n'the sea; wide';water\n".replace("'", '"').encode() + "the café is far;earth\n".encode("latin1"))
        rows = self.json("predict", "run", "lines:last.csv,encoding=latin1,separator=;", "--json")
        self.assertEqual([(row["text"], row["name"]) for row in rows], [("the sea; wide", "last.csv, line 2"), ("the café is far", "last.csv, line 3")])
        self.assertTrue(all("label" in row for row in rows), rows)
        self.fails(2, "predict", "run", "lines:last.csv,colour=red", says="encoding=NAME")

    def test_what_is_lost_of_texts_is_said(self):
        long = "the sea is wide " * 20
        (self.folder / "long.txt").write_text(f"water\tthe sea is wide\nearth\t{long}\nwater\tthe \u4e20\u4e21 sea\n")
        for words in (("eval", "run", "--data", "lines:long.txt"), ("predict", "run", "long.txt"), ("predict", "run", "--data", "lines:long.txt")):
            told = self.ok(*words).err
            self.assertIn("long.txt, line 2: 1 of 3 texts is cut to 16 tokens", told, words)
            self.assertIn("long.txt, line 3: 2 words or characters in 1 of 3 texts are not in the vocabulary", " ".join(told.split()), words)
            self.fails(3, *words, "--strict", says="refused because 'strict' is on")
        notes = [note["text"] for note in self.json("eval", "run", "--data", "lines:long.txt", "--json")["notes"]]
        self.assertTrue(any(note.startswith("long.txt, line 2: 1 of 3 texts is cut to 16 tokens") for note in notes), notes)
        self.assertIn("1 of 1 texts is cut to 16 tokens", self.ok("predict", "run", "--text", long).err)
        # A run that learnt from shorter lines than its network takes reads lines of that length wherever it reads them.
        vocabulary = len((FIXTURES / "bert" / "vocab.txt").read_text(encoding="utf-8").split("\n"))
        self.ok("train", f"bert_classifier:layers=1,heads=2,width=16,context=64,vocabulary={vocabulary}", "--tokenizer", str(FIXTURES / "bert"),
                "--data", "lines:lines.txt,length=12", "--epochs", "1", "--quiet", "--out", "short")
        by_file, by_source = self.json("predict", "short", "long.txt", "--json"), self.json("predict", "short", "--data", "lines:long.txt", "--json")
        for a, b in zip(by_file, by_source):
            self.assertAlmostEqual(a["probability"], b["probability"], places=5)
        self.assertIn("1 of 3 texts is cut to 12 tokens", self.ok("eval", "short", "--data", "lines:long.txt").err)
        self.assertIn("training has seen", self.ok("predict", "run", "told.txt").err)

    def test_language(self):
        (self.folder / "verse.txt").write_text("tick tock goes the clock\n" * 60)
        (self.folder / "more.txt").write_text("tick tock\n" * 20)
        self.ok("train", "gpt2:layers=1,heads=2,width=16,context=16", "--data", "text:verse.txt,by=chars", "--epochs", "1", "--quiet", "--out", "verse")
        figures = self.json("eval", "verse", "--json")
        self.assertEqual(figures["part"], "test")
        others = self.json("eval", "verse", "--data", "text:more.txt,by=chars", "--json")
        self.assertEqual(others["part"], "all")
        self.assertGreater(others["targets"], others["items"])
        told = self.json("predict", "verse", "more.txt", "--json")
        self.assertEqual(len(told), 20)
        self.assertEqual(told[19]["name"], "more.txt, line 20")
        out = self.ok("predict", "verse", "more.txt", "--count", "2").out
        self.assertIn("18 more lines are not shown", out)


if __name__ == "__main__":
    unittest.main()
