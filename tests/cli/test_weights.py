"""tenon weights, and --weights of eval and predict: weight files of other libraries."""
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
    """A message names NaN in weights: their scores mean nothing, and the learning rate is not the cause."""

    def test_nan(self):
        write_safetensors(self.folder / "nan.safetensors", {
            "0.weight": ("F32", [3, 784], floats(*[math.nan] * 2352)), "0.bias": ("F32", [3], floats(0, 0, 0)),
            "2.weight": ("F32", [10, 3], floats(*[0.5] * 30)), "2.bias": ("F32", [10], floats(*[0] * 10))})
        words = ["mlp:784-3-10", "--weights", "nan.safetensors", "--data", "digits:40,20"]
        self.assertIn("note: the outputs of the network are not finite", self.ok("eval", *words).err)
        shown = self.ok("predict", *words, "--count", "20", "--no-image").out
        self.assertEqual(shown.count("no class: the output of the network is not finite"), 20, shown)
        self.assertIn("0 of 20 right", shown)
        self.assertEqual([row["right"] for row in self.json("predict", *words, "--count", "20", "--json")], [False] * 20)
        told = self.fails(5, "train", *words, "--out", "run", says="step 1: the loss is nan, because the initial weights are not")
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
        # A file of another library, with tied weights.
        text = self.ok("weights", "show", str(FIXTURES / "zip.pt")).out
        self.assertRegex(text, r"tied\.b +float32 +\[4, 3\] is tied\.a")
        self.assertRegex(self.ok("weights", "show", str(FIXTURES / "formats" / "types.gguf")).out, r"blk\.0\.q4_0\.weight +q4_0 +\[5, 64\]")

    def test_convert_keeps_values_in_every_direction(self):
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
        self.fails(3, "weights", "show", "text", says=["unknown format of weight file", ".gguf"])
        self.fails(4, "weights", "show", "gone.pt", says="gone.pt")
        self.fails(7, "weights", "show", str(FIXTURES / "foreign" / "whole.pt"), says="'__main__.Own'")
        write_safetensors(self.folder / "ok.safetensors", {"a": ("F32", [1], floats(1)), "b": ("BF16", [1], b"\0\0")})
        self.fails(2, "weights", "convert", "ok.safetensors", "ok.doc", says=".npz")
        told = self.fails(2, "weights", "convert", "ok.safetensors", "ok.npz", says=["ok.npz: NumPy has no bfloat16", "hint: convert them with --dtype fp32"])
        self.assertNotIn("tenon data info", told.err)
        self.ok("weights", "convert", "ok.safetensors", "wide.npz", "--dtype", "fp32")
        self.assertFalse((self.folder / "ok.npz").exists())
        self.fails(2, "weights", "convert", "ok.safetensors", "x.pt", "--dtype", "int8", says="one of")
        self.fails(2, "weights", "diff", "ok.safetensors", "ok.safetensors", "--tolerance", "-1", says="--tolerance")
        self.fails(2, "weights", "shwo", says="did you mean 'show'")
        self.fails(2, "weights", "convert", "ok.safetensors", "x.pt", "--as", "lenet5", says=["no tensor fits", "missing"])

    def test_unused_converted_or_inexact_tensors_are_reported(self):
        objects, types = (str(FIXTURES / "foreign" / name) for name in ("objects.pt", "types.pt"))
        shown = self.ok("weights", "show", objects, "--quick")
        self.assertRegex(shown.out, r"args +not read +an object of 'argparse\.Namespace'")
        self.assertIn("not read: 'args', an object of 'argparse.Namespace', and", shown.err)
        told = self.json("weights", "show", objects, "--json")
        self.assertIn({"name": "args", "what": "an object of 'argparse.Namespace'"}, told["unread"])
        self.fails(3, "weights", "show", objects, "--strict", says=["not read", "refused because 'strict' is on"])
        done = self.ok("weights", "convert", types, "types.npz")
        self.assertIn("2 of float8_e4m3fn read as float32, for instance 'float8_e4m3fn'", done.err)
        self.assertIn("4 not read: 'uint64', a tensor of uint64 [6], and 3 more", done.err)
        self.fails(3, "weights", "convert", types, "no.npz", "--strict", says="float8")
        self.assertFalse((self.folder / "no.npz").exists())
        # Values above the largest of fp16, and values too small for it.
        write_safetensors(self.folder / "big.safetensors", {"a": ("F32", [4], floats(1e6, -7e4, 1, 1e-9)), "b": ("F32", [1], floats(65504))}, {"k": "v"})
        done = self.ok("weights", "convert", "big.safetensors", "half.safetensors", "--dtype", "fp16")
        self.assertIn("a: 2 of its 4 values are too large for float16 and became infinite, the largest 1e+06", done.err)
        self.assertIn("a: 1 values in 1 tensors are too small for float16 and became 0", done.err)
        self.assertNotIn("b:", done.err)
        self.assertIn("2 tensors from big.safetensors, 2 cast to float16", done.out)
        self.fails(3, "weights", "convert", "big.safetensors", "no.safetensors", "--dtype", "fp16", "--strict", says="became infinite")
        self.assertFalse((self.folder / "no.safetensors").exists())
        self.assertEqual(self.ok("weights", "convert", "big.safetensors", "wide.safetensors", "--dtype", "bf16", "--strict").err, "")
        self.assertIn("1 entries of metadata are not written", self.ok("weights", "convert", "big.safetensors", "bare.pt").err)

    def test_a_folder_of_hugging_face(self):
        """config.json determines the network: --heads 6 is refused if the file says 4."""
        width, context, vocabulary = 24, 8, 256
        rng = iter(range(10**9))

        def matrix(*shape):
            count = math.prod(shape)
            return ("F32", list(shape), floats(*[((next(rng) * 7919) % 1009 - 504) / 5000 for _ in range(count)]))

        tensors = {"wte.weight": matrix(vocabulary, width), "wpe.weight": matrix(context, width)}
        for part in ("ln_1", "ln_2"):
            tensors |= {f"h.0.{part}.weight": ("F32", [width], floats(*[1] * width)), f"h.0.{part}.bias": matrix(width)}
        for part, (rows, columns) in {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width), "mlp.c_fc": (width, 4 * width),
                                      "mlp.c_proj": (4 * width, width)}.items():
            tensors |= {f"h.0.{part}.weight": matrix(rows, columns), f"h.0.{part}.bias": matrix(columns)}
        tensors |= {"ln_f.weight": ("F32", [width], floats(*[1] * width)), "ln_f.bias": matrix(width)}
        folder = self.folder / "hub"
        folder.mkdir()
        write_safetensors(folder / "model.safetensors", tensors)
        config = {"model_type": "gpt2", "vocab_size": vocabulary, "n_positions": context, "n_embd": width, "n_layer": 1, "n_head": 4}
        (self.folder / "text.txt").write_text("a line of text\n" * 200)
        words = ("--data", "text:text.txt,length=8", "--json")

        def loss(*more):
            (folder / "config.json").write_text(json.dumps(config))
            return self.json("eval", *more, "--weights", "hub", *words)["loss"]
        plain = loss("gpt2")
        named = self.ok("eval", "gpt2", "--weights", "hub", *words)
        self.assertIn("the network is gpt2:layers=1,heads=4,width=24,context=8", " ".join(named.err.split()))
        self.assertEqual(loss("gpt2:heads=4"), plain)
        for field, value in (("activation_function", "relu"), ("layer_norm_epsilon", 0.1), ("n_head", 2)):
            before = config.get(field)
            config[field] = value
            self.assertNotEqual(loss("gpt2"), plain, field)
            config[field] = before
        loss("gpt2")
        # Renaming needs the sizes as well.
        named = self.ok("weights", "convert", "hub", "renamed.safetensors", "--as", "gpt2")
        self.assertIn("the network is gpt2:layers=1,heads=4,width=24,context=8", " ".join(named.err.split()))
        self.assertIn("16 tensors from hub", named.out)
        sized = ("gpt2:layers=1,heads=4,width=24,context=8", "--classes", str(vocabulary))
        self.assertEqual(self.json("eval", *sized, "--weights", "renamed.safetensors", *words)["loss"], plain)
        config["an_unknown_field"] = 1
        (folder / "config.json").write_text(json.dumps(config))
        self.fails(3, "weights", "convert", "hub", "no.safetensors", "--as", "gpt2", "--strict", says="'an_unknown_field'")
        self.assertFalse((self.folder / "no.safetensors").exists())
        for command in (["eval"], ["predict"], ["train", "--epochs", "1", "--out", "unread"]):
            self.fails(3, *command, "gpt2", "--weights", "hub", *words[:2], "--strict", says=["'an_unknown_field'", "refused because 'strict' is on"])
        del config["an_unknown_field"]
        (folder / "config.json").write_text(json.dumps(config))
        self.fails(2, "weights", "convert", "hub", "no.safetensors", "--as", "gpt2:heads=6", says=["heads = 6", "n_head = 4"])
        self.fails(2, "eval", "gpt2:heads=6", "--weights", "hub", *words, says=["heads = 6", "n_head = 4", "write gpt2"])
        self.fails(2, "train", "gpt2:heads=6", "--weights", "hub", *words[:2], says=["heads = 6", "n_head = 4"])
        config["scale_attn_by_inverse_layer_idx"] = True
        (folder / "config.json").write_text(json.dumps(config))
        self.fails(7, "eval", "gpt2", "--weights", "hub/model.safetensors", *words, says="'scale_attn_by_inverse_layer_idx' is true")
        # The folder's tokenizer is used like its other files.
        del config["scale_attn_by_inverse_layer_idx"]
        (folder / "config.json").write_text(json.dumps(config))
        letters = [chr(k) for k in range(33, 127)]
        (folder / "vocab.json").write_text(json.dumps({word: k for k, word in enumerate(letters + ["\u0120", "\u010a"])}))
        (folder / "merges.txt").write_text("#version: 0.2\n")
        self.assertIn("a line", self.ok("generate", "gpt2", "--weights", "hub", "--prompt", "a line", "--tokens", "3").out)
        (folder / "config.json").write_text('{"model_type": "roberta"}')
        self.fails(7, "eval", "bert", "--weights", "hub", says="this is RoBERTa: not supported, because")

    def test_other_peoples_weights_in_one_command(self):
        self.ok("train", "resnet20:width=4", "--data", "scenes:40,20", "--epochs", "1", "--out", "run")
        self.ok("weights", "convert", "run/model.safetensors", "theirs.pt")
        words = ("resnet20:width=4", "--data", "scenes:40,20", "--json")
        result = self.ok("eval", words[0], "--weights", "theirs.pt", "--classes", "10", *words[1:])
        self.assertIn("tensors are from theirs.pt (torchvision ResNet)", result.err)
        self.assertEqual(json.loads(result.out)["loss"], self.json("eval", "run", *words[1:])["loss"])
        self.assertIn("right", self.ok("predict", words[0], "--weights", "theirs.pt", "--data", "scenes:40,20", "--count", "3", "--no-image").out)
        self.fails(2, "eval", "resnet18", "--weights", "theirs.pt", says=["does not fit resnet18: ", "missing"])
        self.fails(2, "eval", "run", "--classes", "3", says="--weights")
        note = self.ok("train", "resnet20:width=4", "--weights", "theirs.pt", "--head", "8,relu", "--data", "scenes:40,20", "--epochs", "1").out
        self.assertIn("(torchvision ResNet)", " ".join(note.split()))
        self.assertIn("'linear.0.weight'", " ".join(note.split()))


if __name__ == "__main__":
    unittest.main()
