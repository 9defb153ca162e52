"""How many of the samples that eval measures training has seen: tables, arrays, images and texts under other names and paths."""
import pathlib
import random
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from command import CommandTest, table, write_npy, write_png  # noqa: E402


class Seen(CommandTest):
    """Samples that training has seen are counted, whatever path, name or kind of source they come from."""

    def seen(self, run, data, *more):
        figures = self.json("eval", run, "--data", data, "--json", *more)
        note = [note["text"] for note in figures["notes"] if "training has seen" in note["text"]]
        self.assertEqual(bool(note), figures["seen"] > 0, figures)
        if note:
            self.assertIn(f"{figures['seen']} of {figures['items']} samples", note[0])
            self.assertIn(note[0], self.ok("eval", run, "--data", data, *more).err)
            self.fails(3, "eval", run, "--data", data, "--strict", *more, says="training has seen")
        return figures["items"], figures["seen"]

    def test_tables(self):
        for name, text in {"rows.csv": table(200, 1), "copy.csv": table(200, 1), "others.csv": table(50, 2)}.items():
            (self.folder / name).write_text(text)
        head, *lines = table(200, 1).splitlines(keepends=True)
        # Other columns, in another order.
        (self.folder / "permuted.csv").write_text("label,extra,b,a\n" + "".join(f"{c.strip()},7,{b},{a}\n" for a, b, c in (line.split(",") for line in lines)))
        self.ok("train", "mlp:2-8-2", "--data", "csv:rows.csv,split=0.25,validation=0.2", "--epochs", "1", "--quiet", "--out", "tables")
        own = self.json("eval", "tables", "--json")
        self.assertEqual((own["seen"], own["seen_exact"], own["notes"]), (0, True, []))
        self.assertIn("seen in training none of 50 samples", self.ok("eval", "tables").out)
        self.assertEqual(self.json("eval", "tables", "--part", "train", "--json", "--strict")["seen"], 120)
        self.assertEqual(self.seen("tables", "csv:others.csv"), (50, 0))
        self.assertEqual(self.seen("tables", "csv:copy.csv"), (200, 120))
        self.assertEqual(self.seen("tables", "csv:permuted.csv"), (200, 120))
        self.assertEqual(self.seen("tables", "csv:others.csv,test=rows.csv"), (200, 120))
        self.assertIn("training has seen 120 of 200 samples of rows.csv", self.ok("predict", "tables", "rows.csv", "--json").err)
        self.fails(3, "predict", "tables", "copy.csv", "--json", "--strict", says="training has seen")
        self.fails(3, "predict", "tables", "--data", "csv:copy.csv", "--json", "--strict", says="training has seen")
        self.assertNotIn("training has seen", self.ok("predict", "tables", "others.csv", "--json").err)
        self.assertIn("training has seen 120 of 200 samples of copy.csv", self.ok("predict", "tables", "copy.csv", "--write").err)
        self.fails(3, "predict", "tables", "copy.csv", "--write", "--strict", says="training has seen")
        # A model without its run does not know; nor does a run without its record.
        (self.folder / "alone.safetensors").write_bytes((self.folder / "tables" / "model.safetensors").read_bytes())
        alone = self.json("eval", "alone.safetensors", "--data", "csv:copy.csv", "--json")
        self.assertIsNone(alone["seen"])
        self.assertIn("seen in training not known", self.ok("eval", "alone.safetensors", "--data", "csv:copy.csv").out)
        record = self.folder / "tables" / "training_samples.safetensors"
        whole = record.read_bytes()
        record.write_bytes(whole[:-9])
        self.assertIn("training_samples.safetensors", self.ok("eval", "tables", "--data", "csv:copy.csv").out)
        self.fails(3, "eval", "tables", "--data", "csv:copy.csv", "--strict", says="training_samples.safetensors")
        record.write_bytes(whole)
        # A run that is resumed keeps it.
        self.ok("train", "--resume", "tables", "--epochs", "2", "--quiet")
        self.assertEqual(self.seen("tables", "csv:copy.csv"), (200, 120))

    def test_a_name_alone_does_not_make_data_the_runs_own(self):
        (self.folder / "work" / "deep").mkdir(parents=True)
        (self.folder / "rows.csv").write_text(table(200, 1))
        self.ok("train", "mlp:2-8-2", "--data", "csv:rows.csv,split=0.25", "--epochs", "1", "--quiet", "--out", "work/deep/run")
        run = "work/deep/run"
        (self.folder / "rows.csv").rename(self.folder / "work" / "rows.csv")
        figures = self.json("eval", run, "--json")
        self.assertEqual((figures["part"], figures["items"], figures["notes"]), ("test", 50, []))
        # A stranger of the name lies nearer, from the working folder and from the run.
        (self.folder / "rows.csv").write_text(table(70, 9))
        (self.folder / "work" / "deep" / "rows.csv").write_text(table(80, 8))
        self.assertEqual(self.json("eval", run, "--json")["accuracy"], figures["accuracy"])
        for stranger, count in (("rows.csv", 70), ("work/deep/rows.csv", 80)):
            found = self.json("eval", run, "--data", f"csv:{stranger}", "--json")
            self.assertEqual((found["part"], found["items"], found["seen"]), ("all", count, 0))
        (self.folder / "work" / "rows.csv").rename(self.folder / "elsewhere.csv")
        (self.folder / "rows.csv").unlink()
        self.fails(4, "eval", run, says=["has the same name, but the run was trained on other samples", "--data"])
        self.assertEqual(self.json("eval", run, "--data", "csv:work/deep/rows.csv", "--json")["part"], "all")
        (self.folder / "new").mkdir()
        (self.folder / "elsewhere.csv").rename(self.folder / "new" / "rows.csv")
        moved = self.json("eval", run, "--data", "csv:new/rows.csv", "--json")
        self.assertEqual((moved["part"], moved["items"], moved["accuracy"]), ("test", 50, figures["accuracy"]))
        self.assertIn("is the data that the run was trained on", moved["notes"][0]["text"])
        self.fails(3, "eval", run, "--data", "csv:new/rows.csv", "--strict", says="is the data that the run was trained on")

    def test_images_that_cannot_be_decoded_count_nowhere(self):
        for part, count in (("train", 8), ("val", 2), ("test", 3)):
            for name, red in (("dark", 40), ("light", 210)):
                (self.folder / "cut" / part / name).mkdir(parents=True)
                for k in range(count):
                    write_png(self.folder / "cut" / part / name / f"{k}.png", [[red + count + k] * 24] * 8, channels=3)
            (self.folder / "cut" / part / "dark" / "none.png").write_bytes(b"no image")
        out = self.ok("train", "mlp:192-4-2", "--data", "folder:cut,size=8", "--epochs", "1", "--batch", "4", "--out", "decoded").out
        self.assertRegex(out, r"best validation accuracy [\d.]+ % \(epoch 1, 4 samples\)")
        self.assertRegex(out, r"test accuracy [\d.]+ % \(epoch 1, 6 samples, measured once\)")
        for part, items in (("validation", 4), ("test", 6)):
            out = self.ok("eval", "decoded", "--part", part).out
            self.assertRegex(out, rf"{part} part of folder:cut,size=8: {items} of \d+ samples\n")
            self.assertIn(f"seen in training none of {items} samples\n", out)

    def test_arrays(self):
        draw = random.Random(3)
        for name, count in (("x", 60), ("t", 20), ("new", 30)):
            pairs = [(draw.random(), draw.random()) for _ in range(count)]
            for copy in "", "copy_":
                write_npy(self.folder / f"{copy}{name}.npy", "<f4", (count, 2), [v for pair in pairs for v in pair], "f")
                write_npy(self.folder / f"{copy}{name}_y.npy", "<i8", (count,), [int(a > b) for a, b in pairs], "q")
        self.ok("train", "mlp:2-8-2", "--data", "npy:x.npy,x_y.npy,t.npy,t_y.npy,validation=0", "--epochs", "1", "--quiet", "--out", "arrays")
        self.assertEqual(self.json("eval", "arrays", "--json")["seen"], 0)
        self.assertEqual(self.seen("arrays", "npy:copy_x.npy,copy_x_y.npy"), (60, 60))
        self.assertEqual(self.seen("arrays", "npy:copy_t.npy,copy_t_y.npy"), (20, 0))
        self.assertEqual(self.seen("arrays", "npy:new.npy,new_y.npy,copy_x.npy,copy_x_y.npy"), (60, 60))
        self.assertIn("training has seen 60 of 60 samples of copy_x.npy", self.ok("predict", "arrays", "copy_x.npy", "--json").err)

    def test_images(self):
        draw = random.Random(5)
        for part, count in (("Train", 12), ("Test", 4), ("New", 3)):
            for name, red in (("dark", 40), ("light", 210)):
                (self.folder / "all" / part / name).mkdir(parents=True)
                for k in range(count):
                    rows = [[min(255, red + draw.randrange(30)) for _ in range(36)] for _ in range(12)]
                    write_png(self.folder / "all" / part / name / f"{k}.png", rows, channels=3)
        (self.folder / "all" / "New").rename(self.folder / "fresh")
        names = [f"all/{part}/{name}/{k}.png,{name}" for part, count in (("Train", 12), ("Test", 4)) for name in ("dark", "light") for k in range(count)]
        (self.folder / "list.csv").write_text("\n".join(names) + "\n")
        shutil.copytree(self.folder / "all" / "Train", self.folder / "copied")
        for name in "dark", "light":  # under other names
            for k, file in enumerate(sorted((self.folder / "copied" / name).iterdir())):
                file.rename(file.parent / f"photo {k}.png")
        train = ("train", "resnet20:width=4", "--epochs", "1", "--quiet", "--out")
        self.ok(*train, "images", "--data", "folder:all,size=12,validation=0")
        own = self.json("eval", "images", "--json")
        self.assertEqual((own["part"], own["items"], own["seen"]), ("test", 8, 0))
        self.assertEqual(self.seen("images", "folder:all/Train,size=12"), (24, 24))
        self.assertEqual(self.seen("images", "list:list.csv,size=12"), (32, 24))
        self.assertEqual(self.seen("images", "folder:copied,size=12"), (24, 24))
        self.assertEqual(self.seen("images", "folder:fresh,size=12"), (6, 0))
        self.ok(*train, "part", "--data", "folder:all/Train,size=12,split=0.25,validation=0")
        self.assertEqual(self.seen("part", "folder:all,size=12", "--part", "all"), (32, 18))
        files = [f"all/{part}/dark/{k}.png" for part in ("Train", "Test") for k in range(4)]
        self.assertIn("training has seen 4 of 8 samples of the images", self.ok("predict", "images", *files, "--json").err)
        self.fails(3, "predict", "images", *files, "--json", "--strict", says="training has seen")
        # Other images under the names of the run's are not its own.
        (self.folder / "all").rename(self.folder / "gone")
        shutil.copytree(self.folder / "gone", self.folder / "other" / "all")
        self.assertEqual(self.json("eval", "images", "--data", "folder:other/all", "--json")["part"], "test")
        for file in (self.folder / "other" / "all" / "Train").rglob("*.png"):
            write_png(file, [[draw.randrange(256) for _ in range(36)] for _ in range(12)], channels=3)
        self.assertEqual(self.seen("images", "folder:other/all"), (32, 0))

    def test_texts(self):
        draw = random.Random(7)
        words = "the sea ship man whale old deep blue sky wind sail captain harbor sand and of".split()
        book = " ".join(draw.choice(words) for _ in range(4000))
        (self.folder / "book.txt").write_text(book)
        (self.folder / "page.txt").write_text(book[1003:5000])
        (self.folder / "other.txt").write_text(" ".join(draw.choice(words) for _ in range(900)))
        self.ok("train", "gpt2:layers=1,heads=2,width=16,context=48", "--data", "text:book.txt,by=chars", "--epochs", "1", "--set", "max_steps=3", "--quiet", "--out", "texts")
        self.assertEqual(self.json("eval", "texts", "--json")["seen"], 0)
        items, seen = self.seen("texts", "text:page.txt,by=chars")
        self.assertEqual((items, seen), (83, 83))
        self.assertEqual(self.seen("texts", "text:other.txt,by=chars")[1], 0)


if __name__ == "__main__":
    unittest.main()
