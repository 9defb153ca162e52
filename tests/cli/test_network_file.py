"""Networks in files: the starter, training, printing, and messages for wrong files."""
import shutil
import unittest

from command import CommandTest


class NetworkFile(CommandTest):
    def test_the_starter_trains_and_the_run_moves(self):
        out = self.ok("new", "starter.toml").out
        self.assertIn("tenon train starter.toml", out)
        self.assertIn("already exists", self.fails(2, "new", "--toml", "starter").err)
        self.assertIn("GlobalAvgPool()", self.ok("summary", "starter.toml").out)
        self.ok("train", "starter.toml", "--data", "digits:300,60", "--epochs", "1", "--out", "first")
        text = (self.folder / "starter.toml").read_text(encoding="utf-8")
        (self.folder / "starter.toml").unlink()
        shutil.move(self.folder / "first", self.folder / "moved")
        self.assertEqual(self.ok("summary", "moved", "--toml").out, text)
        self.assertEqual(self.ok("summary", "moved/model.safetensors", "--toml").out, text)
        self.assertIn("test part of digits:300,60: 60 of ", self.ok("eval", "moved").out)
        self.ok("train", "mlp:784-8-10", "--teacher", "moved", "--data", "digits:300,60", "--epochs", "1", "--out", "taught")
        self.ok("predict", "moved", "--data", "digits:300,60")
        self.assertIn("best validation accuracy", self.ok("train", "--resume", "moved", "--epochs", "2").out)
        self.assertIn("starter.toml train", self.ok("inspect", "moved").out)

    def test_built_in_networks_print_themselves(self):
        text = self.ok("summary", "resnet20:width=4", "--toml").out
        (self.folder / "r.toml").write_text(text, encoding="utf-8")
        ours, theirs = self.json("summary", "r.toml", "--json"), self.json("summary", "resnet20:width=4", "--json")
        for same in ("parameters", "multiply_adds_per_sample", "input", "output", "train_bytes"):
            self.assertEqual(ours[same], theirs[same], same)
        self.assertIn('"workload":"r.toml_b2"', self.ok("bench", "--only", "r.toml_b2", "--budget", "0.01").out)
        small = "transformer:layers=1,heads=2,width=8,hidden=16"
        (self.folder / "t.toml").write_text(self.ok("summary", small, "--toml").out, encoding="utf-8")
        ours, theirs = self.json("summary", "t.toml", "--json"), self.json("summary", small, "--json")
        self.assertEqual(ours["parameters"], theirs["parameters"])
        for name in small, "t.toml":
            self.ok("train", name, "--data", "numbers:200,20,below=300", "--epochs", "1", "--out", "page" if name == small else "file")
        said = [self.ok("generate", run, "--prompt", "German: twenty-one").out for run in ("page", "file")]
        self.assertEqual(said[0], said[1])

    def test_a_language_model_generates_text(self):
        (self.folder / "t.txt").write_text("the cat sat on the mat. " * 60, encoding="utf-8")
        (self.folder / "l.toml").write_text('input = [16]\nclasses = 99\ntokens = true\n'
                                            'layers = [ { embedding = 8 }, { lstm = 16 }, { linear = "classes" } ]\n', encoding="utf-8")
        self.ok("train", "l.toml", "--data", "text:t.txt,length=16", "--epochs", "1", "--out", "written")
        self.assertTrue(self.ok("generate", "written", "--tokens", "30").out)

    def test_what_is_wrong(self):
        def refused(text, *words):
            (self.folder / "w.toml").write_text(text, encoding="utf-8")
            error = self.fails(3, "train", "w.toml").err
            for word in words:
                self.assertIn(word, error)
        head = "input = [1, 28, 28]\nclasses = 10\n"
        refused(head + 'layers = [ "flaten" ]\n', "w.toml, line 3, layer 0 (flaten)", "did you mean 'flatten'?")
        refused(head + 'layers = [\n  { conv2d = 8, kernel = 30 },\n]\n', "line 4, layer 0 (conv2d): the kernel covers 30 pixels", "[N, 1, 28, 28]")
        refused(head + 'layers = [ "flatten", { linear = 10 } ]\n[recipe]\nepochs = "many"\n', "w.toml, line 5: recipe: epochs: there is no variable 'many' (classes)\n")
        refused("input = [1, 28, 28\n", "w.toml, line")
        self.assertIn("cannot open", self.fails(4, "train", "gone.toml").err)


if __name__ == "__main__":
    unittest.main()
