"""Paths of every kind: loops of links, pipes and devices, bytes that are not UTF-8, words a shell would split, runs that were moved."""
import json
import os
import pathlib
import shlex
import struct
import subprocess
import unittest

from command import TENON, CommandTest, write_png

TINY = ["--data", "digits:200,50", "--epochs", "1"]
SOON = {"timeout": 30}


class Unreadable(CommandTest):
    def test_a_loop_of_links(self):
        os.symlink("loop", self.folder / "loop")
        for words in (["eval", "loop"], ["verify", "loop"], ["summary", "loop"], ["inspect", "loop"], ["train", "--resume", "loop"],
                      ["train", "lenet5", *TINY, "--out", "loop/run"], ["train", "--config", "loop"],
                      ["data", "info", "csv:loop"], ["data", "info", "idx:loop"], ["data", "info", "npy:loop,loop"]):
            result = self.fails(4, *words, says="loop", **SOON)
            self.assertNotIn("filesystem error", result.err)

    def test_pipes_and_devices_end_in_an_error(self):
        os.mkfifo(self.folder / "pipe")
        for path, kind in (("pipe", "a pipe"), ("/dev/zero", "a device"), ("/dev/null", "a device")):
            for words in (["eval", path], ["train", "--config", path], ["data", "info", f"csv:{path}"], ["data", "info", f"npy:{path},{path}"]):
                self.fails(4, *words, says=[path, kind], **SOON)
        self.ok("train", "lenet5", *TINY, "--out", "run")
        for path in ("pipe", "/dev/zero"):
            self.fails(4, "predict", "run", path, says=path, **SOON)

    def test_a_zero_byte_in_a_path(self):
        (self.folder / "cut").write_text("1,2\n")
        (self.folder / "zero.toml").write_text('model = "lenet5"\ndata = "csv:cut\\u0000short"\n')
        self.fails(4, "train", "--config", "zero.toml", says="zero byte", **SOON)

    def test_names_that_are_not_utf8(self):
        for words in ([b"train", b"lenet5", b"--out", b"r\xffn"], [b"eval", b"r\xffn"], [b"train", b"--out=\xc0\xaf", b"lenet5"]):
            done = subprocess.run([os.fsencode(TENON), *words], cwd=self.folder, env=self.environment, capture_output=True, timeout=30)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(b"is not UTF-8", done.stderr)
            self.assertIn(b"\\x", done.stderr)
            done.stderr.decode()
        self.assertEqual(list(self.folder.glob("r*")), [], "nothing was started")


class Descriptors(CommandTest):
    def test_messages_do_not_enter_the_files_of_a_run_started_with_closed_descriptors(self):
        words = ["train", "lenet5", *TINY, "--set", "max_steps=2"]
        for name, closed in (("out", ">&-"), ("in-out", "<&- >&-"), ("err", "2>&-"), ("all", "<&- >&- 2>&-")):
            with self.subTest(closed):
                line = shlex.join([TENON, *words, "--out", name]) + " " + closed
                done = subprocess.run(["sh", "-c", line], cwd=self.folder, env=self.environment, capture_output=True, timeout=120)
                self.assertEqual(done.returncode, 0, done)
                run = self.folder / name
                for row in (run / "log.jsonl").read_text().splitlines():
                    self.assertIsInstance(json.loads(row), dict)
                for path in run.rglob("*"):
                    if path.is_file():
                        self.assertNotIn(b"run folder", path.read_bytes(), path)
                self.assertNotIn("lenet5", (run / "lock").read_text())
                self.ok("eval", name)


