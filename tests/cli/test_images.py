"""Photographs of any size, in folders: inspected, trained on, and predicted with only the model file."""
import io
import pathlib
import shutil
import tarfile
import unittest

from command import CommandTest, write_png


def photo(path, width, height, colour, down):
    """Stripes of a colour: vertical for one class, horizontal for the other."""
    write_png(path, [sum((list(colour) if ((x if down else y) // 6) % 2 else [16] * 3 for x in range(width)), []) for y in range(height)], 3)


class ImageFiles(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for kind in ("across", "down"):
            folder = cls("test_folder").folder / "photos" / kind
            folder.mkdir(parents=True)
            for k in range(20):
                photo(folder / f"{k:02}.png", 50 + k, 70 - 2 * k, (200, 40 + 10 * k, 60), kind == "down")
        broken = cls("test_folder").folder / "photos" / "down" / "03.png"
        broken.write_bytes(broken.read_bytes()[:90])

    def test_folder(self):
        info = self.json("data", "info", "folder:photos,size=24", "--json")
        self.assertEqual([info[part]["counts"] for part in ("train", "validation", "test")], [[16, 15], [2, 2], [2, 2]])
        self.assertEqual(info["train"]["input"], [3, 24, 24])
        self.assertEqual(info["train"]["broken"], ["photos/down/03.png"])
        out = self.ok("train", "resnet20", "--data", "folder:photos", "--epochs", "3", "--batch", "8", "--lr", "0.02", "--out", "run").out
        for word in ("waited for", "1 image that cannot be decoded", "photos/down/03.png"):
            self.assertIn(word, out)
        self.assertEqual(self.json("eval", "run", "--json")["items"], 4)
        # The model file stores how to prepare images, and the class names.
        (self.folder / "elsewhere").mkdir()
        shutil.copy(self.folder / "run" / "model.safetensors", self.folder / "elsewhere" / "m.safetensors")
        image = "photos/down/05.png"
        rows = [self.json("predict", model, image, "--json")[0] for model in ("run", "elsewhere/m.safetensors")]
        self.assertEqual(rows[0], rows[1])
        self.assertIn(rows[0]["class_name"], ("across", "down"))
        self.assertIn("resize,center_crop", rows[0]["prepared"])
        # The prediction for a file equals the prediction from the data source that contains it.
        first = self.json("predict", "run", "--data", "folder:photos", "--count", "1", "--json")[0]
        each = self.json("predict", "run", *(f"photos/across/{k:02}.png" for k in range(20)), "--json")
        self.assertIn(first["probabilities"], [row["probabilities"] for row in each])
        self.assertTrue(self.json("verify", "run", "--steps", "4", "--json")["passed"])
        self.fails(3, "train", "resnet20", "--data", "folder:photos", "--broken", "error", "--epochs", "1", "--out", "unread", says=["03.png"])
        # A run that prints less, and folds, tell of the image too; each fold reads it, but it is one image.
        for name, words in (("quiet", ["--quiet"]), ("folds", ["--folds", "2"])):
            out = self.ok("train", "resnet20", "--data", "folder:photos", "--epochs", "1", "--batch", "8", "--out", name, *words).out
            self.assertIn("1 image that cannot be decoded: photos/down/03.png", out[out.rindex("best validation" if name == "quiet" else "2 folds,"):])

    def test_ten_crops(self):
        self.ok("train", "resnet20", "--data", "folder:photos", "--epochs", "1", "--batch", "8", "--set", "preprocess=resize,ten_crop", "--out", "ten")
        row = self.json("predict", "ten", "photos/down/05.png", "--json")[0]
        self.assertIn("resize,ten_crop", row["prepared"])
        first = self.json("predict", "ten", "--data", "folder:photos", "--count", "1", "--json")[0]
        self.assertEqual(first["probabilities"], self.json("predict", "ten", "photos/across/09.png", "--json")[0]["probabilities"])
        # Each decodable image counts once for any way of fitting; the broken one does not count.
        figures = [self.json("eval", "ten", "--data", "folder:photos", "--part", "all", "--json", *more) for more in ((), ("--preprocess", "resize,center_crop"))]
        for one in figures:
            self.assertEqual(one["items"], 39)
            self.assertEqual([row["support"] for row in one["classes"]], [20, 19])
            self.assertEqual(one["broken"], ["photos/down/03.png"])
        self.assertNotEqual(figures[0]["loss"], figures[1]["loss"])
        self.assertIn("left out: 1 image", self.ok("predict", "ten", "--data", "folder:photos", "--part", "all", "--start", "22", "--count", "3", "--no-image").err)
        self.assertEqual(len(self.json("predict", "ten", "--data", "folder:photos", "--part", "all", "--start", "22", "--json")), 17)
        self.fails(2, "eval", "ten", "--preprocess", "ten_crop,resize", says=["--preprocess", "must be the last"])
        self.fails(2, "train", "resnet20", "--data", "folder:photos", "--augment", "ten_crop", "--out", "no", says=["ten_crop", "evaluation"])
        out = self.ok("data", "show", "folder:photos", "ten.png", "--rows", "2", "--columns", "3", "--size", "32", "--preprocess", "resize,ten_crop").out
        self.assertIn("436 x 76 pixels", out)

    def test_a_finished_run_tells_the_validation_samples_that_it_measured(self):
        for part, count in (("train", 8), ("val", 4)):
            for kind in ("across", "down"):
                (self.folder / "cut" / part / kind).mkdir(parents=True)
                for k in range(count):
                    write_png(self.folder / "cut" / part / kind / f"{k}.png", [[(40 * k + 9 * x) % 256 for x in range(32)]] * 32)
        (self.folder / "cut/val/down/9.png").write_bytes(b"not an image")
        ended = self.ok("train", "resnet20:width=2", "--data", "folder:cut", "--epochs", "1", "--batch", "4", "--out", "cut_run").out
        again = self.ok("train", "--resume", "cut_run").out
        for text in (ended, again):
            self.assertRegex(" ".join(text.split()), r"best validation accuracy [\d.]+ % \(epoch 1, 8 samples\)")
        # Broken images that equal training images have not been predicted.
        (self.folder / "cut/train/down/9.png").write_bytes(b"not an image")
        self.ok("train", "resnet20:width=2", "--data", "folder:cut/train,parts=no,split=0", "--epochs", "1", "--batch", "4", "--quiet", "--out", "whole")
        for words in (("--data", "list:cut.csv"), ("--data", "list:cut.csv", "--strict", "--allow", "seen")):
            (self.folder / "cut.csv").write_text("cut/train/down/1.png,down\ncut/train/down/9.png,down\ncut/val/down/1.png,down\n")
            result = self.run_command("predict", "whole", *words, "--no-image")
            self.assertRegex(" ".join(result.err.split()), r"training has seen \d of 2 samples", words)

    def test_background(self):
        """The background colour is stored with the model, and dropped transparency is reported."""
        for kind in ("left", "right"):
            (self.folder / "clear" / kind).mkdir(parents=True)
            for k in range(12):
                side = range(16) if kind == "left" else reversed(range(16))
                row = sum(([20 * k, 0, 0, 16 * x] for x in side), [])
                write_png(self.folder / "clear" / kind / f"{k:02}.png", [row] * 16, 4)
        file = "clear/right/05.png"
        rows = {}
        for name, data in (("white", "folder:clear,background=white"), ("dropped", "folder:clear")):
            out = self.ok("train", "resnet20:width=4", "--data", data, "--epochs", "1", "--batch", "8", "--set", "augment=none", "--out", name).out
            self.assertEqual("transparency was dropped from" in out, name == "dropped")
            shutil.copy(self.folder / name / "model.safetensors", self.folder / f"{name}.safetensors")
            rows[name] = self.json("predict", f"{name}.safetensors", file, "--json")[0]["probabilities"]
            said = self.ok("predict", f"{name}.safetensors", file, "--no-image").err
            self.assertEqual("transparency was dropped" in said, name == "dropped")
        # The same image composed by hand.
        row = sum(([(100 * 16 * x + 255 * (255 - 16 * x) + 127) // 255] + [(255 * (255 - 16 * x) + 127) // 255] * 2 for x in reversed(range(16))), [])
        write_png(self.folder / "composed.png", [row] * 16, 3)
        self.assertEqual(rows["white"], self.json("predict", "white.safetensors", "composed.png", "--json")[0]["probabilities"])
        write_png(self.folder / "kept.png", [[100, 0, 0] * 16] * 16, 3)
        self.assertEqual(rows["dropped"], self.json("predict", "dropped.safetensors", "kept.png", "--json")[0]["probabilities"])
        self.fails(3, "train", "resnet20:width=4", "--data", "folder:clear", "--strict", "--epochs", "1", "--out", "strict", says=["transparency was dropped"])
        self.fails(2, "train", "resnet20", "--data", "folder:clear", "--set", "background=clear", "--out", "clearly", says=["clear", "is not a colour"])

    def test_videos(self):
        """Training, evaluation and prediction read frames; each frame of a damaged video is named."""
        if not self.json("doctor", "--json")["videos"]:
            print("skipped: this build or machine has no FFmpeg")
            return
        videos = pathlib.Path(__file__).resolve().parents[1] / "io" / "videos"
        for kind, names in {"a": ("h264.mp4", "rotated.mov"), "b": ("mjpeg.avi", "vp8.webm")}.items():
            (self.folder / "films" / kind).mkdir(parents=True)
            for name in names:
                shutil.copy(videos / name, self.folder / "films" / kind / name)
        (self.folder / "films" / "b" / "short.avi").write_bytes((videos / "mjpeg.avi").read_bytes()[:3000])
        info = self.json("data", "info", "folder:films,size=24,frames=4,split=0,validation=0", "--json")["train"]
        self.assertEqual(info["size"], 20)
        self.assertTrue(all(name.startswith("films/b/short.avi, frame ") for name in info["broken"]))
        self.assertEqual(info["counts"], [8, 12 - len(info["broken"])])
        shutil.copytree(self.folder / "films", self.folder / "tested-films")
        self.ok("train", "resnet20", "--data", "folder:films,frames=4,test=tested-films", "--epochs", "1", "--batch", "8", "--out", "film")
        self.assertEqual(self.json("eval", "film", "--json")["items"], 20 - len(info["broken"]))
        rows = self.json("predict", "film", "films/b/vp8.webm", "--count", "4", "--json")
        self.assertEqual([row["name"] for row in rows], [f"films/b/vp8.webm, frame {k} of 4" for k in (1, 2, 3, 4)])
        self.fails(4, "predict", "film", "none.mp4", says=["none.mp4"])

    def test_classes_by_name(self):
        """A test folder without one of the classes keeps the numbers of the others."""
        self.ok("train", "resnet20", "--data", "folder:photos", "--epochs", "1", "--batch", "8", "--out", "named")
        only = self.folder / "only" / "down"
        only.mkdir(parents=True)
        for k in range(3):
            photo(only / f"{k}.png", 60, 60, (200, 40, 60), True)
        row = self.json("predict", "named", "--data", "folder:only", "--count", "1", "--json")[0]
        self.assertEqual(row["label"], 1)
        other = self.folder / "others" / "owl"
        other.mkdir(parents=True)
        photo(other / "1.png", 60, 60, (200, 40, 60), True)
        self.fails(3, "eval", "named", "--data", "folder:others", says=["owl"])
        for command in ("eval", "predict"):
            self.fails(3, command, "named", "--data", "scenes:8,8", says=["'ball'", "(across, down)"])
        before = (self.folder / "named" / "model.safetensors").read_bytes()
        shutil.copytree(self.folder / "photos" / "across", self.folder / "fruit" / "apple")
        shutil.copytree(self.folder / "photos" / "down", self.folder / "fruit" / "pear")
        self.fails(2, "train", "--resume", "named", "--data", "folder:fruit", "--epochs", "2", says=["(apple, pear)", "(across, down)"])
        self.assertEqual((self.folder / "named" / "model.safetensors").read_bytes(), before)

    def test_another_size(self):
        """Evaluation and prediction take the same sizes: the layers decide about another size."""
        self.ok("train", "resnet20:width=4", "--data", "scenes:40,10", "--epochs", "1", "--out", "drawn")
        self.ok("eval", "drawn", "--data", "scenes:8,8,size=40")
        self.assertEqual(len(self.json("predict", "drawn", "--data", "scenes:8,8,size=40", "--json")), 8)

    def test_a_trained_network_does_not_need_its_file(self):
        (self.folder / "net.toml").write_text(self.ok("summary", "resnet20:width=4", "--toml").out, encoding="utf-8")
        self.ok("train", "net.toml", "--data", "folder:photos", "--epochs", "1", "--batch", "8", "--out", "own")
        (self.folder / "net.toml").unlink()
        self.assertIn(self.json("predict", "own", "photos/down/01.png", "--json")[0]["class_name"], ("across", "down"))

    def test_sub_folders_are_classes(self):
        loose = self.folder / "loose"
        loose.mkdir()
        photo(loose / "1.png", 20, 20, (200, 40, 60), True)
        self.fails(3, "data", "info", "folder:loose", says=["sub-folders are the classes", "loose/cats/1.png"])

    def test_every_format_in_one_folder(self):
        """GIF files count as images; of an animation the first image is read."""
        source = pathlib.Path(__file__).resolve().parents[1] / "io" / "images"
        names = ["p.gif", "animated.gif", "interlaced.gif", "rgb.png", "la.png", "down.bmp", "bytes.ppm", "exif6.jpg"]
        for kind in ("one", "two"):
            folder = self.folder / "formats" / kind
            folder.mkdir(parents=True)
            for k, name in enumerate(names):
                ending = name.split(".")[1]
                shutil.copy(source / name, folder / f"{k}.{ending.upper() if k == 0 else ending}")
        self.assertEqual(self.samples("folder:formats,size=8,split=0.25"), [len(names)] * 2)

    def test_order_of_classes_and_empty_folders(self):
        """String order, as in torchvision; a folder without images is reported."""
        for kind in ("1", "2", "10", "11"):
            (self.folder / "numbered" / kind).mkdir(parents=True)
            for k in range(10):
                photo(self.folder / "numbered" / kind / f"{k}.png", 9, 8, (200, 20 * k, 60), True)
        (self.folder / "numbered" / "empty").mkdir()
        (self.folder / "numbered" / "10" / "notes").write_text("no image")
        told = self.ok("data", "info", "folder:numbered,size=8")
        words = " ".join(told.out.split())
        self.assertIn("samples per class: 1: 8, 10: 8, 11: 8, 2: 8", words)
        self.assertIn("1 folder contains no images and is not a class: empty", words)
        self.assertIn("1 file is not an image by its extension and was left out", words)
        self.assertIn("samples per class: 1: 8, 2: 8, 10: 8, 11: 8", self.ok("data", "info", "folder:numbered,size=8,order=natural").out)
        self.fails(3, "data", "info", "folder:numbered,size=8", "--strict", says="refused because 'strict' is on")

    def test_lists_with_headers_quotes_and_marks(self):
        """A header is not an image; quotes and a byte order mark are not part of paths."""
        rows = [(f"photos/{kind}/{k:02}.png", kind) for kind in ("across", "down") for k in range(10, 20)]
        plain = "".join(f"{path},{kind}\n" for path, kind in rows)
        quoted = "".join(f'"{path}","{kind}"\n' for path, kind in rows)
        for text in (plain, "filename,label\n" + plain, "\ufefffilename,label\n" + plain, "\ufeff" + plain, quoted, '"path","class"\n' + quoted,
                     "path\tlabel\n" + plain.replace(",", "\t")):
            (self.folder / "list.csv").write_text(text, encoding="utf-8")
            self.assertEqual(self.samples("list:list.csv,size=8"), [10, 10], text[:40])

    def test_shards_with_long_names(self):
        """Members with names over 100 bytes are read."""
        image = (self.folder / "photos" / "down" / "05.png").read_bytes()
        for name, kind in (("pax.tar", tarfile.PAX_FORMAT), ("gnu.tar", tarfile.GNU_FORMAT)):
            with tarfile.open(self.folder / name, "w", format=kind) as shard:
                for k in range(20):
                    for ending, data in ((".png", image), (".cls", str(k % 2).encode())):
                        member = tarfile.TarInfo("d" * 120 + f"/{k:03}{ending}")
                        member.size = len(data)
                        shard.addfile(member, io.BytesIO(data))
            self.assertEqual(self.samples(f"shards:{name},size=8"), [10, 10], name)

    def test_show(self):
        out = self.ok("data", "show", "folder:photos", "sheet.png", "--rows", "2", "--columns", "3", "--size", "32",
                      "--augment", "resized_crop,flip,jitter=0.4:0.4:0.4:0.1,randaugment").out
        self.assertIn("112 x 76 pixels", out)
        first = (self.folder / "sheet.png").read_bytes()
        self.ok("data", "show", "folder:photos", "again.png", "--rows", "2", "--columns", "3", "--size", "32",
                "--augment", "resized_crop,flip,jitter=0.4:0.4:0.4:0.1,randaugment")
        self.assertEqual(first, (self.folder / "again.png").read_bytes())
        self.ok("data", "show", "scenes:20,10", "scenes.png", "--augment", "crop=4,flip,rotate=20", "--rows", "2")
        self.fails(2, "data", "show", "folder:photos", "x.png", "--augment", "flop", says=["did you mean 'flip'"])
        self.fails(2, "train", "resnet20", "--augment", "resized_crop,flop", says=["--augment", "flip"])
        self.fails(2, "train", "resnet20", "--data", "folder:photos", "--augment-on", "gpu", "--out", "no", says=["augment_on", "on the CPU"])
        self.fails(2, "train", "resnet20", "--data", "folder:photos", "--augment-on", "moon", "--out", "no", says=["auto, cpu"])
        self.assertIn("resized_crop[=SIDE:LOW:HIGH:LOW_RATIO:HIGH_RATIO]", self.ok("data", "show", "--help").out)


if __name__ == "__main__":
    unittest.main()
