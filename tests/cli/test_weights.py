"""tenon weights, and --weights of eval and predict: files of other libraries from the command."""
import json
import math
import pathlib
import struct
import unittest

from command import CommandTest

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "e2e" / "fixtures" / "weights"


def write_safetensors(path, tensors, metadata=None):
    """Tensors as name: (dtype, shape, bytes)."""
    header, values = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(values), len(values) + len(content)]}
        values += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


class NotFinite(CommandTest):
    """Weights with NaN are said to be so: no score of theirs is right, and no learning rate is to blame."""

    def test_nan(self):
        write_safetensors(self.folder / "nan.safetensors", {
            "0.weight": ("F32", [3, 784], floats(*[math.nan] * 2352)), "0.bias": ("F32", [3], floats(0, 0, 0)),
            "2.weight": ("F32", [10, 3], floats(*[0.5] * 30)), "2.bias": ("F32", [10], floats(*[0] * 10))})
        words = ["mlp:784-3-10", "--weights", "nan.safetensors", "--data", "digits:40,20"]
        self.assertIn("note: what the network gives is not finite", self.ok("eval", *words).err)
        shown = self.ok("predict", *words, "--count", "20", "--no-picture").out
        self.assertEqual(shown.count("no class: what the network gives is not finite"), 20, shown)
        self.assertIn("0 of 20 right", shown)
        self.assertEqual([row["right"] for row in self.json("predict", *words, "--count", "20", "--json")], [False] * 20)
        told = self.fails(5, "train", *words, "--out", "run", says="step 1: the loss is nan, as the weights that training began with are not")
        self.assertIn("(the first: 0.weight)", told.err)
        self.assertNotIn("smaller learning rate", told.err)

    def test_a_file_that_does_not_name_its_network(self):
        write_safetensors(self.folder / "bare.safetensors", {"a": ("F32", [1], floats(1))})
        self.fails(3, "eval", "bare.safetensors", says=["does not say which model", "the network's name and this file with --weights"])


