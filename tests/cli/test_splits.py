"""Training, validation and test parts of data sources, as the command reports and uses them."""
import random
import re
import struct
import unittest

from command import CommandTest, write_png


class Splits(CommandTest):
    def turn(self):
        """Rows whose class is their number modulo ten: every tenth row has the same class."""
        numbers = random.Random(1)
        rows = [",".join([f"{numbers.random() + 2 * (k == i % 10):.3f}" for k in range(10)] + [str(i % 10)]) for i in range(2000)]
        (self.folder / "turn.csv").write_text(",".join(f"x{k}" for k in range(10)) + ",label\n" + "\n".join(rows) + "\n")

    def images(self, folder, count=4):
        for kind in ("cat", "dog"):
            (self.folder / folder / kind).mkdir(parents=True, exist_ok=True)
            for k in range(count):
                write_png(self.folder / folder / kind / f"p{k // 2}_{k}.png", [[6 * k] * 8] * 8)

    def test_three_parts_of_all_classes(self):
        self.turn()
        told = self.json("data", "info", "csv:turn.csv", "--json")
        self.assertEqual({part: told[part]["counts"] for part in told}, {"train": [162] * 10, "validation": [18] * 10, "test": [20] * 10})
        text = self.ok("data", "info", "csv:turn.csv").out
        self.assertRegex(text, r"(?s)^train +1620 of 2000 rows.*^validation +180 of 2000 rows.*^test +200 of 2000 rows".replace("^", "(?m:^)"))
        none = self.json("data", "info", "csv:turn.csv,validation=0,split=0", "--json")
        self.assertEqual((none["train"]["size"], none["validation"], none["test"]), (2000, None, None))
        self.assertRegex(self.ok("data", "info", "csv:turn.csv,validation=0").out, r"validation +none\n")

    def test_a_network_is_tested_on_every_class(self):
        self.turn()
        self.ok("train", "mlp:10-16-10", "--data", "csv:turn.csv", "--epochs", "6", "--quiet", "--out", "turn")
        told = self.json("eval", "turn", "--json")
        self.assertEqual(told["items"], 200)
        self.assertGreater(told["accuracy"], 0.95)

    def test_lines_of_alternating_classes_are_in_every_part(self):
        (self.folder / "lines.txt").write_text("water\tthe sea is wide\nearth\tthe land is far\n" * 60)
        self.ok("tokenizer", "train", "lines.txt", "--kind", "wordpiece", "--tokens", "60", "--out", "bert.json")
        told = self.json("data", "info", "lines:lines.txt", "--tokenizer", "bert.json", "--json")
        self.assertEqual([sum(told[part]["counts"]) for part in ("train", "validation", "test")], [97, 11, 12])
        self.assertEqual(told["test"]["counts"], [6, 6])
        self.assertLess(abs(told["validation"]["counts"][0] - told["validation"]["counts"][1]), 2)

    def test_folders_of_parts_by_other_names(self):
        for train, other in ("train", "valid"), ("Train", "Test"), ("Training", "Testing"), ("train", "validation"), ("train", "dev"):
            top = f"{train}-{other}"
            self.images(f"{top}/{train}", 10)
            self.images(f"{top}/{other}")
            told = self.json("data", "info", f"folder:{top},size=8,grey", "--json")
            part = "test" if other.lower().startswith("test") else "validation"
            self.assertEqual(told[part]["counts"], [4, 4])
            self.assertEqual(told["train"]["classes"], 2)
            self.assertEqual(told["test"] is None, part == "validation")
        self.images("lone/train")
        self.images("lone/plane")
        self.fails(3, "data", "info", "folder:lone", says=["would be called 'train'", "lone/train", "parts=no"])
        self.ok("data", "info", "folder:lone,parts=no,size=8")

    def test_notes_of_classes_that_a_part_lacks(self):
        (self.folder / "rare.csv").write_text("x,kind\n" + "".join(f"{k},often\n" for k in range(30)) + "31,rare\n")
        told = re.sub(r"\s+", " ", self.ok("data", "info", "csv:rare.csv").out)
        for part in "validation", "test":
            self.assertIn(f"note: rare.csv: the {part} part has no sample of 1 class that another part has: 'rare'", told)
        self.fails(3, "data", "info", "csv:rare.csv", "--strict", says=["'rare'", "strict"])

    def test_groups(self):
        self.images("photos", 40)
        told = self.json("data", "info", "folder:photos,size=8,grey,group=prefix", "--json")
        self.assertEqual([told[part]["counts"] for part in ("train", "validation", "test")], [[32, 32], [4, 4], [4, 4]])
        self.fails(2, "data", "info", "folder:photos,group=patient", says=["group=patient", "prefix"])
        self.fails(2, "data", "info", "folder:photos,group=prefix,stratify", says=["'group' or 'stratify'"])
        self.fails(2, "data", "info", "digits:20,10,split=0.5", says=["drawn", "leave out 'split'"])

    def test_groups_are_counted(self):
        rows = "".join(f"{k % 7},{k // 10},{'ill' if k % 2 else 'well'}\n" for k in range(200))
        (self.folder / "scans.csv").write_text("x,patient,kind\n" + rows)
        told = self.ok("train", "mlp:1-4-2", "--data", "csv:scans.csv,group=patient", "--epochs", "1", "--strict", "--out", "grouped").out
        self.assertIn("split by group 'patient': 20 groups, 16 for training, 2 for validation, 2 for testing", told)
        self.fails(2, "data", "info", "csv:scans.csv,group=patient,fold=1/50", says=["20 groups of 'patient'", "20 folds at most"])
        self.fails(2, "train", "mlp:1-4-2", "--data", "csv:scans.csv,group=patient", "--folds", "30", "--out", "many", says="20 folds at most")
        self.assertFalse((self.folder / "many").exists())
        alone = "x,id,kind\n" + "".join(f"{k},{k},{'ill' if k % 2 else 'well'}\n" for k in range(40))
        (self.folder / "alone.csv").write_text(alone)
        self.assertIn("keeps nothing together", re.sub(r"\s+", " ", self.ok("data", "info", "csv:alone.csv,group=id").out))
        self.fails(3, "data", "info", "csv:alone.csv,group=id", "--strict", says="each of 40 groups is one sample")

    def test_shares_that_leave_nothing(self):
        self.turn()
        self.fails(2, "data", "info", "csv:turn.csv,split=0.9999", says=["0.9999 of 2000 samples", "leaves none for training"])
        self.fails(2, "data", "info", "csv:turn.csv,test=0.2", says=["test=0.2 names files", "split=0.2"])
        self.fails(2, "train", "mlp:784-8-10", "--data", "digits:20,10", "--folds", "3", "--out", "drawn", says="no folds of such a source")

    def test_folders_of_parts_by_compound_names(self):
        self.images("parts/train_images", 10)
        self.images("parts/test_images")
        told = self.json("data", "info", "folder:parts,size=8,grey", "--json")
        self.assertEqual((told["train"]["counts"], told["test"]["counts"]), ([9, 9], [4, 4]))
        said = re.sub(r"\s+", " ", self.ok("data", "info", "folder:parts,size=8", "--strict").out)
        self.assertIn("sub-folders are parts: train_images (training), test_images (test)", said)
        self.images("bottles/bottle/train")
        self.images("bottles/bottle/test")
        self.fails(3, "data", "info", "folder:bottles", says=["is the class 'bottle'", "folder:bottles/bottle"])

    def test_labels_of_arrays_by_their_values(self):
        self.array("x.npy", "<f4", (60, 2), [float(k % 2 + c) for k in range(60) for c in (0, 1)])
        self.array("y.npy", "<i8", (60,), [10 + 10 * (k % 2) for k in range(60)])
        self.array("y01.npy", "<i8", (60,), [k % 2 for k in range(60)])
        told = self.ok("train", "mlp:2-8-2", "--data", "npy:x.npy,y.npy", "--epochs", "8", "--batch", "8", "--strict", "--out", "valued").out
        self.assertIn("the labels are the names of 2 classes: 10, 20", told)
        own = self.json("eval", "valued", "--json")
        self.assertEqual((own["items"], own["accuracy"]), (6, 1))
        whole = self.json("eval", "valued", "--data", "npy:x.npy,y.npy", "--part", "all", "--json")
        self.assertEqual((whole["items"], whole["accuracy"]), (60, 1))
        self.assertRegex(self.ok("predict", "valued", "x.npy", "--count", "1").out, r"class (10|20)")
        self.fails(3, "eval", "valued", "--data", "npy:x.npy,y01.npy", says=["'0' is not one of the model's classes (10, 20)"])

    def array(self, name, dtype, shape, values):
        header = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        body = struct.pack(f"<{len(values)}{'f' if dtype == '<f4' else 'q'}", *values)
        (self.folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body)

    def test_a_resume_says_which_classes_changed(self):
        self.images("pets", 20)
        self.ok("train", "mlp:192-4-2", "--data", "folder:pets,size=8", "--epochs", "3", "--batch", "8", "--quiet",
                "--set", "max_steps=2", "--set", "checkpoint_steps=1", "--out", "run")
        for weights in "model.safetensors", "best.safetensors":  # the state before the first best weights
            (self.folder / "run" / weights).unlink()
        (self.folder / "pets" / "cat").rename(self.folder / "pets" / "feline")
        self.fails(2, "train", "--resume", "run", "--set", "max_steps=0",
                   says="its classes changed: the run learns 'cat', the data has 'feline' instead")


if __name__ == "__main__":
    unittest.main()
