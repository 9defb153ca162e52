"""Help, version, completion: every command explains itself, and names nearly right are recognised."""
import shutil
import subprocess
import unittest

from command import CommandTest

COMMANDS = ["train", "eval", "predict", "summary", "inspect", "verify", "bench", "data", "doctor", "completion"]
LEAVES = [[name] for name in COMMANDS if name != "data"] + [["data", "fetch"], ["data", "sheet"], ["data", "info"]]


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
            self.assertTrue(all(len(line) <= 100 for line in out.splitlines()), words)

    def test_help_word_is_the_option(self):
        self.assertEqual(self.ok("help", "train").out, self.ok("train", "--help").out)
        self.assertIn("fetch", self.ok("data", "--help").out)

    def test_version(self):
        self.assertRegex(self.ok("--version").out, r"^tenon \d+\.\d+\.\d+\n$")

    def test_pages_show_defaults_and_groups(self):
        out = self.ok("train", "--help").out
        for word in ("--data SPEC", "(default: digits)", "--resume DIR", "--set KEY=VALUE", "The run", "Data\n"):
            self.assertIn(word, out)


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
