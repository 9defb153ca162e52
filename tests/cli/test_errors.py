"""Wrong arguments, keys, files and sizes: the exit codes of docs/errors.md, and messages that help."""
import json
import os
import resource
import signal
import struct
import subprocess
import unittest

from command import TENON, CommandTest, write_idx, write_png

TINY = ["--data", "digits:200,50", "--epochs", "1"]


class Unread(CommandTest):
    """As in `tenon ... 2>&1 | head -1`: output that cannot be written does not abort the program."""

    def test_nobody_reads(self):
        for words in (["train", "lenet5", *TINY, "--out", "unread"], ["trian"]):
            read, write = os.pipe()
            os.close(read)
            process = subprocess.Popen([TENON, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=write,
                                       stderr=write)
            os.close(write)
            self.assertIn(process.wait(timeout=120), (1, 2, 4, -signal.SIGPIPE), words)


@unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
class FullOutput(CommandTest):
    """Results that cannot be written are an input/output error, whether print or flush detects it."""

    FULL = "error: standard output cannot be written: No space left on device\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test = cls("test_every_command")
        test.ok("train", "lenet5", *TINY, "--out", "run")
        (cls.folder / "verse.txt").write_text("the cat sat on the mat. " * 100)
        test.ok("train", "gpt2:layers=1,heads=1,width=16,context=16", "--data", "text:verse.txt", "--epochs", "1", "--set", "max_steps=1",
                "--out", "writes")

    def to(self, out, *words, timeout=240):
        """Exit code and stderr with this as standard output."""
        process = subprocess.run([TENON, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.PIPE, text=True, timeout=timeout)
        return process.returncode, process.stderr

    def test_every_command(self):
        with open("/dev/full", "w") as full:
            for words in (["--version"], ["--help"], ["train", "--help"], ["models"], ["models", "--json"], ["summary", "lenet5"],
                          ["summary", "vgg16"], ["inspect", "lenet5"], ["completion", "bash"], ["doctor"], ["eval", "run"],
                          ["predict", "run", "--data", "digits:20,10"], ["verify", "run"], ["generate", "writes", "--tokens", "3"],
                          ["train", "lenet5", *TINY, "--quiet", "--out", "full"], ["bench", "--only", "mlp_b8", "--budget", "0"]):
                with self.subTest(words=words):
                    self.assertEqual(self.to(full, *words), (4, self.FULL))
            # Only the earlier error is reported.
            self.assertEqual(self.to(full, "trian")[0], 2)
            self.assertEqual(self.to(full, "data")[0], 2)
        self.assertTrue((self.folder / "full/model.safetensors").exists(), "a run goes on without its lines")

    def test_rows_of_bench(self):
        row = ["bench", "--only", "mlp_b8", "--budget", "0"]
        self.fails(4, *row, "--json", "/dev/full", says="error: /dev/full: cannot be written: No space left on device")
        with open("/dev/full", "w") as full:
            self.assertEqual(self.to(full, *row, "--phase", "train,infer", "--json", "rows.jsonl"), (4, self.FULL))
        self.assertEqual(len((self.folder / "rows.jsonl").read_text().splitlines()), 1, "the row is kept, and no more are timed")

    def test_generation_stops(self):
        endless = ["generate", "writes", "--prompt", "the", "--tokens", "1000000000"]
        with open("/dev/full", "w") as full:
            self.assertEqual(self.to(full, *endless, timeout=60), (4, self.FULL))
        process = self.start(*endless)
        self.assertEqual(process.stdout.read(3), "the")
        process.stdout.close()
        try:
            self.assertEqual((process.wait(timeout=60), process.stderr.read()), (4, ""), "a reader that has left is told nothing")
        finally:
            process.kill()
            process.stderr.close()

    def test_a_reader_that_has_left(self):
        """With SIGPIPE ignored, as some programs start their children: for large and small output."""
        for words in (["summary", "lenet5"], ["completion", "bash"]):
            read, write = os.pipe()
            os.close(read)
            process = subprocess.run([TENON, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=write,
                                     stderr=subprocess.PIPE, text=True, restore_signals=False, timeout=120)
            os.close(write)
            self.assertEqual((process.returncode, process.stderr), (4, ""), words)

    def test_the_signal_of_a_reader_that_has_left(self):
        """Training ignores the signal, so that it ends with its checkpoints."""
        for words, code in ((["summary", "lenet5"], -signal.SIGPIPE), (["train", "lenet5", *TINY, "--out", "left"], 4)):
            read, write = os.pipe()
            os.close(read)
            process = subprocess.run([TENON, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=write,
                                     stderr=subprocess.PIPE, timeout=120)
            os.close(write)
            self.assertEqual(process.returncode, code, words)
        self.assertTrue((self.folder / "left" / "model.safetensors").exists())


class WrongWords(CommandTest):
    def test_commands_and_options(self):
        self.fails(2, "trian", says=["'trian'", "did you mean 'train'?"])
        self.fails(2, "xyzzy", says=["one of: train, eval"])
        self.fails(2, "data", "fetsh", says="did you mean 'fetch'?")
        self.fails(2, "train", "--epoch", "3", says=["--epoch", "did you mean --epochs?"])
        self.fails(2, "train", "--hlep", says=["--hlep", "did you mean --help?"])
        self.assertNotIn("did you mean", self.fails(2, "train", "--bogus", says="lists the options").err)
        self.fails(2, "--hlep", says=["no option --hlep", "did you mean --help?"])
        self.fails(2, "--verison", says="did you mean --version?")
        self.fails(2, "train", "lenet5", "--epocsh", "1", says="did you mean --epochs?")
        self.fails(2, "train", "lenet5", "--qiuet", says="did you mean --quiet?")
        self.fails(2, "train", "lenet5", "--epochs", says="--epochs needs a value")
        self.fails(2, "train", "lenet5", "--quiet=yes", says="--quiet takes no value")
        self.fails(2, "train", "lenet5", "mlp", says="one word too many")
        self.fails(2, "eval", says=["RUN is missing", "usage: tenon eval RUN"])
        self.fails(2, "inspect", "lenet5", "--phase", "training", says=["--phase", "train, infer", "did you mean"])
        self.fails(2, "inspect", "lenet5", "--without", "nope", says=["'nope'", "can be switched off", "fuse", "chain"])
        self.fails(2, "inspect", "lenet5", "--without", "fues", says="did you mean 'fuse'?")
        self.fails(2, "inspect", "lenet5", "grpah", says=["'grpah'", "did you mean graph?"])

    def test_models(self):
        self.fails(2, "train", "lenet6", says="did you mean 'lenet5'")
        self.fails(2, "train", says=["MODEL is missing", "tenon train lenet5"])
        self.fails(2, "train", "mlp:784-x", says="mlp:784-x")
        self.fails(2, "train", "mlp:784-9000000000000-10", says="mlp:784-9000000000000-10")
        self.fails(3, "train", "mlp:100-10", *TINY, says=["[100]", "[1, 28, 28]", "mlp:784"])

    def test_a_word_in_another_case_is_proposed(self):
        """A word that differs only in case is proposed, not accepted."""
        self.fails(2, "TRAIN", says="did you mean 'train'?")
        self.fails(2, "--VERSION", says="did you mean --version?")
        self.fails(2, "train", "lenet5", "--EPOCHS", "1", says="did you mean --epochs?")
        self.fails(2, "train", "LENET5", says="did you mean 'lenet5'?")
        self.fails(2, "train", "lenet5", "--precision", "BF16", says="did you mean 'bf16'?")
        self.fails(2, "train", "lenet5", "--data", "DIGITS:20,10", says="did you mean 'digits'?")
        self.fails(2, "train", "lenet5", "--set", "LR=1", says="did you mean 'lr'?")
        self.fails(2, "inspect", "lenet5", "GRAPH", says="did you mean graph?")
        self.fails(2, "bench", "--phase", "TRAIN", says="did you mean train?")

    def test_weights_that_are_not_finite(self):
        """No loss follows the last step, so the weights themselves are checked."""
        (self.folder / "huge.csv").write_text("x,y,label\n" + "1e34,1e34,0\n1e34,-1e34,1\n" * 20)
        words = ["train", "mlp:2-8-2", "--data", "csv:huge.csv,split=0.5", "--set", "standardize=false", "--lr", "1e6", "--set", "warmup=0"]
        for steps in (1, 2):
            out = f"huge-{steps}"
            says = ["hint:", "a smaller learning rate", "step 1: the loss is finite" if steps == 1 else "step 2: the loss is"]
            self.fails(5, *words, "--batch", "4", "--set", f"max_steps={steps}", "--out", out, says=says)
            self.assertFalse((self.folder / out / "model.safetensors").exists())
            event = json.loads((self.folder / out / "log.jsonl").read_text().splitlines()[-1])
            self.assertEqual((event["event"], event["step"]), ("not_finite", steps))

    def test_values_name_the_flag(self):
        self.fails(2, "train", "lenet5", "--lr", "abc", says=["--lr", "'abc'", "number"])
        self.fails(2, "train", "lenet5", "--lr=-1", says=["--lr", "'-1'"])
        self.fails(2, "train", "lenet5", "--epochs", "0", says=["--epochs", "'0'"])
        self.fails(2, "train", "lenet5", "--epochs", "1.5", says=["--epochs", "'1.5'"])
        self.fails(2, "train", "lenet5", "--batch", "99999999999999999999", says="--batch")
        self.fails(2, "train", "lenet5", "--optimizer", "sdg", says=["--optimizer", "did you mean 'sgd'"])
        self.fails(2, "train", "lenet5", "--schedule", "cosin", says="did you mean 'cosine'")
        self.fails(2, "train", "lenet5", "--precision", "fp8", says=["--precision", "bf16"])
        self.fails(2, "train", "lenet5", "--threads", "-2", says="--threads")
        self.fails(2, "train", "lenet5", "--memory-limit", "lots", says=["--memory-limit", "800MB"])
        self.fails(2, "summary", "lenet5", "--batch", "0", says=["--batch", "1 or more"])
        self.fails(2, "summary", "lenet5", "--batch", "16777217", says=["--batch", "16777216 at most"])
        self.fails(2, "summary", "gpt2_xl", "--batch", "16777216", says="the number of multiply-adds exceeds 64 bits")
        self.fails(2, "bench", "--only", "lenet5", says=["lenet5", "MODEL_bBATCH"])
        self.fails(2, "bench", "--phase", "trian", says="did you mean train?")
        self.fails(2, "bench", "--only", "lenet5_b4", "--budget", "-1", says=["--budget", "-1", "seconds"])
        for command in (["bench", "--only", "lenet5_b4"], ["inspect", "lenet5"]):
            for norm in ("-1", "nan"):
                self.fails(2, *command, "--clip-norm", norm, says="--clip-norm")

    def test_settings_by_key(self):
        self.fails(2, "train", "lenet5", "--set", "momentun=0.9", says=["'momentun'", "did you mean 'momentum'", "--settings"])
        self.fails(2, "train", "lenet5", "--set", "momentum=x", says=["momentum", "'x'"])
        self.fails(2, "train", "lenet5", "--set", "momentum", says="not key=value")

    def test_settings_files_name_file_and_line(self):
        def config(text):
            (self.folder / "c.toml").write_text(text)
            return ["train", "--config", "c.toml"]

        self.fails(2, *config('model = "lenet5"\n\nlr = "high"\n'), says=["c.toml, line 3", "'lr'", "'high'"])
        self.fails(2, *config('model = "lenet5"\nmomentun = 1\n'), says=["c.toml, line 2", "did you mean 'momentum'"])
        self.fails(3, *config("lr = \n"), says="c.toml, line 1")
        self.fails(2, *config("lr = 0.1\n"), says="MODEL is missing")
        self.fails(4, "train", "--config", "none.toml", says="none.toml")

    def test_precedence(self):
        (self.folder / "p.toml").write_text('model = "lenet5"\nlr = 0.2\nbatch = 32\nmomentum = 0.5\n')
        out = self.ok("train", "--config", "p.toml", "--set", "batch=16", "--set", "lr=0.3", "--lr", "0.4", "--settings").out
        for line in ('model = "lenet5"', "lr = 0.4", "batch = 16", "momentum = 0.5"):
            self.assertIn(line, out)


class WrongData(CommandTest):
    def test_sources(self):
        self.fails(2, "train", "lenet5", "--data", "digit", says="did you mean 'digits'")
        self.fails(4, "train", "lenet5", "--data", "idx:/nowhere", says="/nowhere")
        self.fails(4, "train", "lenet5", "--data", "csv:none.csv", says="none.csv")
        self.fails(4, "train", "lenet5", "--data", "mnist", says="tenon data fetch mnist")
        self.assertFalse((self.folder / "runs").exists(), "a refused run leaves no folder behind")

    def test_pointers_of_git_lfs_are_named(self):
        """Read as data, a pointer would be a table of two rows, a text of 20 words, a vocabulary of three."""
        folder = self.folder / "pointers"
        folder.mkdir()
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a' * 16}\nsize 12345\n"
        for name in ("rows.csv", "lines.txt", "tokenizer.json", "vocab.txt", "net.toml", "photo.png", "model.pt", "rows.npy", "shard.tar"):
            (folder / name).write_text(pointer)
        (folder / "bytes.json").write_text('{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}')
        says = "is a Git LFS pointer, not the file itself: run 'git lfs pull'"
        text = ("--tokenizer", "pointers/bytes.json")
        for words in (["csv:pointers/rows.csv"], ["lines:pointers/lines.txt", *text], ["text:pointers/lines.txt", *text], ["list:pointers/lines.txt"],
                      ["npy:pointers/rows.npy,labels=pointers/rows.npy"], ["shards:pointers/shard.tar,size=8"], ["text:pointers/lines.txt"]):
            self.fails(3, "data", "info", *words, says=says)
        for words in (["tokenizer", "encode", "pointers/tokenizer.json", "hi"], ["tokenizer", "encode", "pointers/vocab.txt", "hi"],
                      ["summary", "pointers/net.toml"], ["weights", "show", "pointers/model.pt"]):
            self.fails(3, *words, says=says)

    def test_a_small_model_file_takes_little(self):
        """Metadata may describe a network of any size and name any file as its data."""
        def model(name, network, data):
            description = json.dumps({"model": "net.toml", "network": network, "classes": 10, "input_mean": 0, "input_std": 1, "data": data})
            header = json.dumps({"__metadata__": {"tenon.model": description},
                                 "0.weight": {"dtype": "F32", "shape": [10, 4], "data_offsets": [0, 160]},
                                 "0.bias": {"dtype": "F32", "shape": [10], "data_offsets": [160, 200]}}).encode()
            (self.folder / name).write_bytes(struct.pack("<Q", len(header)) + header + bytes(200))
        model("wide.safetensors", 'input = [4]\nclasses = 10\nlayers = [ { linear = 1000000 }, { linear = 1000 }, { linear = "classes" } ]\n', "digits")
        done = subprocess.run([TENON, "eval", "wide.safetensors"], cwd=self.folder, env=self.environment, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)))
        self.assertEqual(done.returncode, 3, done)
        self.assertIn("in place of [1000000", done.stderr)
        model("path.safetensors", 'input = [4]\nclasses = 10\nlayers = [ { linear = "classes" } ]\n', "csv:/etc/passwd")
        self.fails(3, "eval", "path.safetensors", says=["names the data 'csv:/etc/passwd'", "must not name files of this machine"])

    def test_corrupt_and_absurd_files(self):
        folder = self.folder / "idx"
        folder.mkdir()
        for part, count in (("train", 20), ("t10k", 10)):
            write_idx(folder / f"{part}-images-idx3-ubyte", [count, 28, 28], [7] * (count * 784))
            write_idx(folder / f"{part}-labels-idx1-ubyte", [count], [1, 0] * (count // 2))
        self.ok("data", "info", "idx:idx")
        images = folder / "train-images-idx3-ubyte"
        whole = images.read_bytes()
        images.write_bytes(whole[:-5])
        self.fails(3, "train", "lenet5", "--data", "idx:idx", says="train-images-idx3-ubyte")
        images.write_bytes(whole[:4] + b"\xff" * 12 + whole[16:])
        self.fails(3, "train", "lenet5", "--data", "idx:idx", says="train-images-idx3-ubyte")
        images.write_bytes(b"\x1f\x8b\x08" + whole[:50])
        self.fails(3, "train", "lenet5", "--data", "idx:idx", says="train-images-idx3-ubyte")
        images.write_bytes(b"")
        self.fails(3, "train", "lenet5", "--data", "idx:idx", says="train-images-idx3-ubyte")

    def test_memory_is_refused_before_training(self):
        self.fails(6, "train", "lenet5", *TINY, "--memory-limit", "1MB", "--out", "small",
                   says=["limit", "of layer 1", "tenon summary"])
        self.assertFalse((self.folder / "small").exists(), "a refused run leaves no folder behind")
        self.fails(6, "summary", "lenet5", "--memory-limit", "1MB", says="limit")
        self.ok("summary", "lenet5", "--memory-limit", "1GiB")

    def test_a_model_is_proposed_only_where_it_works(self):
        (self.folder / "book.txt").write_text("the cat sat on the mat. " * 200)
        (self.folder / "pairs.tsv").write_text("one\tun\ntwo\tdeux\n" * 40)
        for data, reader in (("text:book.txt", "gpt2"), ("pairs:pairs.tsv", "transformer")):
            for model in ("lenet5", "mlp:784-64-10"):
                refused = self.fails(3, "train", model, "--data", data, "--out", "none", says=["for such texts, such as " + reader])
                self.assertNotIn("use mlp", refused.err)
        self.fails(3, "train", "lenet5", "--data", "random:64,16", "--out", "none", says="use mlp:")
        self.assertFalse((self.folder / "none").exists())

    def test_data_that_does_not_fit_is_one_kind_of_error(self):
        """The same error for a command that starts with a model and for one that starts with a run."""
        (self.folder / "book.txt").write_text("the cat sat on the mat. " * 200)
        small = ["--epochs", "1", "--set", "max_steps=1", "--quiet"]
        images, texts, pairs = "lenet5", "gpt2:layers=1,heads=1,width=16,context=16", "transformer:layers=1,heads=1,width=16,hidden=16"
        for model, fits, others in ((images, "digits:20,10", ("scenes:10,10", "random:8,8", "text:book.txt", "numbers:20,10")),
                                    (texts, "text:book.txt", ("scenes:10,10", "numbers:20,10")),
                                    (pairs, "numbers:20,10", ("scenes:10,10", "text:book.txt"))):
            run = model.partition(":")[0]
            self.ok("train", model, "--data", fits, *small, "--out", run)
            for data in others:
                with self.subTest(model=model, data=data):
                    self.fails(3, "train", model, "--data", data, "--out", "none")
                    self.fails(3, "eval", run, "--data", data)
                    self.fails(3, "predict", run, "--data", data)
        self.assertFalse((self.folder / "none").exists())

    def test_the_command_for_the_task_is_named(self):
        (self.folder / "verse.txt").write_text("the cat sat on the mat. " * 100)
        (self.folder / "rows.csv").write_text("a,b,label\n" + "1,2,x\n2,1,y\n" * 20)
        small = ["--epochs", "1", "--set", "max_steps=1", "--quiet"]
        self.ok("train", "lenet5", *TINY, *small, "--out", "looks")
        self.ok("train", "mlp:784-8-10", *TINY, *small, "--out", "pixels")
        self.ok("train", "mlp:2-4-2", "--data", "csv:rows.csv", *small, "--out", "rows")
        self.ok("train", "gpt2:layers=1,heads=1,width=16,context=16", "--data", "text:verse.txt", *small, "--out", "goes_on")
        for run, file in (("looks", "photo.jpg"), ("pixels", "photo.jpg"), ("rows", "rows.csv")):
            hint = f"hint: it classifies inputs: tenon predict {run} {file}"
            self.fails(2, "generate", run, "--prompt", "the", says=["does not generate text", hint])
            self.fails(2, "predict", run, "--text", "the", says=["--text", "takes no text", hint])
            self.fails(2, "predict", run, "--question", "who", "--text", "the", says=["--question", "finds no answers", hint])
        os.rename(self.folder / "goes_on", self.folder / "goes on")
        self.fails(2, "predict", "goes on", "photo.png", says="tenon generate 'goes on' --prompt WORDS")
        os.rename(self.folder / "goes on", self.folder / "goes_on")
        self.fails(2, "predict", "goes_on", "--question", "who", "--text", "the",
                   says="it continues texts: tenon generate goes_on --prompt TEXT")

    def test_bytes_that_are_not_utf8(self):
        text = bytearray(b"tick tock " * 400)
        (self.folder / "good.txt").write_bytes(text)
        text[3900] = 0xff
        (self.folder / "bad.txt").write_bytes(text)
        small = ["gpt2:layers=1,heads=1,width=16,context=16", "--epochs", "1", "--quiet"]
        for unit in ("chars", "pieces"):
            self.ok("train", *small, "--data", f"text:good.txt,by={unit}", "--out", unit)
            for words in (["train", *small], ["eval", unit], ["predict", unit]):  # in the test part
                self.fails(3, *words, "--data", f"text:bad.txt,by={unit}", says="bad.txt: the text is not UTF-8 at byte 3900:")

    def test_numbers_of_threads(self):
        self.ok("train", "lenet5", *TINY, "--threads", "500", "--quiet", "--out", "many")
        self.ok("eval", "many", "--threads", "500")
        for words in (["train", "lenet5"], ["eval", "many"], ["predict", "many", "--data", "digits:20,10"], ["inspect", "lenet5"]):
            for count in ("2000", "-1"):
                self.fails(2, *words, "--threads", count, says=f"--threads is '{count}', must be a whole number from 0 to 1024")

    def test_folder_of_a_run(self):
        self.ok("train", "lenet5", *TINY, "--quiet", "--out", "taken")
        told = self.fails(2, "train", "lenet5", *TINY, "--out", "taken", says=["--out: taken already holds a run", "--resume taken"])
        self.assertNotIn("TrainOptions", told.err)

    def test_tables_too_short_to_be_divided(self):
        (self.folder / "one.csv").write_text("a,label\n1,x\n")
        words = ["train", "mlp:1-4-2", "--data"]
        self.fails(2, *words, "csv:one.csv", says="one.csv: of 1 samples, 1 are left for training and 0 for testing")

    def test_files_beyond_their_limit(self):
        """No signal ends the run: the error is that of a full disk, and no file is left half written."""
        done = subprocess.run([TENON, "train", "lenet5", *TINY, "--out", "limited"], cwd=self.folder, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
        self.assertEqual(done.returncode, 4, done)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(list((self.folder / "limited").glob("**/*.tmp-*")), [])

    def test_tables_of_other_columns(self):
        (self.folder / "rows.csv").write_text("a,b,label\n" + "1,2,x\n2,1,y\n" * 20)
        (self.folder / "others.csv").write_text("x,label\n" + "1,x\n2,y\n" * 20)
        self.ok("train", "mlp:2-4-2", "--data", "csv:rows.csv", "--epochs", "1", "--quiet", "--out", "columns")
        self.fails(3, "predict", "columns", "others.csv", says="others.csv: has no column 'a'")
        # A text has one input a word: the message counts words, not columns of the file.
        self.ok("train", "lenet5", *TINY, "--quiet", "--out", "sees")
        self.fails(3, "predict", "sees", "rows.csv", says="rows.csv: its rows give 4 inputs, and lenet5 takes 784")
        for words in (["eval", "columns", "--data", "csv:others.csv"], ["predict", "columns", "--data", "csv:others.csv"],
                      ["predict", "columns", "others.csv"], ["train", "--resume", "columns", "--epochs", "2", "--data", "csv:others.csv"]):
            self.fails(3, *words, says="others.csv")

    def test_options_that_a_model_does_not_use(self):
        (self.folder / "verse.txt").write_text("the cat sat on the mat. " * 100)
        small = ["--epochs", "1", "--set", "max_steps=1", "--quiet"]
        self.ok("train", "gpt2:layers=1,heads=1,width=16,context=16", "--data", "text:verse.txt", *small, "--out", "writes")
        self.ok("train", "transformer:layers=1,heads=1,width=16,hidden=16", "--data", "numbers:30,20", *small, "--out", "translates")
        for run, options in (("writes", ("--beam", "--length-penalty")), ("translates", ("--tokens", "--temperature", "--top-k", "--top-p", "--seed"))):
            for option in options:
                self.fails(2, "generate", run, "--prompt", "the", option, "1", says=option)
        self.ok("generate", "translates", "--prompt", "French: two", "--beam", "2")
        self.ok("generate", "writes", "--prompt", "the", "--tokens", "3", "--temperature", "0", "--seed", "1")
        self.fails(2, "eval", "writes", "--preprocess", "resize,center_crop", says=["--preprocess", "no images"])
        self.fails(2, "eval", "writes", "--batch", "0", says="--batch")
        (self.folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n")
        self.fails(2, "train", "lenet5", *TINY, "--tokenizer", "vocab.txt", "--out", "none", says="tokenizer")
        self.assertFalse((self.folder / "none").exists())

    def test_summary_and_training_refuse_the_same(self):
        """With the optimizer of the recipe (Adam for fcn_r): both refuse the same settings."""
        planned = self.json("summary", "fcn_r", "--batch", "8", "--json")["train_bytes"]
        self.assertGreater(planned, 3 * 4 * 14205962)
        small = ["--batch", "8", "--data", "digits:16,8", "--epochs", "1", "--quiet"]
        self.fails(6, "summary", "fcn_r", "--batch", "8", "--memory-limit", "150MB", says="limit")
        self.fails(6, "train", "fcn_r", *small, "--memory-limit", "150MB", "--out", "large", says="limit")
        self.assertFalse((self.folder / "large").exists())
        for word in ("clip_grad_norm", "assign+mul+square"):  # of AdamW and its recipe
            self.assertIn(word, self.ok("inspect", "gpt2:layers=1,heads=1,width=16,context=16").out)
        # For a run, its own optimizer: without momentum it has no state.
        self.ok("train", "mlp:784-64-10", *small, "--optimizer", "adam", "--out", "adam")
        self.ok("train", "mlp:784-64-10", *small, "--optimizer", "sgd", "--set", "momentum=0", "--out", "plain")
        adam, plain = (self.json("summary", run, "--json")["train_bytes"] for run in ("adam", "plain"))
        self.assertGreater(adam - plain, 2 * 4 * 784 * 64)

    def test_runs_and_models(self):
        self.fails(4, "eval", "nowhere", says="nowhere")
        self.fails(4, "verify", "nowhere", says="nowhere")
        self.fails(4, "train", "--resume", "nowhere", says="nowhere")
        (self.folder / "empty").mkdir()
        for words in (["train", "--resume"], ["eval"], ["verify"]):
            self.fails(4, *words, "empty", says="empty holds no run")
        (self.folder / "bad.safetensors").write_bytes(b"\xff" * 64)
        self.fails(3, "eval", "bad.safetensors", says="bad.safetensors")


class WrongFolders(CommandTest):
    def test_folders_that_cannot_be_written(self):
        (self.folder / "file").write_text("x")
        self.fails(4, "train", "lenet5", *TINY, "--out", "file/run", says="file/run")
        self.fails(4, "train", "lenet5", *TINY, "--out", "/proc/tenon", says="/proc/tenon")

    def test_fewer_epochs_than_done(self):
        self.ok("train", "mlp", *TINY[:2], "--epochs", "3", "--out", "three")
        before = {path: path.read_bytes() for path in (self.folder / "three").glob("*.*")}
        self.fails(2, "train", "--resume", "three", "--epochs", "2", says=["three", "3 epochs"])
        self.fails(2, "train", "--resume", "three", "--epochs", "0", says="--epochs is '0', must be a whole number from 1 to 1000000")
        self.assertEqual(before, {path: path.read_bytes() for path in (self.folder / "three").glob("*.*")}, "nothing was touched")
        self.assertIn("already finished", self.ok("train", "--resume", "three", "--epochs", "3").out)

    def test_folder_that_contains_a_run(self):
        self.ok("train", "lenet5", *TINY, "--out", "run")
        self.fails(2, "train", "lenet5", *TINY, "--out", "run", says=["run", "--resume"])


class WrongImages(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test = cls("test_images")
        test.ok("train", "lenet5", *TINY, "--out", "run")

    def test_images(self):
        (self.folder / "text.png").write_text("not an image")
        self.fails(3, "predict", "run", "text.png", says="text.png")
        self.fails(4, "predict", "run", "none.png", says="none.png")
        self.fails(4, "predict", "run", str(self.folder), says="folder")
        self.fails(2, "predict", "run", says=["nothing to predict", "text:FILE", "numbers"])
        self.fails(2, "predict", "run", "--data", "digits", "--start", "100000000", says="--start")
        write_png(self.folder / "blank.png", [[255] * 200] * 200)
        self.fails(3, "predict", "run", "blank.png", says=["blank.png", "no ink"])

    def test_one_bad_file_does_not_stop_the_others(self):
        write_png(self.folder / "bar.png", [[255] * 40 + [0] * 8 + [255] * 40 if 10 < y < 70 else [255] * 88 for y in range(80)])
        result = self.run_command("predict", "run", "none.png", "bar.png")
        self.assertEqual(result.code, 4)
        self.assertIn("bar.png", result.out)

    def test_files_of_other_sizes(self):
        write_idx(self.folder / "small-idx3-ubyte", [2, 8, 8], [0] * 128)
        self.fails(3, "predict", "run", "small-idx3-ubyte", says=["[2, 8, 8]", "28 x 28"])

    def test_new_writes_a_project_and_overwrites_nothing(self):
        self.assertIn("cmake -S", self.ok("new", "starters/shapes").out)
        folder = self.folder / "starters/shapes"
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["CMakeLists.txt", "net.h", "train.cpp"])
        for path in folder.iterdir():
            self.assertNotIn("@NAME@", path.read_text())
        self.assertIn("add_executable(shapes ", (folder / "CMakeLists.txt").read_text())
        self.fails(2, "new", "starters/shapes", says="already")
        for name, words in (("test", "reserved by CMake"), ("a b", "not a valid program name"), ("7up", "not a valid program name"), ("", "not a valid program name")):
            self.fails(2, "new", name, says=words)
        self.fails(2, "new", says="NAME")



if __name__ == "__main__":
    unittest.main()
