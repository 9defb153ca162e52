"""Help, version, completion: every command has a page, and misspelled names are recognised."""
import shutil
import subprocess
import unittest

from command import CommandTest

COMMANDS = ["train", "eval", "predict", "generate", "models", "summary", "inspect", "verify", "export", "bench", "data", "weights", "tokenizer", "new",
            "doctor", "completion"]
LEAVES = [[name] for name in COMMANDS if name not in ("data", "weights", "tokenizer")] + [
    ["data", "fetch"], ["data", "sheet"], ["data", "show"], ["data", "info"], ["weights", "show"], ["weights", "convert"], ["weights", "diff"],
    ["tokenizer", "train"], ["tokenizer", "encode"]]


class Help(CommandTest):
    def test_overview_names_every_command(self):
        for words in ([], ["--help"], ["help"], ["-h"]):
            out = self.ok(*words).out
            for name in COMMANDS:
                self.assertIn(f"  {name} ", out)

    def test_every_page_has_usage_prose_and_examples(self):
        for words in LEAVES:
            out = self.ok(*words, "--help").out
            self.assertIn(f"Usage\n  tenon {' '.join(words)}", out)
            self.assertIn("Examples\n", out)
            self.assertGreaterEqual(out.count(f"  tenon {' '.join(words)}") + out.count("source <(tenon"), 2, words)
            self.assertEqual([line for line in out.splitlines() if len(line) > 80], [], words)

    def test_pages_fit_narrow_terminals(self):
        for columns in (34, 50):
            for words in (["train"], ["inspect"], ["data", "info"]):
                code, out = self.in_terminal(*words, "--help", columns=columns, TERM="xterm", NO_COLOR="1")
                self.assertEqual(code, 0, out)
                explained = out.split("Examples")[0].replace("\r", "").splitlines()
                typed = ("  -", "  tenon")  # one word with its value, or to be copied
                self.assertEqual([line for line in explained if len(line) > columns and line.startswith(" ")
                                  and not line.startswith(typed)], [], columns)

    def test_lists_match_what_is_accepted(self):
        pages = {words[0]: " ".join(self.ok(*words, "--help").out.split()) for words in (["train"], ["eval"], ["inspect"])}

        def accepted(flag):
            words = self.fails(2, "train", "lenet5", flag, "xyzzy", says="one of").err.split("one of ")[1].split("\n")[0].split(";")[0]
            return words.split(", ")

        for flag in ("--optimizer", "--schedule"):
            self.assertIn(", ".join(accepted(flag)), pages["train"], flag)
        for flag in ("--precision", "--tune"):
            for word in accepted(flag):
                self.assertIn(word, pages["train"], flag)
                self.assertIn(word, pages["eval"], flag)
        for kind in ("digits", "scenes", "random", "numbers", "mnist", "cifar10", "cifar100", "idx:", "csv:", "npy:", "text:", "lines:", "pairs:",
                     "spans:", "folder:", "list:", "shards:"):
            self.assertIn(kind, pages["train"])
            self.assertIn(kind, self.ok("data", "--help").out)
        toml = self.ok("train", "lenet5", "--schedule", "multistep", "--set", "milestones=1,2.5", "--settings").out
        self.assertIn("--threads, --strict, --allow, --data (if", pages["train"])  # the options that a resume takes
        self.assertNotIn("): seen", pages["eval"])
        self.assertIn('milestones = "1,2.5"', toml)
        self.fails(2, "train", "lenet5", "--set", "milestones=2,1", says=["milestones", "ascending"])

    def test_kinds_of_values(self):
        page = " ".join(self.ok("predict", "--help").out.split())
        for words in ("classes or tokens to show", "samples to print of --data and of each file"):
            self.assertIn(words, page)
        self.assertIn("Of more than 1,000 classes only those that occur", " ".join(self.ok("eval", "--help").out.split()))

    def test_help_word_is_the_option(self):
        self.assertEqual(self.ok("help", "train").out, self.ok("train", "--help").out)
        self.assertIn("fetch", self.ok("data", "--help").out)

    def test_version(self):
        self.assertRegex(self.ok("--version").out, r"^tenon \d+\.\d+\.\d+\n$")

    def test_pages_show_defaults_and_groups(self):
        out = self.ok("train", "--help").out
        for word in ("--data SPEC", "--resume DIR", "--set KEY=VALUE", "The run", "Data\n"):
            self.assertIn(word, out)
        self.assertIn("(default: the model's: digits, scenes, random or numbers)", " ".join(out.split()))


class Completion(CommandTest):
    def test_bash_script_completes(self):
        script = self.ok("completion", "bash").out
        if shutil.which("bash") is None:
            self.skipTest("no bash")

        def complete(*words):
            line = script + f"\nCOMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; _tenon\n"
            line += 'printf "%s\\n" "${COMPREPLY[@]}"'
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual(done.stderr, "")
            return done.stdout.split()

        self.assertEqual(complete("tenon", "tr"), ["train"])
        self.assertIn("--epochs", complete("tenon", "train", "--e"))
        self.assertIn("lenet5", complete("tenon", "train", "le"))
        self.assertEqual(complete("tenon", "inspect", "--phase", "t"), ["train"])
        self.assertEqual(complete("tenon", "train", "--optimizer", "ad"), ["adam", "adamw", "adagrad", "adadelta", "adamax", "adafactor"])
        self.assertEqual(complete("tenon", "train", "--optimizer", "=", "rm"), ["rmsprop"])
        self.assertEqual(complete("tenon", "train", "--optimizer", "="),
                         ["sgd", "adam", "adamw", "rmsprop", "levenberg", "adagrad", "sparse_adam", "adadelta", "adamax", "nadam", "radam", "rprop", "asgd",
                          "lion", "muon", "lamb", "adafactor"])
        self.assertEqual(complete("tenon", "train", "lenet5", "--schedule", "mul"), ["multistep"])
        self.assertEqual(complete("tenon", "train", "--precision", "bf"), ["bf16"])
        self.assertEqual(complete("tenon", "train", "--device", "cu"), ["cuda"])
        self.assertEqual(complete("tenon", "train", "--data", "di"), ["digits"])
        self.assertEqual(complete("tenon", "data", "fe"), ["fetch"])
        self.assertIn("--from", complete("tenon", "data", "fetch", "--fr"))

    def test_scripts_parse(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.ok("completion", shell).out
            self.assertIn("tenon", script)
            if shutil.which(shell):
                check = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True)
                self.assertEqual((check.returncode, check.stderr), (0, ""), shell)

    def test_unknown_shell(self):
        self.fails(2, "completion", "tcsh", says=["tcsh", "bash, zsh, fish"])


if __name__ == "__main__":
    unittest.main()
