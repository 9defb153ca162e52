"""The way of a user: train, evaluate, predict, stop, resume, verify, with and without a terminal."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from command import TENON, CommandTest, write_png

DATA = ["--data", "digits:1500,300"]


class Flow(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trained = cls("test_train").ok("train", "lenet5", *DATA, "--epochs", "2", "--out", "run")

    def test_train(self):
        out = self.trained.out
        for word in ("61,706 parameters", "epoch 1/2", "epoch 2/2", "best validation accuracy", "run/model.safetensors",
                     "tenon eval run", "tenon predict run", "--resume run", "tenon data fetch mnist"):
            self.assertIn(word, out)
        self.assertNotIn("\x1b", out + self.trained.err)
        for name in ("settings.toml", "log.csv", "log.jsonl", "model.safetensors", "checkpoints"):
            self.assertTrue((self.folder / "run" / name).exists(), name)

    def test_eval(self):
        text = self.ok("eval", "run").out
        for word in ("accuracy", "precision", "confusion", "test part of digits:1500,300: 300 of "):
            self.assertIn(word, text)
        figures = self.json("eval", "run", "--json")
        self.assertEqual(figures["items"], 300)
        self.assertEqual(sum(map(sum, figures["confusion"])), 300)
        right = sum(figures["confusion"][i][i] for i in range(10))
        self.assertAlmostEqual(figures["accuracy"], right / 300)
        self.assertGreater(figures["accuracy"], 0.5)
        self.assertEqual(self.json("eval", "run/model.safetensors", "--json")["accuracy"], figures["accuracy"])
        other = self.json("eval", "run", "--data", "digits:10,200", "--threads", "1", "--json")
        self.assertEqual(other["items"], 200)

    def test_train_a_head(self):
        words = ["train", "resnet20:width=4", "--data", "scenes:40,20", "--freeze", "conv1,bn1,layer1,layer2,layer3", "--epochs", "3",
                 "--keep-frozen", "disk"]
        out = self.ok(*words, "--head", "8,relu", "--unfreeze-after", "2", "--out", "head").out
        for line in ("are frozen until 2 epochs are done, and learn from then on", "the frozen part is computed once: of 64 samples",
                     "from epoch 3 on, learning: 17,382 parameters; 0 are frozen"):
            self.assertIn(line, out)
        self.assertLess(out.index("epoch 2/3"), out.index("from epoch 3 on"))
        self.assertLess(out.index("from epoch 3 on"), out.index("epoch 3/3"))
        self.assertIn("every bit of head agrees", self.ok("verify", "head", "--steps", "3").out)
        self.assertIn("was computed by an earlier run: of 64 samples", self.ok(*words, "--head", "4,tanh", "--out", "other").out)
        code, shown = self.in_terminal(*words[:-2], "--keep-frozen", "memory", "--head", "8,relu", "--out", "third")
        self.assertEqual(code, 0)
        self.assertIn("frozen part, once", shown)
        for wrong, says in ((["--keep-frozen", "dsik"], "--keep-frozen"), (["--unfreeze-after", "-1"], "--unfreeze-after")):
            self.fails(2, *words, *wrong, "--out", "wrong", says=says)
        self.fails(2, "train", "lenet5", "--unfreeze-after", "2", "--out", "wrong", says="no layer is frozen")
        for idle in (["--keep-frozen", "memory"], ["--frozen-variants", "3"]):
            self.fails(2, "train", "lenet5", *idle, "--out", "wrong", says="no layer is frozen")
        for idle in (["--temperature", "2"], ["--set", "distill_weight=0.9"]):
            self.fails(2, "train", "lenet5", *idle, "--out", "wrong", says="there is no teacher")

    def test_options_without_effect_are_refused(self):
        for idle in (["--broken", "error"], ["--augment-on", "both"], ["--augment-on", "cpu"]):
            self.fails(2, "train", "lenet5", *idle, "--out", "wrong", says=["the data holds no image files", "--data folder:DIR"])
        for idle in (["train", "lenet5", "--out", "wrong"], ["eval", "run"], ["predict", "run", "--data", "digits:20,10"], ["inspect", "lenet5"],
                     ["bench", "--only", "mlp_b8", "--budget", "0"]):
            self.fails(2, *idle, "--tune", "write", says=["tune", "write", "needs a GPU", "--device cuda", "read"])
        self.ok("inspect", "lenet5", "--tune", "off")

    def test_what_a_run_prints_besides_its_settings(self):
        def out_of(*words):
            out_of.runs += 1
            return self.ok("train", "lenet5", "--data", "digits:128,20", "--epochs", "2", "--out", f"noted{out_of.runs}", *words).out

        out_of.runs = 0

        for words, said in ((["--precision", "fp16"], "the CPU computes fp16 products in fp32"),
                            (["--layer-precision", "0=tf32,3=fp16"], "the CPU computes tf32 and fp16 products in fp32")):
            self.assertIn(said, out_of(*words))
        for words in ([], ["--precision", "bf16"]):
            self.assertNotIn("the CPU computes", out_of(*words))
        for words, said in ((["--set", "warmup=3"], "rises for 2 steps, at most half of the run, although warmup = 3 asks for 6"),
                            (["--set", "warmup=2", "--set", "max_steps=3"], "rises for 1 step, at most half of the run, although warmup = 2 asks for 4")):
            self.assertIn(said, out_of(*words))
        self.assertNotIn("warm-up", out_of("--set", "warmup=1"))

    def test_quiet(self):
        words = ["train", "lenet5", "--data", "digits:50,10", "--epochs", "2", "--out"]
        loud = self.ok(*words, "loud").out
        self.assertIn("each step takes all 50 training samples: they are fewer than a batch of 64\n", loud)
        self.assertNotIn("each step takes all", self.trained.out)
        lines = self.ok(*words, "still", "--quiet").out.splitlines()
        self.assertEqual(len(lines), 3, lines)
        self.assertRegex(lines[0], r"^epoch 1/2 ")
        self.assertRegex(lines[1], r"^epoch 2/2 ")
        self.assertRegex(lines[2], r"^Done after 2 steps in .*; best validation accuracy .*; test accuracy .*; run folder still$")

    def test_predict_held_out(self):
        rows = self.json("predict", "run", *DATA, "--count", "3", "--start", "290", "--json")
        self.assertEqual(len(rows), 10, "--count limits what is printed alone")
        for row in rows:
            self.assertAlmostEqual(sum(row["probabilities"]), 1, places=4)
            self.assertEqual(row["class"], row["probabilities"].index(max(row["probabilities"])))
            self.assertEqual(row["right"], row["class"] == row["label"])
        text = self.ok("predict", "run", *DATA, "--count", "2").out
        self.assertIn("of 2 right", text)
        self.assertTrue(text.isascii())
        self.assertRegex(text, r"[%#@*]{3}")

    def test_predict_prepares_photographs(self):
        ink = [[240] * 300 for _ in range(400)]
        for y in range(80, 330):
            for x in range(135, 165):
                ink[y][x] = 20
        write_png(self.folder / "one.png", ink)
        row = self.json("predict", "run", "one.png", "--json")[0]
        for word in ("300 x 400", "inverted", "centred in 28 x 28"):
            self.assertIn(word, row["prepared"])
        write_png(self.folder / "grey.png", [[0] * 28 if y < 4 or y > 23 else [0] * 13 + [255] * 3 + [0] * 12 for y in range(28)])
        row = self.json("predict", "run", "grey.png", "--json")[0]
        self.assertEqual(row["prepared"], "28 x 28")

    def test_colour_photographs(self):
        out = self.ok("train", "alexnet_r", "--data", "scenes:64,32", "--batch", "32", "--epochs", "1", "--out", "scenes",
                      "--augment", "crop=4,flip,cutout=8").out
        self.assertIn('augment = "crop=4,flip,cutout=8"', (self.folder / "scenes" / "settings.toml").read_text())
        self.assertTrue(self.json("verify", "scenes", "--steps", "4", "--json")["passed"])
        words = ["predict", "scenes", "--data", "scenes:64,32", "--count", "1"]
        self.assertGreaterEqual(len(self.ok(*words).out.splitlines()), 20, "held-out ones are drawn as files are")
        self.assertLess(len(self.ok(*words, "--no-image").out.splitlines()), 17)
        self.fails(2, "train", "alexnet_r", "--augment", "crop", says=["--augment", "cutout=N"])
        self.assertIn("your own image", out)
        self.assertNotIn("handwriting", out)
        red = [[200, 30, 30] * 60 for _ in range(48)]
        write_png(self.folder / "red.png", red, channels=3)
        row = self.json("predict", "scenes", "red.png", "--json")[0]
        self.assertIn("60 x 48", row["prepared"])
        self.assertIn("its middle, 48 x 48, scaled to 32 x 32", row["prepared"])
        self.assertEqual(len(row["probabilities"]), 10)
        write_png(self.folder / "small.png", [[10 * y, 5, 200] * 32 for y in range(16)] * 2, channels=3)
        self.assertEqual(self.json("predict", "scenes", "small.png", "--json")[0]["prepared"], "32 x 32")
        self.assertRegex(self.ok("predict", "scenes", "red.png").out, r"class \w+")

    def test_language(self):
        (self.folder / "verse.txt").write_text("tick tock says the clock, and the clock says tick tock. " * 40)
        out = self.ok("train", "gpt2:layers=1,heads=1,width=16,context=16", "--data", "text:verse.txt", "--epochs", "1",
                      "--out", "verse").out
        for word in ("best validation loss", "tenon generate verse", "held-out text"):
            self.assertIn(word, out)
        self.assertNotIn("accuracy", out.split("Done")[1])
        net = self.json("summary", "verse", "--json")
        shown = int(re.search(r"([\d,]+) parameters", out)[1].replace(",", ""))
        self.assertLess(shown, 50000)  # for a vocabulary of about twenty characters instead of 50,257 tokens
        self.assertIn(f"{shown:,} (", out)
        self.assertEqual((net["parameters"], net["batch"]), (shown, 12))
        text = self.ok("eval", "verse").out
        for word in ("perplexity", "tokens right", "loss"):
            self.assertIn(word, text)
        for word in ("F1", "top-3", "confusion"):
            self.assertNotIn(word, text)
        figures = self.json("eval", "verse", "--json")
        self.assertGreater(figures["perplexity"], 1)
        write_png(self.folder / "any.png", [[0] * 28] * 28)
        self.fails(2, "predict", "verse", "any.png", says="tenon generate verse")
        self.fails(2, "predict", "verse", "tick tock", says="continues texts")
        self.assertIn("'", self.ok("predict", "verse", "--text", "tick to").out)
        self.assertIn("2 of 2 right" if figures["accuracy"] == 1 else " of 2 right",
                      self.ok("predict", "verse", "--data", "text:verse.txt,length=16", "--count", "2").out)
        row = self.json("predict", "verse", "--text", "tick to", "--top", "2", "--json")[0]
        self.assertEqual((row["text"], len(row["likeliest"])), ("tick to", 2))
        self.fails(2, "predict", "verse", "--text", "9", says="'9'")
        (self.folder / "pairs.txt").write_text("one\tун\n" * 40)
        for data in ("digits:20,10", "pairs:pairs.txt", "numbers:30,20"):
            self.fails(3, "predict", "verse", "--data", data, says=[f"--data {data}: gpt2", "takes text", "text:FILE"])
        (self.folder / "lines.txt").write_text("tick to\nsays the\n")
        self.assertEqual(len(self.json("predict", "verse", "lines.txt", "--count", "1", "--json")), 2)
        self.fails(2, "predict", "verse", "lines.txt", "--write", says=["--write", "reads texts"])
        self.fails(2, "predict", "verse", "lines.txt", "--preprocess", "resize,ten_crop", says=["--preprocess", "reads texts"])
        refused = self.fails(2, "generate", "verse", "--prompt", "tick", "--top-p", "2", says="top_p")
        self.assertEqual(refused.out, "")  # nothing is printed before a refusal

    def test_translation(self):
        out = self.ok("train", "transformer:layers=1,heads=2,width=32,hidden=64", "--epochs", "1", "--set", "max_steps=5", "--out", "words").out
        for word in ("best validation loss", "tenon generate words --prompt 'French: twenty-one'", "translated exactly"):
            self.assertIn(word, out)
        self.assertNotIn("generate text", out)
        self.ok("generate", "words", "--prompt", "French: twenty-one")
        self.fails(2, "generate", "words", says="--prompt")
        made = self.ok("generate", "words", "--prompt", "French: twenty-one").out.strip()
        self.assertEqual(self.json("predict", "words", "--text", "French: twenty-one", "--json")[0]["translation"], made)
        rows = self.json("predict", "words", "--data", "numbers:30,20", "--json")
        self.assertEqual(len(rows), 20)
        self.assertEqual([row["right"] for row in rows], [row["translation"] == row["target"] for row in rows])
        self.assertIn("of 2 right", self.ok("predict", "words", "--data", "numbers", "--count", "2").out)
        self.assertEqual(self.json("eval", "words", "--json")["exact"], 0)  # after five steps
        (self.folder / "prose.txt").write_text("ÄÖÜ are none of its letters. " * 40)
        self.fails(3, "predict", "words", "--data", "text:prose.txt", says=["text:prose.txt: transformer", "pairs of texts", "pairs:FILE"])

    def test_verify(self):
        report = self.json("verify", "run", "--steps", "12", "--json")
        self.assertTrue(report["passed"])
        self.assertGreaterEqual(len(report["checks"]), 3)
        self.assertEqual((report["steps"], report["run_steps"]), (12, 48))
        self.assertIn("every bit of run agrees, in the first 8 of its 48 steps\n", self.ok("verify", "run", "--steps", "8").out)
        self.assertIn("every bit of run agrees, in all of its 48 steps\n", self.ok("verify", "run", "--steps", "60").out)
        self.fails(2, "verify", "run", "--steps", "2", says="give 3 or more")
        self.ok("train", "lenet5", *DATA, "--epochs", "1", "--set", "max_steps=1", "--out", "step")
        self.assertIn("every bit of step agrees, in its only step\n", self.ok("verify", "step").out)
        shutil.copytree(self.folder / "run", self.folder / "stopped")
        log = self.folder / "stopped" / "log.jsonl"
        log.write_text("".join(log.read_text().splitlines(True)[:2]))  # the start and the first step
        told = self.ok("verify", "stopped", "--steps", "8").out
        self.assertIn("every bit of stopped agrees, in its first 8 steps; the run has done 1 of them\n", told)
        self.assertIn(" 1 loss agrees\n", told)

    def test_terminal_shows_bar_colours_and_images(self):
        code, text = self.in_terminal("train", "lenet5", *DATA, "--epochs", "1", "--out", "shown")
        self.assertEqual(code, 0, text)
        self.assertIn("━", text)
        self.assertIn("left", text)
        self.assertRegex(text, r"\rfirst step [^\r]*  0 of 24 steps\x1b\[K\repoch 1/1")  # before the first step is done
        code, text = self.in_terminal("predict", "run", *DATA, "--count", "1")
        self.assertEqual(code, 0, text)
        self.assertIn("▀", text)
        code, text = self.in_terminal("predict", "run", *DATA, "--count", "1", NO_COLOR="1", LANG="C")
        self.assertEqual(code, 0, text)
        self.assertNotIn("▀", text)
        self.assertNotIn("\x1b[38", text)
        # A terminal without UTF-8 gets ASCII, a narrow one no line that wraps.
        code, text = self.in_terminal("train", "lenet5", *DATA, "--epochs", "1", "--out", "c", columns=33, LC_ALL="C", NO_COLOR="1")
        self.assertEqual(code, 0)
        self.assertTrue(text.isascii(), text)
        bars = re.findall(r"\r([^\r\n]+)\x1b\[K", text)
        self.assertTrue(bars and all(len(bar) < 33 for bar in bars), bars)
        code, text = self.in_terminal("predict", "run", *DATA, "--count", "1", columns=36, LC_ALL="C", NO_COLOR="1")
        self.assertTrue(text.isascii() and all(len(line.strip()) <= 48 for line in text.splitlines()), text)
        for words in (["--help"], ["train", "--help"], ["predict", "--help"], ["data", "--help"], ["predict", "run"]):
            self.assertTrue(self.in_terminal(*words, LC_ALL="C")[1].isascii(), words)
        code, text = self.in_terminal("eval", "run", "--batch", "20")
        self.assertIn("testing ", text, "from the first batch on, however few there are")
        code, text = self.in_terminal("eval", "run", columns=60)
        self.assertEqual(code, 0, text)
        self.assertIn("\x1b[48;5;", text)

    def test_resume_extends_and_refuses_other_settings(self):
        self.ok("train", "lenet5", *DATA, "--epochs", "1", "--out", "more")
        self.fails(2, "train", "--resume", "more", "--lr", "0.1", says=["--lr", "only --epochs, --device, --threads"])
        self.fails(2, "train", "lenet5", "--resume", "more", says="MODEL cannot change")
        out = self.ok("train", "--resume", "more", "--epochs", "2", "--threads", "1").out
        self.assertIn("continuing after step", out)
        self.assertIn("epoch 2/2", out)
        self.assertIn("already finished", self.ok("train", "--resume", "more").out)
        before = (self.folder / "more" / "log.jsonl").read_bytes()
        shown = self.ok("train", "--resume", "more", "--epochs", "5", "--settings").out
        self.assertIn("epochs = 5 ", shown)
        self.assertEqual(before, (self.folder / "more" / "log.jsonl").read_bytes(), "nothing was trained")

    def test_resume_after_a_step_limit(self):
        out = self.ok("train", "mlp:784-16-10", "--data", "digits:200,50", "--batch", "10", "--epochs", "3", "--set", "max_steps=25",
                      "--out", "short").out
        self.assertIn("tenon train --resume short --set max_steps=0 ", out)
        out = self.ok("train", "--resume", "short", "--set", "max_steps=0").out
        self.assertIn("epoch 3/3", out)
        self.assertIn("tenon train --resume short --epochs 4 ", out)
        self.ok("verify", "short", "--steps", "40")

    def test_folders_are_numbered(self):
        for name in ("runs/mlp-784-16-10", "runs/mlp-784-16-10-2"):
            out = self.ok("train", "mlp:784-16-10", "--data", "digits:200,50", "--epochs", "1").out
            self.assertIn(f"run folder {name}\n", out)

    def test_classes_with_names(self):
        kinds = ["setosa", "versicolor", "virginica"]
        rows = "".join(f"{i % 3 * 3 + i % 7 / 10},{-2 * (i % 3)},{kinds[i % 3]}\n" for i in range(300))
        (self.folder / "flowers.csv").write_text("width,length,class\n" + rows)
        self.ok("train", "mlp:2-16-3", "--data", "csv:flowers.csv", "--epochs", "8", "--out", "flowers")
        for source in ("flowers", "flowers/best.safetensors"):
            text = self.ok("predict", source, "--data", "csv:flowers.csv", "--count", "3").out
            for kind in kinds:
                self.assertIn(f"class {kind}, ", text)
        self.assertIn("   setosa   100.00 %", self.ok("eval", "flowers").out)
        self.assertIn(self.json("predict", "flowers", "--data", "csv:flowers.csv", "--json")[0]["class_name"], kinds)

    def test_csv_network(self):
        rows = [f"{i % 3 + i * 0.001:.3f},{(i * 7) % 5},{i % 3}" for i in range(200)]
        (self.folder / "table.csv").write_text("a,b,class\n" + "\n".join(rows) + "\n")
        out = self.ok("train", "mlp:2-16-3", "--data", "csv:table.csv", "--epochs", "2", "--out", "table").out
        self.assertNotIn("photo", out)
        self.ok("eval", "table")
        self.assertEqual(len(self.json("predict", "table", "--data", "csv:table.csv", "--json")), self.json("eval", "table", "--json")["items"])
        self.assertEqual(self.ok("predict", "table", "table.csv", "--count", "7").out.count("table.csv, line "), 7)
        (self.folder / "one.jpg").write_bytes(b"not a table")
        self.fails(3, "predict", "table", "one.jpg", says="one.jpg")


class Stops(CommandTest):
    """Ctrl-C, SIGTERM, kill -9, and two runs in one folder."""

    def start_long(self, name):
        process = self.start("train", "lenet5", "--data", "digits:20000,300", "--epochs", "3", "--out", name,
                             "--set", "checkpoint_steps=20")
        latest = self.folder / name / "checkpoints" / "latest"
        deadline = time.time() + 60
        while not latest.exists() and time.time() < deadline and process.poll() is None:
            time.sleep(0.01)
        self.assertTrue(latest.exists(), "no checkpoint within a minute")
        return process

    def steps_of(self, name):
        rows = [json.loads(line) for line in (self.folder / name / "log.jsonl").read_text().splitlines() if line.endswith("}")]
        return max((row.get("step", 0) for row in rows), default=0)

    def stop_with(self, number, code):
        name = f"stopped{number}"
        process = self.start_long(name)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, out + err)
        self.assertIn(f"tenon train --resume {name}", out)
        self.assertIn("stopped after step", out)
        self.assertIn("stopping after the current step; Ctrl-C again stops at once\n", err)

    def test_interrupt_and_terminate(self):
        self.stop_with(signal.SIGINT, 130)
        self.stop_with(signal.SIGTERM, 143)

    def test_interrupt_while_stderr_is_closed(self):
        reads, writes = os.pipe()
        os.set_blocking(writes, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writes, b" " * 4096)
        os.set_blocking(writes, True)
        process = subprocess.Popen([TENON, "train", "lenet5", "--data", "digits:20000,300", "--epochs", "3", "--out", "unread", "--quiet"],
                                   cwd=self.folder, env=self.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writes)
        self.addCleanup(process.kill)
        log = self.folder / "unread" / "log.jsonl"
        deadline = time.time() + 60
        while not log.exists() and time.time() < deadline and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, out)
        os.close(reads)
        os.close(writes)

    def test_a_killed_run_resumes_to_the_same_bits(self):
        settings = ["--data", "digits:1000,100", "--epochs", "4", "--set", "checkpoint_steps=5"]
        self.ok("train", "lenet5", *settings, "--out", "whole")
        process = self.start("train", "lenet5", *settings, "--out", "killed")
        latest = self.folder / "killed" / "settings.toml"  # written after the first checkpoint
        deadline = time.time() + 60
        while not latest.exists() and time.time() < deadline and process.poll() is None:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        self.ok("train", "--resume", "killed", "--threads", "1")
        self.assertEqual((self.folder / "killed" / "model.safetensors").read_bytes()[-1000:],
                         (self.folder / "whole" / "model.safetensors").read_bytes()[-1000:])
        whole, killed = self.json("eval", "whole", "--json"), self.json("eval", "killed", "--json")
        self.assertEqual(whole["loss"], killed["loss"])

    def test_a_stopped_verification_leaves_nothing(self):
        """Also in its last stage, which has a folder for checkpoints."""
        self.ok("train", "lenet5", "--data", "digits:2000,100", "--epochs", "1", "--batch", "20", "--quiet", "--out", "checked")
        scratch = self.folder / "scratch"
        scratch.mkdir()
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = self.start("verify", "checked", "--steps", "100", TMPDIR=str(scratch))
            self.addCleanup(process.kill)
            deadline = time.time() + 120
            while not list(scratch.iterdir()) and time.time() < deadline and process.poll() is None:
                time.sleep(0.005)
            self.assertTrue(list(scratch.iterdir()), "the last stage has begun")
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code, out + err)
            self.assertIn("stopped: the run was not checked completely", out)
            self.assertEqual(list(scratch.iterdir()), [])

    def test_a_run_is_verified_on_another_instruction_set(self):
        run = ["train", "lenet5", "--data", "digits:200,50", "--epochs", "1", "--quiet", "--out"]
        self.ok(*run, "base", TENON_ISA="base")
        self.assertIn('"device":"cpu base"', (self.folder / "base" / "log.jsonl").read_text())
        self.ok("verify", "base", "--steps", "4", TENON_ISA="base")
        best = self.json("doctor", "--quick", "--json")["isa"]
        if best == "base":
            self.skipTest("this processor has no other instruction set")
        self.assertEqual(self.json("doctor", "--quick", "--json", TENON_ISA="base")["isa"], "base")
        self.assertIn("TENON_ISA", self.ok("doctor", "--quick", TENON_ISA="base").out)
        out = " ".join(self.run_command("verify", "base", "--steps", "4").out.split())
        self.assertIn(f"the run computed this step on cpu base with Tenon 0.1.0, and this is cpu {best} with Tenon 0.1.0: "
                      "the same bits are promised for one instruction set", out)
        self.assertNotIn("report", out)
        # Another loss on the same processor is another matter.
        log = self.folder / "base" / "log.jsonl"
        text = log.read_text()
        log.write_text(re.sub(r'("event":"step","step":2,"loss":)[^,]+', r"\g<1>1.5", text))
        out = " ".join(self.run_command("verify", "base", "--steps", "4", TENON_ISA="base").out.split())
        self.assertIn("both on cpu base with Tenon 0.1.0, which should give the same bits", out)
        self.fails(2, "verify", "base", TENON_ISA="sse9", says=["TENON_ISA is 'sse9'", "base, avx2, avx512"])

    def test_folder_in_use(self):
        process = self.start_long("busy")
        self.fails(4, "train", "--resume", "busy", says="busy")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)

    def test_nan_names_the_layer(self):
        result = self.fails(5, "train", "mlp:784-64-10", "--data", "digits:2000,100", "--epochs", "3", "--lr", "1e6",
                            "--set", "warmup=0", "--set", "activation=relu", "--out", "diverged", says=["hint:", "--lr"])
        self.assertIn("step", result.err)
        self.assertNotIn("best.safetensors", result.err)  # no epoch was done
        # A weight decay that makes the weights three times as large in each step: they overflow after some epochs.
        self.fails(5, "train", "mlp:784-64-10", "--data", "digits:200,50", "--epochs", "40", "--batch", "25", "--lr", "0.01",
                   "--set", "schedule=constant", "--set", "weight_decay=400", "--set", "activation=relu", "--out", "later",
                   says=["best.safetensors holds the weights of epoch", "are finite"])
        self.assertTrue((self.folder / "later" / "best.safetensors").exists())


if __name__ == "__main__":
    unittest.main()