@unittest.skipIf(os.geteuid() != 0, "only root makes links of others")
class Caches(CommandTest):
    """Caches of another user: nothing is read, created or removed in them, and the run continues without."""

    def setUp(self):
        self.base = self.folder / self.id().rsplit(".", 1)[1]
        self.victim = self.base / "victim"
        self.victim.mkdir(parents=True)
        (self.victim / "f.kept").write_bytes(bytes(3000000))
        os.utime(self.victim / "f.kept", (1577836800, 1577836800))
        (self.base / "cache").mkdir()

    def train(self, refused):
        done = self.ok("train", "resnet20:width=4", "--data", "scenes:40,20", "--freeze", "conv1,bn1,layer1,layer2,layer3", "--weights",
                       self.weights(), "--epochs", "1", "--batch", "8", "--keep-frozen", "disk", "--threads", "1", "--quiet", "--set",
                       "frozen_cache=0.0001", "--out", str(self.base / "run"), TENON_CACHE="", XDG_CACHE_HOME=str(self.base / "cache"))
        self.assertIn(f"{refused} is not used as a cache: ", done.err)
        self.assertEqual([path.name for path in self.victim.rglob("*")], ["f.kept"])

    def weights(self):
        path = self.folder / "base" / "model.safetensors"
        if not path.exists():
            self.ok("train", "resnet20:width=4", "--data", "scenes:40,20", "--epochs", "1", "--quiet", "--out", "base")
        return str(path)

    def test_a_link_in_the_folder_of_all_caches(self):
        root = self.base / "cache" / "tenon"
        root.mkdir()
        (root / "frozen").symlink_to(self.victim)
        os.lchown(root / "frozen", 65534, 65534)
        self.train(root / "frozen")

    def test_the_folder_of_all_caches_is_a_link(self):
        root = self.base / "cache" / "tenon"
        root.symlink_to(self.victim)
        os.lchown(root, 65534, 65534)
        self.train(root)

    def test_the_folder_of_all_caches_is_another_users(self):
        root = self.base / "cache" / "tenon"
        root.mkdir()
        os.chown(root, 65534, 65534)
        self.train(root)
        self.assertEqual(list(root.iterdir()), [])


class Controls(CommandTest):
    """Names in files are printed escaped: they neither break a line nor control the terminal."""

    def plain(self, *words, says, code=0):
        done = self.run_command(*words)
        text = done.out + done.err
        self.assertEqual(done.code, code, done)
        self.assertEqual([c for c in text if not c.isprintable() and c != "\n"], [], repr(text))
        for word in says:
            self.assertIn(word, text)

    def test_classes_and_columns(self):
        (self.folder / "t.csv").write_text('a\x1b[31m,b,label\n' + ('1,2,"x\ny"\n2,1,"c\x1b[1m"\n1,1,"d\u009bm"\n' * 20), encoding="utf-8")
        data = "csv:t.csv"
        self.ok("train", "mlp:2-4-3", "--data", data, "--epochs", "1", "--out", "run")
        classes = ["x\\ny", "c\\x1b[1m", "d\\xc2\\x9bm"]
        self.plain("data", "info", data, says=[*classes, "a\\x1b[31m"])
        self.plain("eval", "run", says=classes)
        self.plain("predict", "run", "--data", data, "--count", "1", says=classes)
        self.assertIn("x\ny", [each["name"] for each in self.json("eval", "run", "--json")["classes"]])
        (self.folder / "other.csv").write_text("a,b,label\n" + "1,2,e\n" * 20)
        self.plain("eval", "run", "--data", "csv:other.csv", says=["a\\x1b[31m", "which the model reads"], code=3)

    def test_texts(self):
        (self.folder / "pairs.tsv").write_text("x\x1b[31mn\tu\x1bn\n" * 40)
        self.ok("train", "transformer:layers=1,heads=1,width=16,hidden=16", "--data", "pairs:pairs.tsv", "--epochs", "1", "--set", "max_steps=1", "--out",
                "pairs")
        self.plain("data", "info", "pairs:pairs.tsv", says=["pairs"])
        self.plain("predict", "pairs", "--data", "pairs:pairs.tsv", "--count", "1", says=["x\\x1b[31mn", "u\\x1bn"])

    def test_run_folders(self):
        name = "a\x1b[31m'b"
        self.plain("train", "lenet5", *TINY, "--out", name, says=["run folder a\\x1b[31m'b", "--resume $'a\\x1b[31m\\'b'"])
        self.assertTrue((self.folder / name / "model.safetensors").exists())
        self.plain("train", "lenet5", *TINY, "--quiet", "--out", name + "2", says=["run folder a\\x1b[31m'b2"])
        line = next(line for line in self.ok("eval", name).out.splitlines() if line.startswith("model"))
        self.assertNotIn("\x1b", line)

    def test_direction_marks_and_invisible_characters(self):
        for sign in "\u202e\u2066\u200f\u061c\u200b\ufeff":
            shown = "".join(f"\\x{byte:02x}" for byte in sign.encode())
            self.plain("eval", f"gpj{sign}txt.exe", says=[f"gpj{shown}txt.exe"], code=4)
            self.plain("new", f"a{sign}b/c.toml", says=[f"a{shown}b/c.toml"])

    def test_layers_and_weights(self):
        (self.folder / "net.toml").write_text('input = [1, 28, 28]\nclasses = 10\nlayers = ["flatten", { linear = "classes", name = "a\\u001b[31m" }]\n')
        self.ok("train", "net.toml", *TINY, "--out", "layers")
        self.plain("summary", "net.toml", says=["a\\x1b[31m"])
        self.plain("inspect", "net.toml", says=["a\\x1b[31m"])
        self.plain("weights", "show", "layers/model.safetensors", says=["a\\x1b[31m.weight"])


