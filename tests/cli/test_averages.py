"""Settings that average weights and accumulate gradients: runs repeat and resume with the same bits."""
import unittest

from command import CommandTest

DATA = ["--data", "digits:120,40", "--batch", "8"]


class Averages(CommandTest):
    def test_runs_repeat_and_resume_with_the_same_bits(self):
        for name, words in {
                "ema": ["average=ema", "average_decay=0.9", "accumulate=3"], "swa": ["average=swa", "average_start=1"], "sums": ["accumulate=2"]}.items():
            sets = [word for each in words for word in ("--set", each)]
            self.ok("train", "mlp:784-12-10", *DATA, "--epochs", "3", *sets, "--set", "keep_best=false", "--out", name, "--quiet")
            self.assertTrue(self.json("verify", name, "--steps", "45", "--json")["passed"], name)
            written = (self.folder / name / "settings.toml").read_text()
            for word in words:
                key, value = word.split("=")
                self.assertIn(f"{key} = ", written)
                self.assertIn(value, written)
        self.ok("train", "mlp:784-12-10", *DATA, "--epochs", "3", "--set", "keep_best=false", "--out", "plain", "--quiet")
        weights = {name: (self.folder / name / "model.safetensors").read_bytes() for name in ("ema", "swa", "sums", "plain")}
        self.assertEqual(len(set(weights.values())), 4)
        # Evaluation reads the average, which was validated.
        self.assertIn("accuracy", self.ok("eval", "ema").out)
        self.fails(2, "train", "--resume", "ema", "--set", "average=none", says=["average", "start a new run"])
        self.fails(2, "train", "--resume", "ema", "--set", "accumulate=1", says=["accumulate", "start a new run"])

    def test_wrong_values(self):
        for word, says in {"average=mean": "none, ema", "average_decay=1": "average_decay", "accumulate=0": "accumulate", "average_start=-1": "average_start"}.items():
            self.fails(2, "train", "mlp:784-12-10", *DATA, "--set", word, "--out", "wrong", says=says)
        self.fails(2, "train", "mlp:784-12-10", *DATA, "--set", "average_decay=0.9", "--out", "wrong", says=["average_decay", "average=ema"])
        self.fails(2, "train", "mlp:784-12-10", *DATA, "--set", "average=swa", "--set", "average_decay=0.9", "--out", "wrong", says="equal weight")


if __name__ == "__main__":
    unittest.main()
