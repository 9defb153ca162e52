"""Training, validation and test parts of data sources, as the command tells and uses them."""
import random
import re
import unittest

from command import CommandTest, write_png


class Splits(CommandTest):
    def turn(self):
        """Rows whose class is their number modulo ten: each tenth row is of one class alone."""
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

    def test_lines_in_turn_are_in_every_part(self):
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


if __name__ == "__main__":
    unittest.main()
