"""A command that was linked with a transform of one's own (own_transform.cpp): lists with Tenon's transforms, settings, resuming; and
what the plain command does with its runs."""
import os
import unittest

from command import TENON, CommandTest

OWN = os.path.abspath(os.environ["TENON_OWN_COMMAND"])
LIST = "crop=2,speckle=30:0.5,flip"
DATA = ("--data", "digits:200,50", "--batch", "20", "--set", "schedule=constant", "--quiet")


class OwnTransform(CommandTest):
    command = OWN

    def weights(self, run):
        return (self.folder / run / "model.safetensors").read_bytes()

    def test_lists(self):
        shown = self.ok("data", "show", "--help").out
        self.assertIn("speckle[=COUNT:CHANCE]", shown)
        self.assertIn("set COUNT random pixels to white with probability CHANCE", " ".join(shown.split()))
        sheets = []
        for augment in (LIST, "crop=2,flip"):
            self.ok("data", "show", "digits:20,10", "sheet.png", "--augment", augment)
            sheets.append((self.folder / "sheet.png").read_bytes())
        self.assertNotEqual(*sheets)
        self.fails(2, "train", "mlp:784-10", *DATA, "--augment", "speckle=2000", "--out", "no", says=["COUNT is 2000", "from 0 to 1000"])
        self.fails(2, "train", "mlp:784-10", *DATA, "--augment", "speckel", "--out", "no", says="did you mean 'speckle'?")

    def test_runs(self):
        (self.folder / "settings.toml").write_text(f'model = "mlp:784-10"\naugment = "{LIST}"\n', encoding="utf-8")
        self.ok("train", "mlp:784-10", *DATA, "--augment", LIST, "--epochs", "3", "--out", "whole")
        self.ok("train", "--config", "settings.toml", *DATA, "--epochs", "3", "--out", "file")
        self.assertEqual(self.weights("whole"), self.weights("file"))
        self.ok("train", "mlp:784-10", *DATA, "--augment", "crop=2,flip", "--epochs", "3", "--out", "plain")
        self.assertNotEqual(self.weights("whole"), self.weights("plain"))
        # Threads and a resume change no bit.
        self.ok("train", "mlp:784-10", *DATA, "--augment", LIST, "--epochs", "3", "--set", "workers=3", "--set", "max_steps=14", "--out", "stopped")
        self.ok("train", "--resume", "stopped", "--set", "max_steps=0", "--quiet")
        self.assertEqual(self.weights("whole"), self.weights("stopped"))
        self.assertIn(f'augment = "{LIST}"', (self.folder / "whole" / "settings.toml").read_text(encoding="utf-8"))

        # The plain command reads the model, which needs no augmentation, and cannot go on with the training.
        expected = self.json("eval", "whole", "--json")
        self.command = TENON
        measured = self.json("eval", "whole", "--json")
        self.assertEqual(measured["accuracy"], expected["accuracy"])
        self.fails(2, "train", "mlp:784-10", *DATA, "--augment", LIST, "--out", "no", says="there is no image transform 'speckle'")
        self.assertIn("there is no image transform 'speckle'", self.run_command("train", "--resume", "whole", "--epochs", "4").err)

    def test_sampling(self):
        rows = ["x,y,label"] + [f"{k % 7},{4 + k % 3 if k % 5 == 0 else k % 3},{'b' if k % 5 == 0 else 'a'}" for k in range(100)]
        (self.folder / "rows.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        words = ("train", "mlp:2-8-2", "--data", "csv:rows.csv", "--epochs", "2", "--quiet")
        self.ok(*words, "--sampling", "balanced", "--out", "balanced")
        self.ok(*words, "--set", "sampling=balanced", "--out", "again")
        self.ok(*words, "--out", "uniform")
        self.assertEqual(self.weights("balanced"), self.weights("again"))
        self.assertNotEqual(self.weights("balanced"), self.weights("uniform"))
        self.fails(2, *words, "--sampling", "even", "--out", "no", says=["sampling", "uniform, balanced"])


if __name__ == "__main__":
    unittest.main()
