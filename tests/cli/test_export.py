"""tenon export: the network of a run as a saved program."""
import json
import struct
import unittest

from command import CommandTest

DATA = ["--data", "digits:120,40", "--batch", "8"]


class Export(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls().ok("train", "mlp:784-12-10", *DATA, "--epochs", "1", "--out", "run", "--quiet")

    def metadata(self, file):
        data = (self.folder / file).read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        return json.loads(data[8:8 + size])["__metadata__"]

    def test_a_run_becomes_a_program(self):
        said = self.ok("export", "run", "mlp.tenon").out
        self.assertEqual(said, "mlp.tenon: float32 [N, 784] -> float32 [N, 10]\n")
        metadata = self.metadata("mlp.tenon")
        self.assertIn("tenon.program", metadata)
        self.assertEqual((metadata["model"], metadata["task"]), ("mlp:784-12-10", "classification"))
        self.assertEqual(json.loads(metadata["classes"]), [str(digit) for digit in range(10)])
        self.assertEqual(self.json("export", "run", "again.tenon", "--json"),
                         {"file": "again.tenon", "dtype": "float32", "input": [784], "output": [10]})
        self.assertEqual((self.folder / "again.tenon").read_bytes(), (self.folder / "mlp.tenon").read_bytes())
        self.ok("export", "run/model.safetensors", "model.tenon")

    def test_other_tasks(self):
        (self.folder / "rows.csv").write_text("".join(f"{i % 7},{i % 5},{i * 0.5}\n" for i in range(60)))
        self.ok("train", "mlp:2-8-1", "--task", "regression", "--data", "csv:rows.csv", "--epochs", "1", "--batch", "8", "--out", "numbers", "--quiet")
        self.assertEqual(self.json("export", "numbers", "numbers.tenon", "--json")["output"], [1])
        self.assertNotIn("classes", self.metadata("numbers.tenon"))
        (self.folder / "prose.txt").write_text("one two three four five six seven. " * 60)
        self.ok("train", "gpt2:layers=1,heads=1,width=16,context=16", "--data", "text:prose.txt", "--epochs", "1", "--set", "max_steps=2", "--out", "prose", "--quiet")
        told = self.json("export", "prose", "prose.tenon", "--json")
        self.assertEqual((told["dtype"], told["input"]), ("int64", told["output"][:-1]))

    def test_what_cannot_be_exported(self):
        self.fails(4, "export", "nowhere", "out.tenon", says="nowhere")
        self.fails(4, "export", "run", "no/folder/out.tenon", says="no/folder")
        self.fails(2, "export", "run", says="FILE")
        self.ok("train", "transformer", "--data", "numbers:60,20", "--epochs", "1", "--set", "max_steps=2", "--out", "words", "--quiet")
        self.fails(7, "export", "words", "words.tenon", says="translates")


if __name__ == "__main__":
    unittest.main()