class Weights(CommandTest):
    def test_show(self):
        write_safetensors(self.folder / "w.safetensors", {
            "a": ("F32", [5], floats(1, -3, 0, math.nan, math.inf)), "b": ("I64", [2], struct.pack("<2q", 4, 6)), "c": ("F32", [0], b"")},
            {"note": "hi"})
        lines = self.ok("weights", "show", "w.safetensors").out.splitlines()
        self.assertEqual(lines[0].split(), ["name", "dtype", "shape", "min", "max", "mean", "std", "zeros", "inf", "nan"])
        rows = {line.split()[0]: line.split()[1:] for line in lines[1:-1]}
        self.assertEqual(rows["a"], ["float32", "[5]", "-3", "inf", "-0.6667", "1.7", "1", "1", "1"])
        self.assertEqual(rows["b"], ["int64", "[2]", "4", "6", "5", "1", ".", ".", "."])
        self.assertEqual(rows["c"], ["float32", "[0]", "nan", "nan", "nan", "nan", ".", ".", "."])
        self.assertIn("3 tensors, 7 elements, 36 B", lines[-1])
        told = self.json("weights", "show", "w.safetensors", "--json")
        self.assertEqual((told["format"], told["metadata"], told["elements"]), ("safetensors", {"note": "hi"}, 7))
        self.assertEqual(told["tensors"][0]["nan"], 1)
        self.assertAlmostEqual(told["tensors"][0]["std"], math.sqrt(26 / 9))
        quick = self.ok("weights", "show", "w.safetensors", "--quick").out
        self.assertNotIn("mean", quick)
        # Another library's, with ties.
        text = self.ok("weights", "show", str(FIXTURES / "zip.pt")).out
        self.assertRegex(text, r"tied\.b +float32 +\[4, 3\] is tied\.a")
        self.assertRegex(self.ok("weights", "show", str(FIXTURES / "formats" / "types.gguf")).out, r"blk\.0\.q4_0\.weight +q4_0 +\[5, 64\]")

    def test_convert_keeps_values_whatever_the_way(self):
        source = FIXTURES / "formats" / "deflated.npz"
        before = source
        for name in ("a.safetensors", "b.pt", "c.npz", "d.bin"):
            self.assertIn("14 tensors", self.ok("weights", "convert", str(before), name).out)
            before = self.folder / name
            self.assertEqual(self.ok("weights", "diff", str(source), name).out, "")
        write_safetensors(self.folder / "m.safetensors", {"a": ("F32", [2], floats(1, 1.001))}, {"note": "hi"})
        self.ok("weights", "convert", "m.safetensors", "half.safetensors", "--dtype", "bf16")
        told = self.json("weights", "show", "half.safetensors", "--json")
        self.assertEqual((told["tensors"][0]["dtype"], told["metadata"]), ("bfloat16", {"note": "hi"}))
        self.ok("weights", "convert", str(FIXTURES / "zip.pt"), "ties.pt", "--dtype", "fp16")
        self.assertIn("is tied.a", self.ok("weights", "show", "ties.pt").out)

    def test_diff(self):
        write_safetensors(self.folder / "x.safetensors", {"same": ("F32", [2], floats(1, math.nan)), "gone": ("F32", [1], floats(1)),
                                                          "shape": ("F32", [2], floats(1, 2)), "type": ("F32", [1], floats(1)),
                                                          "value": ("F32", [2], floats(3, 4.5))})
        write_safetensors(self.folder / "y.safetensors", {"same": ("F32", [2], floats(1, math.nan)), "new": ("F32", [1], floats(1)),
                                                          "shape": ("F32", [1, 2], floats(1, 2)), "type": ("F64", [1], struct.pack("<d", 1)),
                                                          "value": ("F32", [2], floats(3, 4))})
        result = self.run_command("weights", "diff", "x.safetensors", "y.safetensors")
        self.assertEqual((result.code, result.err), (1, ""))
        rows = {line.split()[0]: " ".join(line.split()[1:]) for line in result.out.splitlines()[1:]}
        self.assertEqual(rows, {"gone": "only in x.safetensors", "new": "only in y.safetensors", "shape": "[2] and [1, 2]",
                                "type": "float32 and float64 0 0", "value": "values 0.5 0.1"})
        told = json.loads(self.run_command("weights", "diff", "x.safetensors", "y.safetensors", "--json", "--tolerance", "0.2").out)
        self.assertEqual(([row["name"] for row in told["differences"]], told["equal"]), (["gone", "shape", "new"], False))
        self.assertEqual(self.ok("weights", "diff", "x.safetensors", "x.safetensors").out, "")

    def test_refusals(self):
        (self.folder / "text").write_text("no weights at all")
        self.fails(3, "weights", "show", "text", says=["first bytes", ".gguf"])
        self.fails(4, "weights", "show", "gone.pt", says="gone.pt")
        self.fails(3, "weights", "show", str(FIXTURES / "foreign.pt"), says="argparse.Namespace")
        write_safetensors(self.folder / "ok.safetensors", {"a": ("F32", [1], floats(1)), "b": ("BF16", [1], b"\0\0")})
        self.fails(2, "weights", "convert", "ok.safetensors", "ok.doc", says=".npz")
        told = self.fails(2, "weights", "convert", "ok.safetensors", "ok.npz", says=["ok.npz: NumPy has no bfloat16", "hint: --dtype fp32"])
        self.assertNotIn("tenon data info", told.err)
        self.ok("weights", "convert", "ok.safetensors", "wide.npz", "--dtype", "fp32")
        self.assertFalse((self.folder / "ok.npz").exists())
        self.fails(2, "weights", "convert", "ok.safetensors", "x.pt", "--dtype", "int8", says="one of")
        self.fails(2, "weights", "diff", "ok.safetensors", "ok.safetensors", "--tolerance", "-1", says="--tolerance")
        self.fails(2, "weights", "shwo", says="did you mean 'show'")
        self.fails(2, "weights", "convert", "ok.safetensors", "x.pt", "--as", "lenet5", says=["nothing in it fits", "missing"])

    def test_other_peoples_weights_in_one_command(self):
        self.ok("train", "resnet20:width=4", "--data", "scenes:40,20", "--epochs", "1", "--out", "run")
        self.ok("weights", "convert", "run/model.safetensors", "theirs.pt")
        words = ("resnet20:width=4", "--data", "scenes:40,20", "--json")
        result = self.ok("eval", words[0], "--weights", "theirs.pt", "--classes", "10", *words[1:])
        self.assertIn("tensors are from theirs.pt (torchvision ResNet)", result.err)
        self.assertEqual(json.loads(result.out)["loss"], self.json("eval", "run", *words[1:])["loss"])
        self.assertIn("right", self.ok("predict", words[0], "--weights", "theirs.pt", "--data", "scenes:40,20", "--count", "3", "--no-picture").out)
        self.fails(2, "eval", "resnet18", "--weights", "theirs.pt", says=["does not fit resnet18: ", "missing"])
        self.fails(2, "eval", "run", "--classes", "3", says="--weights")
        note = self.ok("train", "resnet20:width=4", "--weights", "theirs.pt", "--head", "8,relu", "--data", "scenes:40,20", "--epochs", "1").out
        self.assertIn("(torchvision ResNet)", " ".join(note.split()))
        self.assertIn("'linear.0.weight'", " ".join(note.split()))


if __name__ == "__main__":
    unittest.main()