class Shells(CommandTest):
    def test_printed_commands_can_be_typed(self):
        name = "it's a run; $HOME"
        out = self.ok("train", "lenet5", *TINY, "--out", name).out
        commands = [line.strip().split("   ")[0] for line in out.split("Next\n")[1].splitlines()]
        named = [shlex.split(line.split("  held")[0]) for line in commands if "a run; $HOME" in line]
        self.assertGreaterEqual(len(named), 4, out)
        for words in named:
            self.assertIn(name, words)

    def test_a_run_whose_name_looks_like_an_option(self):
        out = self.ok("train", "lenet5", *TINY, "--out", "-run").out
        shown = [shlex.split(line.split("   ")[0]) for line in (line.strip() for line in out.splitlines()) if line.startswith("tenon eval ")]
        self.assertEqual(shown, [["tenon", "eval", "./-run"]], out)
        self.ok(*shown[0][1:])


class Moved(CommandTest):
    def table(self, path, rows=40):
        path.write_text("\n".join(f"{i % 7},{i % 5},{'even' if i % 2 == 0 else 'odd'}" for i in range(rows)) + "\n")

    def model_metadata(self, path):
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        return json.loads(data[8:8 + length])["__metadata__"]

    def test_a_run_is_found_with_its_data(self):
        project = self.folder / "project"
        (project / "tables").mkdir(parents=True)
        self.table(project / "tables" / "numbers.csv")
        here = ["--data", "csv:tables/numbers.csv"]
        done = subprocess.run([TENON, "train", "mlp:2-4-2", *here, "--epochs", "2", "--out", "runs/a"], cwd=project, env=self.environment,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        project.rename(self.folder / "elsewhere")
        run = "elsewhere/runs/a"
        accuracy = self.json("eval", run, "--json")["accuracy"]
        self.ok("train", "--resume", run, "--epochs", "3")
        self.ok("verify", run, "--steps", "3")
        self.ok("predict", run, "--data", "csv:elsewhere/tables/numbers.csv", "--count", "1")

        # Only the data is missing: the error names it and the option for its new path.
        (self.folder / "elsewhere" / "tables").rename(self.folder / "gone")
        for words in (["eval", run], ["train", "--resume", run, "--epochs", "4"], ["verify", run]):
            self.fails(4, *words, says=["numbers.csv", "--data"])
        self.ok("train", "--resume", run, "--epochs", "4", "--data", "csv:gone/numbers.csv")
        self.json("eval", run, "--data", "csv:gone/numbers.csv", "--json")
        self.table(self.folder / "short.csv", rows=10)
        self.fails(2, "train", "--resume", run, "--epochs", "5", "--data", "csv:short.csv", says="samples")
        self.assertGreaterEqual(accuracy, 0)

    def test_names_with_commas(self):
        project = self.folder / "Ann, Bob"
        project.mkdir()
        self.table(project / "1,2.csv")
        run = f"{project}/run"
        done = subprocess.run([TENON, "train", "mlp:2-4-2", "--data", "csv:1,2.csv,split=0.2", "--epochs", "1", "--out", "run"], cwd=project,
                              env=self.environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.ok("eval", run)
        self.ok("eval", run, "--data", "csv:Ann, Bob/1,2.csv,split=0.2")
        self.ok("train", "--resume", run, "--epochs", "2")
        (self.folder / "1").write_text("not it\n")  # "csv:1" as seen from here
        self.ok("eval", run)
        (self.folder / "1").unlink()
        (self.folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n")
        (project / "a,b.tsv").write_text("cat\tthe cat\ndog\tthe\n" * 20)
        (project / "q,r.tsv").write_text("".join(f"the cat\tthe cat {k}\tcat\n" for k in range(20)))
        for data in ("lines:Ann, Bob/a,b.tsv,length=8", "spans:Ann, Bob/q,r.tsv,length=16,question=4,stride=2"):
            self.ok("data", "info", data, "--tokenizer", "vocab.txt")
        (project / "images").mkdir()
        for name in ("x", "y"):
            (project / "images" / name).mkdir()
            for k in range(10):
                write_png(project / "images" / name / f"{k}.png", [[k] * 8] * 8)
        self.assertIn("16 samples", self.ok("data", "info", "folder:Ann, Bob/images,size=8").out)

    def test_model_files_describe_the_model_only(self):
        self.table(self.folder / "t.csv")
        self.ok("train", "mlp:2-4-2", "--data", f"csv:{self.folder}/t.csv", "--epochs", "1", "--out", "m")
        metadata = self.model_metadata(self.folder / "m" / "model.safetensors")
        self.assertNotIn(str(self.folder), json.dumps(metadata))
        model = json.loads(metadata["tenon.model"])
        self.assertEqual((model["model"], model["classes"], model["class_names"]), ("mlp:2-4-2", 2, ["even", "odd"]))
        self.assertLess(len(json.dumps(metadata)), 700)
        (self.folder / "m" / "model.safetensors").rename(self.folder / "alone.safetensors")
        self.fails(2, "eval", "alone.safetensors", says="--data")
        rows = self.json("eval", "alone.safetensors", "--data", "csv:t.csv", "--json")["classes"]
        self.assertEqual([row["name"] for row in rows], ["even", "odd"])
        self.assertIn("mlp:2-4-2", self.ok("inspect", "alone.safetensors").out)

        # Rows without a label are predicted.
        (self.folder / "new.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
        rows = self.json("predict", "alone.safetensors", "new.csv", "--count", "2", "--start", "1", "--json")
        self.assertEqual([row["name"] for row in rows], ["new.csv, line 3", "new.csv, line 4"])
        self.assertTrue(all(row["class_name"] in ("even", "odd") and "label" not in row for row in rows))
        (self.folder / "labelled.csv").write_text("1,2,even\n3,4,odd\n")
        told = self.ok("predict", "alone.safetensors", "labelled.csv", "--json")
        self.assertIn("labelled.csv: it has no header and one column more than the model's inputs; that column is taken as the label", told.err)
        self.assertEqual([row["label"] for row in json.loads(told.out)], [0, 1])
        (self.folder / "wide.csv").write_text("1,2,3,0\n3,4,5,1\n")
        self.fails(3, "predict", "alone.safetensors", "wide.csv", says=["4 columns", "trained on 2"])


if __name__ == "__main__":
    unittest.main()
