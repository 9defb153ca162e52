"""Regression on a table: train, eval, predict, and rows without a label."""
import shutil
import unittest

from command import CommandTest


class Regression(CommandTest):
    def table(self, name, rows=200):
        lines = ["area,rooms,price"]
        for i in range(rows):
            area, rooms = 40 + (i * 37) % 200, 1 + (i * 7) % 6
            lines.append(f"{area},{rooms},{area * 3000 + rooms * 9000 + 0.25}")
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def test_from_a_table_to_predictions(self):
        self.table("houses.csv")
        data = ["--data", "csv:houses.csv,label=price"]
        # Quantities are not classes, and the message says what to do.
        self.fails(3, "train", "mlp:2-16-1", *data, says="--task regression")
        done = self.ok("train", "mlp:2-16-1", *data, "--task", "regression", "--epochs", "30", "--batch", "16", "--out", "run")
        self.assertNotIn("accuracy", done.out)
        self.assertIn("best validation loss", done.out)
        self.assertIn("R2", done.out)
        figures = self.json("eval", "run", "--json")
        self.assertGreater(figures["r2"], 0.95)
        self.assertNotIn("accuracy", figures)
        self.assertIn("mean abs. error", self.ok("eval", "run").out)

        (self.folder / "new.csv").write_text("area,rooms\n100,3\n200,2\n")
        rows = self.json("predict", "run", "new.csv", "--json")
        self.assertEqual([row["name"] for row in rows], ["new.csv, line 2", "new.csv, line 3"])
        self.assertAlmostEqual(rows[0]["values"][0] / 327000, 1, delta=0.15)
        # Columns are found by name: in another order, with the label and other columns present.
        (self.folder / "named.csv").write_text("price,note,rooms,area\n0,x,3,100\n0,y,2,200\n")
        named = self.json("predict", "run", "named.csv", "--json")
        self.assertEqual([row["values"] for row in named], [row["values"] for row in rows])
        (self.folder / "bare.csv").write_text("100,3,7\n")
        self.assertEqual(self.json("predict", "run", "bare.csv", "--json")[0]["target"], [7])
        (self.folder / "wide.csv").write_text("100,3,7,8\n")
        self.fails(3, "predict", "run", "wide.csv", says=["4 columns", "trained on 2"])
        (self.folder / "other.csv").write_text("area,floors\n100,3\n")
        self.fails(3, "predict", "run", "other.csv", says="no column 'rooms'")
        self.assertRegex(self.ok("predict", "run", "new.csv").out, r"new.csv, line 2 +\d{6}\n")
        # The plan of the run's step is that of a regression.
        self.assertNotIn("cross_entropy", self.ok("inspect", "run").out)
        held_out = self.json("predict", "run", *data, "--count", "2", "--json")
        self.assertEqual(len(held_out[0]["target"]), 1)
        self.ok("verify", "run", "--steps", "4")

    def test_what_does_not_fit_is_refused(self):
        self.table("t.csv", rows=30)
        data = ["--data", "csv:t.csv,label=price", "--task", "regression"]
        self.fails(3, "train", "mlp:2-4-3", *data, says=["3 numbers", "1 target", "mlp:2-64-1"])
        self.fails(2, "train", "mlp:2-4-1", "--task", "regresion", says="did you mean 'regression'")
        self.fails(2, "train", "lenet5", "--data", "digits:20,10", "--task", "regression", says="not quantities")

    def test_words_missing_numbers_and_predictions_in_a_table(self):
        lines = ["id,town,area,price"]
        for i in range(200):
            town = ["Aix", "Bonn", "Cork"][i % 3]
            area = 40 + (i * 37) % 200
            lines.append(f"{i},{town},{'NA' if i % 19 == 0 else area},{area * 3000 + 90000 * (i % 3)}")
        (self.folder / "homes.csv").write_text("\n".join(lines) + "\n")
        data = ["--data", "csv:homes.csv,drop=id,split=0.2,seed=1", "--target", "price", "--task", "regression"]
        self.fails(3, "train", "mlp:2-16-1", *data, says="mlp:4-64-1")
        self.ok("train", "mlp:4-16-1", *data, "--epochs", "40", "--batch", "16", "--out", "homes")
        figures = self.json("eval", "homes", "--json")
        self.assertEqual(figures["items"], 40)
        self.assertGreater(figures["r2"], 0.8)
        (self.folder / "new.csv").write_text('area,town,note\n100,Cork,"a, b"\n,Bonn,\n100,Oslo,"say ""hi"""\n')
        out = self.ok("predict", "homes", "new.csv", "--write").out
        self.assertIn("3 rows", out)
        written = (self.folder / "new.predictions.csv").read_text().splitlines()
        self.assertEqual(written[0], "area,town,note,prediction")
        self.assertTrue(written[1].startswith('100,Cork,"a, b",'), written[1])
        self.assertTrue(written[3].startswith('100,Oslo,"say ""hi""",'), written[3])
        shown = self.json("predict", "homes", "new.csv", "--json")
        for line, row in zip(written[1:], shown):
            self.assertAlmostEqual(float(line.rsplit(",", 1)[1]) / row["values"][0], 1, places=5)
        # The weight file alone gives the same result.
        alone = self.json("predict", "homes/model.safetensors", "new.csv", "--json")
        self.assertEqual([row["values"] for row in alone], [row["values"] for row in shown])
        info = self.ok("data", "info", "csv:homes.csv,drop=id,label=price,split=0.2", "--task", "regression").out
        self.assertIn("town (3 words: Aix, Bonn, Cork)", info)
        self.fails(2, "predict", "homes", "--data", "csv:homes.csv", "--write", says="--write")
        self.fails(2, "train", "mlp:4-16-1", "--data", "digits", "--target", "price", says="not a table")
        self.fails(2, "train", "--resume", "homes", "--target", "area", says="--target")

    def test_folds_are_separate_runs(self):
        self.table("t.csv", rows=90)
        out = self.ok("train", "mlp:2-8-1", "--data", "csv:t.csv", "--target", "price", "--task", "regression", "--epochs", "5",
                      "--batch", "8", "--folds", "3", "--out", "runs3", "--quiet").out
        self.assertRegex(out, r"3 folds, .*\n *test loss +[\d.]+ ± [\d.]+  \([\d.]+, [\d.]+, [\d.]+\)")
        self.assertRegex(out, r"R2 +[\d.-]+ ± ")
        shutil.rmtree(self.folder / "runs3" / "fold-1")
        told = self.fails(2, "train", "mlp:2-8-1", "--data", "csv:t.csv", "--target", "price", "--task", "regression", "--folds", "3",
                          "--out", "runs3", says=["--out: runs3 already holds folds", "--resume runs3"])
        self.assertNotIn("TrainOptions", told.err)
        self.assertFalse((self.folder / "runs3" / "fold-1").exists(), "nothing was trained")
        self.assertEqual(self.json("eval", "runs3/fold-3", "--json")["items"], 30)
        for taken, says in (("split=0.5", "a fold is the test part"), ("fold=1/3", "already selects one fold")):
            self.fails(2, "train", "mlp:2-8-1", "--data", f"csv:t.csv,{taken}", "--target", "price", "--task", "regression", "--folds", "3",
                       says=says)
        self.fails(2, "train", "mlp:2-8-1", "--data", "digits", "--folds", "3", says="each part is drawn by a seed of its own")
        self.fails(2, "train", "mlp:2-8-1", "--data", "csv:t.csv", "--folds", "1", says="2 or more")
        self.fails(2, "train", "mlp:2-8-1", "--data", "csv:t.csv", "--target", "price", "--task", "regression", "--folds", "100",
                   "--out", "runs100", says="there are 90 samples, which make 90 folds at most")
        self.assertFalse((self.folder / "runs100").exists(), "nothing was trained")

    def test_classes_of_a_table_written_beside_it(self):
        rows = [f"{i % 7},{'red' if i % 2 else 'blue'},{'yes' if i % 2 else 'no'}" for i in range(60)]
        (self.folder / "t.csv").write_text("n,colour,bought\n" + "\n".join(rows) + "\n")
        self.ok("train", "mlp:3-8-2", "--data", "csv:t.csv,stratify,split=0.3", "--target", "bought", "--epochs", "30", "--batch", "8",
                "--out", "shop")
        (self.folder / "new.csv").write_text("colour;n\nred;1\nblue;2\n")
        self.ok("predict", "shop", "new.csv", "--write")
        written = [line.split(";") for line in (self.folder / "new.predictions.csv").read_text().splitlines()]
        self.assertEqual(written[0], ["colour", "n", "prediction", "probability"])
        self.assertEqual([line[2] for line in written[1:]], ["yes", "no"])
        # A file with a single class uses the class numbers of the model.
        (self.folder / "yes.csv").write_text("n,colour,bought\n" + "\n".join(r for r in rows if r.endswith("yes")) + "\n")
        self.assertEqual(self.json("eval", "shop", "--data", "csv:yes.csv", "--json")["accuracy"], 1)


if __name__ == "__main__":
    unittest.main()
