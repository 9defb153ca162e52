"""Regression on a table: train, eval, predict, and rows without a label."""
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
        # Quantities are no classes, and the message says what to do.
        self.fails(3, "train", "mlp:2-16-1", *data, says="--task regression")
        done = self.ok("train", "mlp:2-16-1", *data, "--task", "regression", "--epochs", "30", "--batch", "16", "--out", "run")
        self.assertNotIn("accuracy", done.out)
        self.assertIn("best test loss", done.out)
        self.assertIn("R2", done.out)
        figures = self.json("eval", "run", "--json")
        self.assertGreater(figures["r2"], 0.95)
        self.assertNotIn("accuracy", figures)
        self.assertIn("mean abs. error", self.ok("eval", "run").out)

        (self.folder / "new.csv").write_text("area,rooms\n100,3\n200,2\n")
        rows = self.json("predict", "run", "new.csv", "--json")
        self.assertEqual([row["name"] for row in rows], ["new.csv row 0", "new.csv row 1"])
        self.assertAlmostEqual(rows[0]["values"][0] / 327000, 1, delta=0.15)
        self.fails(3, "predict", "run", "houses.csv", says=["3 columns", "takes 2", "--data csv:houses.csv"])
        self.assertRegex(self.ok("predict", "run", "new.csv").out, r"new.csv row 0 +\d{6}\n")
        # The plan of its step is that of a regression.
        self.assertNotIn("cross_entropy", self.ok("inspect", "run").out)
        held_out = self.json("predict", "run", *data, "--count", "2", "--json")
        self.assertEqual(len(held_out[0]["target"]), 1)
        self.ok("verify", "run", "--steps", "4")

    def test_what_does_not_fit_is_refused(self):
        self.table("t.csv", rows=30)
        data = ["--data", "csv:t.csv,label=price", "--task", "regression"]
        self.fails(2, "train", "mlp:2-4-3", *data, says=["3 numbers", "1 target", "mlp:2-64-1"])
        self.fails(2, "train", "mlp:2-4-1", "--task", "regresion", says="did you mean 'regression'")
        self.fails(2, "train", "lenet5", "--data", "digits:20,10", "--task", "regression", says="not quantities")


if __name__ == "__main__":
    unittest.main()
