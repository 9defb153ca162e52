"""Plugins: the example plugin in training, evaluation, prediction and resuming; what a run without its plugin says; plugins that are
refused."""
import os
import pathlib
import unittest

from command import CommandTest

FOLDER = pathlib.Path(os.path.abspath(os.environ["TENON_PLUGINS"]))
STRIPES = str(FOLDER / "libstripes.so")
NEEDED = ["needs the plugin 'stripes' 1.0 (libstripes.so)", "tenon --plugin libstripes.so"]


class Plugins(CommandTest):
    def train(self, run, *words):
        return self.ok("--plugin", STRIPES, "train", "stripe_net", "--quiet", "--out", run, *words)

    def test_a_run(self):
        self.train("run", "--optimizer", "sign_sgd", "--lr", "0.01", "--set", "schedule=halving", "--set", "loss=focal", "--set", "callbacks=losses",
                   "--set", "task=sure_classification", "--epochs", "4")
        settings = (self.folder / "run" / "settings.toml").read_text(encoding="utf-8")
        self.assertIn('plugins = "stripes 1.0 ', settings)
        self.assertEqual((self.folder / "run" / "losses.csv").read_text(encoding="utf-8").count("\n"), 4)
        measured = self.json("--plugin", STRIPES, "eval", "run", "--json")
        self.assertGreater(measured["accuracy"], 0.9)
        self.assertIn("sure", str(measured))
        self.fails(2, "eval", "run", says=NEEDED)
        self.fails(2, "train", "--resume", "run", "--epochs", "5", says=NEEDED)
        self.fails(2, "predict", "run", "x.png", says=NEEDED)

    def test_resuming_gives_the_same_bits(self):
        words = ("--optimizer", "sign_sgd", "--set", "loss=focal", "--set", "schedule=constant", "--epochs", "2")
        self.train("whole", *words)
        self.train("stopped", *words, "--set", "max_steps=25")
        self.ok(f"--plugin={STRIPES}", "train", "--resume", "stopped", "--set", "max_steps=0", "--quiet")
        weights = [(self.folder / run / "model.safetensors").read_bytes() for run in ("whole", "stopped")]
        self.assertEqual(weights[0], weights[1])
        again = self.folder / "again.so"
        again.write_bytes(pathlib.Path(STRIPES).read_bytes() + b"\n")
        self.assertIn("another build of the plugin 'stripes'", self.ok("--plugin", "again.so", "eval", "whole").err)
        self.assertEqual(self.ok("--plugin", STRIPES, "eval", "whole").err, "")

    def test_predicts(self):
        self.train("plain")
        self.ok("--plugin", STRIPES, "data", "show", "stripes:20", "sheet.png", "--augment", "dim=1")
        said = self.ok("--plugin", STRIPES, "predict", "plain", "stripes:20").out
        self.assertIn("vertical", said)

    def test_is_listed(self):
        self.assertIn("stripe_net", self.ok("--plugin", STRIPES, "models").out)
        shown = self.ok("--plugin", STRIPES, "train", "--help").out
        self.assertIn("sign_sgd", shown)
        self.assertIn("halving", shown)
        self.assertNotIn("sign_sgd", self.ok("train", "--help").out)
        self.assertIn("--plugin FILE", self.ok("--help").out)
        self.fails(2, "train", "stripe_net", says="there is no model 'stripe_net'")
        self.fails(2, "--plugin", STRIPES, "train", "stripe_nett", says="did you mean 'stripe_net'?")
        self.fails(2, "--plugin", STRIPES, "train", "stripe_net", "--set", "loss=focl", says="did you mean 'focal'?")
        self.fails(2, "--plugin", STRIPES, "train", "stripe_net", "--data", "stripes:x", says="at least 10")

    def test_plugins_that_are_refused(self):
        broken = self.folder / "text.so"
        broken.write_text("no shared object", encoding="utf-8")
        self.fails(3, "--plugin", "text.so", "models", says="is no plugin of Tenon")
        self.fails(4, "--plugin", "missing.so", "models", says="cannot be read")
        self.fails(2, "--plugin", says="--plugin needs a value")
        self.fails(2, "--plugn", STRIPES, "models", says="did you mean --plugin?")
        self.fails(7, "--plugin", str(FOLDER / "libother_version.so"), "models", says=["was built for Tenon 0.99.", "build the plugin again"])
        self.fails(2, "--plugin", str(FOLDER / "libthrowing.so"), "models", says=["the plugin 'throwing' failed to start", "licence server"])
        self.fails(2, "--plugin", STRIPES, "--plugin", str(FOLDER / "libcolliding.so"), "models",
                   says=["the plugin 'colliding' failed to start", "a schedule 'halving' of the plugin 'stripes' already"])
        self.ok("--plugin", STRIPES, "--plugin", STRIPES, "models")  # the same content is loaded once
        other = self.folder / "copy.so"
        other.write_bytes(pathlib.Path(STRIPES).read_bytes() + b" ")
        self.fails(2, "--plugin", STRIPES, "--plugin", "copy.so", "models", says="a plugin 'stripes' was loaded from")


if __name__ == "__main__":
    unittest.main()
