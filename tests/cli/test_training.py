"""What training reports: the part that each figure was measured on; folds; runs that were killed and resumed."""
import json
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

from command import CommandTest, TENON

FOLD = re.compile(r"test accuracy +([\d.]+) % ± ([\d.]+) %  \((.*)\)")


class Runs(CommandTest):
    def noise(self, name, rows=200):
        """Numbers and unrelated labels."""
        draws = random.Random(1)
        lines = ["a,b,c,d,e,f,g,h,y"]
        lines += [",".join(f"{draws.gauss(0, 1):.3f}" for _ in range(8)) + "," + "pn"[i % 2] for i in range(rows)]
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def lines(self, run, event):
        log = (self.folder / run / "log.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, log) if line["event"] == event]


class Parts(Runs):
    def test_each_figure_names_its_part(self):
        self.noise("t.csv")
        words = ["train", "mlp:8-16-2", "--data", "csv:t.csv", "--epochs", "4", "--batch", "16", "--out", "run"]
        out = self.ok(*words).out
        self.assertIn("samples: 162 for training, 18 for validation, 20 for testing\n", out)
        self.assertRegex(out, r"epoch 1/4  training loss [\d.]+, accuracy [\d.]+ %  validation accuracy [\d.]+ %")
        self.assertRegex(out, r"\nbest validation accuracy [\d.]+ % \(epoch \d, 18 samples\)\n")
        test = re.search(r"\ntest accuracy ([\d.]+) % \(epoch (\d), 20 samples, measured once\)\n", out)
        self.assertTrue(test, out)
        header = (self.folder / "run" / "log.csv").read_text().splitlines()[0].split(",")
        for name in ("validation_loss", "validation_accuracy", "validation_mae", "validation_r2", "test_loss", "test_accuracy"):
            self.assertIn(name, header)
        tested = self.lines("run", "test")
        self.assertEqual(len(tested), 1)
        self.assertEqual((tested[0]["epoch"], tested[0]["samples"]), (int(test[2]), 20))
        for line in self.lines("run", "epoch"):
            self.assertIn("validation_accuracy", line)
            self.assertNotIn("test_accuracy", line)
        # The stored model gives the same figure again.
        self.assertAlmostEqual(self.json("eval", "run", "--json")["accuracy"], tested[0]["test_accuracy"])
        again = self.ok("train", "--resume", "run").out
        self.assertIn("already finished", again)
        self.assertIn(test[0].strip(), again)
        self.assertEqual(self.lines("run", "test"), tested)

    def test_a_resume_keeps_the_data_and_how_it_is_divided(self):
        self.noise("r.csv", 60)
        self.ok("train", "mlp:8-16-2", "--data", "csv:r.csv,split=0.3", "--epochs", "2", "--quiet", "--out", "kept")
        self.fails(2, "train", "--resume", "kept", "--epochs", "3", "--data", "csv:r.csv,split=0.3,seed=7",
                   says="not how the files are read and split")
        (self.folder / "moved").mkdir()
        (self.folder / "r.csv").rename(self.folder / "moved" / "r.csv")
        self.ok("train", "--resume", "kept", "--epochs", "3", "--data", "csv:moved/r.csv,split=0.3", "--quiet")
        rows = (self.folder / "moved" / "r.csv").read_text().splitlines(keepends=True)
        (self.folder / "moved" / "r.csv").write_text(rows[0] + "".join(reversed(rows[1:])))
        self.fails(2, "train", "--resume", "kept", "--epochs", "4", says="other training samples")

    def test_the_training_file_is_not_a_test_part(self):
        self.noise("own.csv", 60)
        (self.folder / "link.csv").symlink_to(self.folder / "own.csv")
        for test in ("own.csv", "./own.csv", "link.csv"):
            self.fails(2, "train", "mlp:8-16-2", "--data", f"csv:own.csv,test={test}", says="is the training part")
            self.fails(2, "data", "info", f"csv:own.csv,test={test}", says="is the training part")
        for name in ("own.txt", "x.npy", "y.npy"):
            (self.folder / name).write_text("a\tb\n" * 20)
        for source in ("pairs:own.txt,test=own.txt", "text:own.txt,test=./own.txt", "list:own.txt,test=own.txt", "folder:.,test=./", "npy:x.npy,y.npy,./x.npy,y.npy"):
            self.fails(2, "data", "info", source, says="is the training part")

    def test_labels_that_may_be_missing_are_reported(self):
        (self.folder / "na.csv").write_text("a,y\n" + "".join(f"{i},{'NA' if i % 5 == 0 else 'pn'[i % 2]}\n" for i in range(40)))
        self.assertIn("8 rows have no label ('NA') and are left out", " ".join(self.ok("data", "info", "csv:na.csv").out.split()))
        self.fails(3, "data", "info", "csv:na.csv", "--strict", says="8 rows have no label ('NA')")

    def test_without_a_validation_part_the_last_weights_stay(self):
        self.noise("t.csv")
        out = self.ok("train", "mlp:8-16-2", "--data", "csv:t.csv,validation=0", "--epochs", "3", "--batch", "16", "--out", "none").out
        self.assertIn("samples: 180 for training, none for validation, 20 for testing\n", out)
        self.assertIn("no validation part: the weights of the last epoch (3) are kept\n", out)
        self.assertRegex(out, r"test accuracy [\d.]+ % \(epoch 3, 20 samples, measured once\)")
        self.assertFalse((self.folder / "none" / "best.safetensors").exists())

    def test_notes_of_data_readers_are_reported_or_refused(self):
        self.noise("rare.csv")
        with open(self.folder / "rare.csv", "a", encoding="utf-8") as table:
            table.write("1,1,1,1,1,1,1,1,rare\n")  # only one part has this class
        words = ["train", "mlp:8-4-3", "--data", "csv:rare.csv", "--epochs", "1", "--out"]
        out = self.ok(*words, "noted").out
        self.assertRegex(out, r"\nnote: rare.csv: the validation part has no sample of 1 class")
        self.assertLess(out.index("note: rare.csv"), out.index("epoch 1/1"))
        self.assertEqual(out.count("the validation part has no sample"), 1)
        quiet = self.ok(*words, "quiet", "--quiet")
        self.assertNotIn("note:", quiet.out)
        self.assertIn("note: rare.csv: the validation part has no sample", quiet.err)
        self.fails(3, *words, "strict", "--strict", says=["rare.csv", "'rare'", "strict"])
        self.assertFalse((self.folder / "strict").exists(), "nothing was trained")
        self.assertIn("strict = false", (self.folder / "noted" / "settings.toml").read_text())
        self.fails(3, "train", "--resume", "noted", "--strict", says="'rare'")

    def test_a_last_batch_of_one(self):
        (self.folder / "bn.toml").write_text(
            'input = [8]\nclasses = 2\nlayers = [ { linear = 16 }, "batch_norm1d", "relu", { linear = "classes" } ]\n')
        self.noise("t.csv", rows=81)
        words = ["train", "bn.toml", "--data", "csv:t.csv", "--batch", "16", "--epochs", "2", "--out", "bn"]
        shown = self.ok(*words[:-1], "probe", "--set", "drop_last=true").out
        rows = int(re.search(r"samples: (\d+) for training", shown)[1])
        words[words.index("--batch") + 1] = str(next(n for n in range(5, rows) if (rows - 1) % n == 0))
        self.fails(2, *words, says=["the last batch of an epoch has one sample", "drop_last"])
        self.assertFalse((self.folder / "bn").exists(), "nothing was trained")
        self.ok(*words, "--set", "drop_last=true")
        # It may change on a resume.
        words[words.index("--batch") + 1] = str(next(n for n in range(5, rows) if (rows - 2) % n == 0))
        words[words.index("--out") + 1] = "on"
        self.ok(*words)
        steps = self.lines("on", "epoch")[-1]["step"]
        self.ok("train", "--resume", "on", "--epochs", "3", "--set", "drop_last=true")
        self.assertEqual(self.lines("on", "epoch")[-1]["step"], steps + steps // 2 - 1)

    def test_a_damaged_model_is_written_again(self):
        self.ok("train", "mlp:784-16-10", "--data", "digits:200,50", "--epochs", "2", "--out", "hurt")
        file = self.folder / "hurt" / "model.safetensors"
        whole = file.read_bytes()
        for damaged in (b"", whole[:100], whole[:-7], b"\xff" * 64 + whole[64:], whole[:9] + b"}" + whole[10:]):
            file.write_bytes(damaged)
            self.ok("train", "--resume", "hurt")
            self.assertEqual(file.read_bytes(), whole)
        self.assertEqual(len(self.lines("hurt", "test")), 1)


class Folds(Runs):
    def words(self, out, *more, epochs="60"):
        return ["train", "mlp:8-32-2", "--data", "csv:noise.csv,stratify", "--epochs", epochs, "--batch", "16", "--optimizer", "adam",
                "--lr", "0.01", "--quiet", "--folds", "5", "--out", out, *more]

    def test_test_samples_that_equal_training_samples_are_counted(self):
        (self.folder / "equal.csv").write_text("a,b,label\n" + "".join(f"{k % 4},1,{'xy'[k % 2]}\n" for k in range(48)))
        out = self.ok("train", "mlp:2-4-2", "--data", "csv:equal.csv", "--epochs", "1", "--quiet", "--folds", "3", "--out", "equal").out
        self.assertIn("  training has seen 48 of 48 samples of the test parts  (16, 16, 16)\n", out)
        self.noise("apart.csv")
        out = self.ok("train", "mlp:8-4-2", "--data", "csv:apart.csv", "--epochs", "1", "--quiet", "--folds", "3", "--out", "apart").out
        self.assertNotIn("training has seen", out)

    def test_random_labels_give_chance_accuracy(self):
        self.noise("noise.csv")
        for name, more in (("best", []), ("last", ["--set", "keep_best=false"])):
            out = self.ok(*self.words(name, *more)).out
            self.assertIn("5 folds, each tested on the part that it was not trained on (200 samples in total)", out)
            mean, _, each = FOLD.search(out).groups()
            self.assertLess(abs(float(mean) - 50), 10.6)  # three standard deviations of 200 tosses
            each = [float(one.split()[0]) for one in each.split(", ")]
            self.assertAlmostEqual(sum(each) / 5, float(mean), places=2)
            for fold in range(1, 6):
                figures = self.json("eval", f"{name}/fold-{fold}", "--json")
                self.assertEqual(figures["items"], 40)
                self.assertAlmostEqual(100 * figures["accuracy"], each[fold - 1], places=2)
                self.assertEqual(len(self.lines(f"{name}/fold-{fold}", "test")), 1)

    def test_killed_at_any_time_they_resume(self):
        self.noise("noise.csv")
        whole = FOLD.search(self.ok(*self.words("whole")).out)[0]
        start = time.time()
        self.ok(*self.words("timed"))
        seconds = time.time() - start
        draws = random.Random(5)
        resumed = 0
        for _ in range(4):
            shutil.rmtree(self.folder / "killed", ignore_errors=True)
            process = self.start(*self.words("killed"))
            time.sleep(draws.uniform(0.05, 0.9) * seconds)
            process.kill()
            process.communicate()
            if not (self.folder / "killed" / "fold-1").exists():
                continue  # before the first fold
            resumed += 1
            # Once more during the resume.
            process = self.start("train", "--resume", "killed", "--quiet")
            time.sleep(draws.uniform(0.05, 0.6) * seconds)
            process.kill()
            process.communicate()
            before = {fold: (self.folder / "killed" / fold / "log.jsonl").read_text().count('"event":"step"')
                      for fold in ("fold-1",) if (self.folder / "killed" / fold / "model.safetensors").exists()}
            out = self.ok("train", "--resume", "killed", "--quiet").out
            self.assertEqual(FOLD.search(out)[0], whole)
            for fold, steps in before.items():
                self.assertEqual((self.folder / "killed" / fold / "log.jsonl").read_text().count('"event":"step"'), steps)
            for fold in range(1, 6):
                self.assertEqual(len(self.lines(f"killed/fold-{fold}", "test")), 1)
                self.assertEqual((self.folder / f"killed/fold-{fold}/model.safetensors").read_bytes()[-500:],
                                 (self.folder / f"whole/fold-{fold}/model.safetensors").read_bytes()[-500:])
        self.assertGreater(resumed, 0)

    def test_interrupted_they_say_how_to_resume(self):
        self.noise("noise.csv", rows=2000)
        process = self.start(*self.words("stopped", epochs="200"))
        log = self.folder / "stopped" / "fold-1" / "log.csv"
        deadline = time.time() + 60
        while not log.exists() and time.time() < deadline and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out)
        self.assertIn("stopped in fold 1; everything is saved in stopped\nresume with: tenon train --resume stopped\n", out)
        self.fails(2, "train", "--resume", "stopped", "--lr", "0.1", says=["--lr cannot change", "--strict, --allow, --data"])
        self.fails(2, *self.words("stopped"), says=["--out: stopped already holds folds", "--resume stopped"])
        for words in (["eval", "stopped"], ["verify", "stopped"], ["predict", "stopped", "--data", "csv:noise.csv"]):
            self.fails(4, *words, says=["holds 5 folds", "as in stopped/fold-1"])
        (self.folder / "stopped" / "folds.toml").write_text("model = \"lenet5\"\n")
        self.fails(3, "train", "--resume", "stopped", says="folds.toml does not begin with the number of folds")


class Weights(Runs):
    """A run that starts from given weights stores them in its first checkpoint and cannot be resumed before that."""

    WORDS = ["train", "mlp:8-64-2", "--data", "csv:t.csv", "--epochs", "2", "--batch", "16", "--quiet", "--weights", "start/model.safetensors"]

    def setUp(self):
        if not (self.folder / "start").exists():
            self.noise("t.csv")
            self.ok("train", "mlp:8-64-2", "--data", "csv:t.csv", "--epochs", "1", "--out", "start")

    def weights(self, run):
        return (self.folder / run / "model.safetensors").read_bytes()[-2000:]

    def test_stopped_before_the_first_checkpoint(self):
        self.ok("train", "resnet20:width=4", "--data", "scenes:60,20", "--epochs", "1", "--out", "base")
        common = ["train", "resnet20:width=4", "--data", "scenes:48,20", "--epochs", "2", "--batch", "16", "--quiet", "--threads", "1",
                  "--weights", "base/model.safetensors"]
        frozen = ["--freeze", "conv1,bn1,layer1,layer2,layer3"]
        for name, more in (("plain", []), ("disk", [*frozen, "--keep-frozen", "disk"]),
                           ("variants", [*frozen, "--augment", "crop=4,flip", "--frozen-variants", "3"]), ("lora", ["--lora", "rank=2"])):
            self.ok(*common, *more, "--out", name)
            # Only the files that are written before settings.toml exist.
            for left in (("lock",), ("lock", "log.csv"), ("lock", "log.csv", "log.jsonl")):
                shutil.rmtree(self.folder / "left", ignore_errors=True)
                (self.folder / "left" / "checkpoints").mkdir(parents=True)
                for file in left:
                    text = (self.folder / name / file).read_text()
                    (self.folder / "left" / file).write_text(text.splitlines(True)[0] if file.startswith("log") else text)
                (self.folder / "left" / "checkpoints" / "step-00000000.safetensors").write_bytes(b"torn")
                (self.folder / "left" / "settings.toml.tmp-1-0").write_text("model")
                self.fails(4, "train", "--resume", "left", says=["left holds no run", "start it again"])
                self.ok(*common, *more, "--out", "left")
                self.assertEqual(self.weights("left"), self.weights(name), name)
                self.assertEqual(list((self.folder / "left").rglob("*.tmp-*")), [])
            # A run with a checkpoint no longer needs the initial weights.
            (self.folder / "base").rename(self.folder / "away")
            self.ok("train", "--resume", name, "--epochs", "3", "--quiet")
            (self.folder / "away").rename(self.folder / "base")
            # A run that has lost its checkpoints is not started again.
            shutil.rmtree(self.folder / name / "checkpoints")
            self.fails(4, "train", "--resume", name, says="has lost its checkpoints")

    def test_killed_at_random_times(self):
        self.ok(*self.WORDS, "--out", "whole")
        draws, before = random.Random(2), 0
        for _ in range(24):
            shutil.rmtree(self.folder / "killed", ignore_errors=True)
            process = self.start(*self.WORDS, "--out", "killed")
            settings, folder = self.folder / "killed" / "settings.toml", self.folder / "killed"
            awaited = draws.choice((folder, folder / "log.jsonl", settings))
            deadline = time.time() + 30
            while not awaited.exists() and time.time() < deadline and process.poll() is None:
                pass
            time.sleep(draws.choice((0, 0, 0.001, 0.01, 0.03)))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if settings.exists():
                self.ok("train", "--resume", "killed", "--quiet")
            else:
                before += 1
                self.fails(4, "train", "--resume", "killed", says="start it again")
                self.ok(*self.WORDS, "--out", "killed")
            self.assertEqual(self.weights("killed"), self.weights("whole"))
        self.assertGreater(before, 0, "never killed before the first checkpoint")

    def test_a_moved_run_finds_its_files(self):
        place = self.folder / "place"
        place.mkdir()
        shutil.copytree(self.folder / "start", place / "start")
        shutil.copy(self.folder / "t.csv", place)
        moved = [*self.WORDS[1:], "--folds", "2", "--out", "runs/folds"]
        script = ["sh", "-c", 'cd place && exec "$0" "$@"', TENON]
        run = lambda *words: subprocess.run([*script, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        self.assertEqual(run("train", *moved).returncode, 0)
        self.assertEqual(run("train", *self.WORDS[1:], "--out", "runs/one").returncode, 0)
        whole = (place / "runs" / "folds" / "fold-2" / "model.safetensors").read_bytes()[-2000:]
        shutil.rmtree(place / "runs" / "folds" / "fold-2")
        place.rename(self.folder / "elsewhere")
        shutil.move(self.folder / "start", self.folder / "hidden")
        try:
            self.ok("train", "--resume", "elsewhere/runs/folds", "--quiet")
            self.assertEqual((self.folder / "elsewhere/runs/folds/fold-2/model.safetensors").read_bytes()[-2000:], whole)
            self.ok("verify", "elsewhere/runs/one")
            self.ok("train", "--resume", "elsewhere/runs/one", "--epochs", "3", "--quiet")
        finally:
            shutil.move(self.folder / "hidden", self.folder / "start")

    def test_folds_begin_with_the_same_files(self):
        shutil.copytree(self.folder / "start", self.folder / "own")
        words = [*self.WORDS[:-1], "own/model.safetensors", "--folds", "3", "--out", "same"]
        self.ok(*words)
        shutil.rmtree(self.folder / "same" / "fold-3")
        weights = self.folder / "own" / "model.safetensors"
        kept = weights.read_bytes()
        self.ok(*self.WORDS[:-2], "--out", "other")
        weights.write_bytes((self.folder / "other" / "model.safetensors").read_bytes())
        self.fails(2, "train", "--resume", "same", says=["own/model.safetensors was changed since the folds began", "restore it"])
        weights.unlink()
        self.fails(2, "train", "--resume", "same", says="no longer exists")
        weights.write_bytes(kept)
        self.assertIn("3 folds, each tested on", self.ok("train", "--resume", "same", "--quiet").out)

    def test_folds_with_initial_weights_and_a_teacher_resume(self):
        self.ok(*self.WORDS, "--teacher", "start", "--folds", "2", "--out", "taught")
        shutil.rmtree(self.folder / "taught" / "fold-2")
        self.assertIn("2 folds, each tested on", self.ok("train", "--resume", "taught", "--quiet").out)

    def test_folds_that_were_killed_at_their_start(self):
        words = [*self.WORDS, "--folds", "2", "--out"]
        for name, left in (("empty", ()), ("torn", ("folds.toml.tmp-12-0",))):
            (self.folder / name).mkdir()
            for file in left:
                (self.folder / name / file).write_text("folds = 2\nmod")
            self.fails(4, "train", "--resume", name, says=[f"{name} holds no run", "start it again"])
            self.assertIn("2 folds, each tested on", self.ok(*words, name).out)
            self.assertEqual(list((self.folder / name).glob("*.tmp-*")), [])


class Settings(Runs):
    """settings.toml has the settings of the run."""

    def test_edited_by_hand(self):
        self.ok("train", "mlp:784-16-10", "--data", "digits:200,50", "--epochs", "2", "--out", "run")
        file = self.folder / "run" / "settings.toml"
        kept = file.read_text()
        model = (self.folder / "run" / "model.safetensors").read_bytes()
        for line, other, says in (("batch", "batch = 32", ["'batch' is '32', and '", "in the newest checkpoint", "Set it back to '"]),
                                  ("lr", "lr = 0.5", ["'lr' is '0.5'"]), ("seed", "seed = 3", ["'seed' is '3', and '0'"]),
                                  ("label_smoothing", "label_smoothing = 0.2", ["'label_smoothing' is '0.2'"]),
                                  ("data", 'data = "digits:300,50"', ["'data' is 'digits:300,50', and 'digits:200,50'"]),
                                  ("keep_best", "keep_best = false", ["'keep_best' is 'false', and 'true'"])):
            file.write_text(re.sub(rf"^{line} = .*$", other, kept, flags=re.M))
            self.fails(2, "train", "--resume", "run", "--epochs", "3", says=["run/settings.toml", *says, "start a new run"])
            self.assertEqual((self.folder / "run" / "model.safetensors").read_bytes(), model)
        file.write_text(re.sub(r"^epochs = .*$", "epochs = 3", kept, flags=re.M))
        out = self.ok("train", "--resume", "run").out
        self.assertIn("settings.toml says epochs = 3, the newest checkpoint 2: the run continues with 3", " ".join(out.split()))
        self.assertEqual(len(self.lines("run", "epoch")), 3)
        self.assertNotIn("settings.toml says", self.ok("train", "--resume", "run", "--epochs", "4").out)

    def test_runs_started_together_have_separate_folders(self):
        self.noise("few.csv", 60)
        words = ["train", "mlp:8-4-2", "--data", "csv:few.csv", "--epochs", "1", "--quiet"]
        processes = [self.start(*words, *more) for more in ([], [], [], ["--folds", "2"])]
        outs = [process.communicate(timeout=240) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * 4, outs)
        names = sorted(path.name for path in (self.folder / "runs").iterdir())
        self.assertEqual(names, ["mlp-8-4-2", "mlp-8-4-2-2", "mlp-8-4-2-3", "mlp-8-4-2-4"])
        self.assertEqual(len(list((self.folder / "runs").glob("*/model.safetensors"))), 3)
        # A run that fails before its start leaves no folder.
        self.fails(3, "train", "mlp:9-4-2", "--data", "csv:few.csv", says="mlp:8-64-2")
        self.assertEqual(len(list((self.folder / "runs").iterdir())), 4)


if __name__ == "__main__":
    unittest.main()
