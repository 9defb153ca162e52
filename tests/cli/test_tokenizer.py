"""tenon tokenizer: learning a vocabulary and splitting texts."""
import json
import pathlib
import unittest

from command import CommandTest

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "e2e" / "fixtures" / "tokenizers"


class Tokenizers(CommandTest):
    def test_train_and_encode(self):
        corpus = str(FIXTURES / "corpus.txt")
        self.assertIn("513 tokens", self.ok("tokenizer", "train", corpus, "--tokens", "600").out)
        told = self.json("tokenizer", "encode", "tokenizer.json", "The quick brown fox 😀", "--json")
        self.assertEqual(len(told["numbers"]), len(told["tokens"]))
        self.assertEqual("".join(told["tokens"])[:6], "TheĠqu")
        self.ok("tokenizer", "train", corpus, corpus, "--kind", "wordpiece", "--tokens", "1000", "--out", "bert.json")
        lines = self.ok("tokenizer", "encode", "bert.json", "The dog").out.split()
        self.assertEqual((lines[1], lines[-1]), ("[CLS]", "[SEP]"))
        first = (self.folder / "bert.json").read_bytes()
        self.ok("tokenizer", "train", corpus, corpus, "--kind", "wordpiece", "--tokens", "1000", "--out", "bert.json")
        self.assertEqual(first, (self.folder / "bert.json").read_bytes())

    def test_tokenizer_files_of_other_libraries(self):
        line = "Straße, GROẞ naïve 漢字 it's"
        expected = json.loads((FIXTURES / "expected.json").read_text())
        (self.folder / "line.txt").write_text(expected["lines"][1])
        for name, path in (("bert", "bert"), ("gpt2", "gpt2/vocab.json"), ("gpt2", "gpt2.json")):
            told = self.json("tokenizer", "encode", str(FIXTURES / path), "--file", "line.txt", "--json")
            self.assertEqual(told["numbers"], expected[name][1][0])
        self.assertIn("[CLS]", self.ok("tokenizer", "encode", str(FIXTURES / "bert"), line).out)

    def test_words_and_classes_by_one(self):
        (self.folder / "text.txt").write_text("the sea is wide .\nthe land is far .\n" * 200)
        (self.folder / "lines.txt").write_text("water\tthe sea is wide\nearth\tthe land is far\n" * 40)
        small = "layers=1,heads=2,width=16,context=16"
        self.ok("train", f"bert:{small}", "--tokenizer", str(FIXTURES / "bert"), "--data", "text:text.txt,length=16", "--epochs", "1", "--quiet", "--out", "words")
        self.assertIn("perplexity", self.ok("eval", "words").out)
        told = self.json("predict", "words", "--text", "the [MASK] is wide", "--json")[0]
        vocabulary = (FIXTURES / "bert" / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.assertEqual(told["class_name"], vocabulary[told["class"]])
        self.assertIn("\nword ", self.ok("predict", "words", "--text", "the [MASK] is wide").out)
        self.fails(2, "predict", "words", "--text", "the sea", says="[MASK]")
        self.fails(2, "predict", "words", "--data", "text:text.txt", says=["[MASK]", "tenon eval words --data text:text.txt"])
        self.ok("train", f"bert_classifier:{small},vocabulary={len(vocabulary)}", "--weights", "words/model.safetensors", "--tokenizer", "words/tokenizer.json", "--data", "lines:lines.txt",
                "--epochs", "8", "--lr", "0.01", "--quiet", "--out", "classes")
        (self.folder / "more.txt").write_text("the sea is wide\nthe land is far\n")
        told = self.json("predict", "classes/model.safetensors", "more.txt", "--json")
        self.assertEqual([each["class_name"] for each in told], ["water", "earth"])
        row = self.json("predict", "classes", "--data", "lines:lines.txt", "--count", "1", "--json")[0]
        self.assertEqual(row["class_name"], ("earth", "water")[row["label"]])
        (self.folder / "water.txt").write_text("water\tthe sea is wide\n" * 20)
        (self.folder / "fire.txt").write_text("fire\tthe sea is wide\n" * 20)
        self.assertEqual(self.json("eval", "classes", "--data", "lines:water.txt", "--json")["accuracy"], 1)
        self.assertEqual(self.json("predict", "classes", "--data", "lines:water.txt", "--count", "1", "--json")[0]["label"], 1)
        for command in "eval", "predict":
            self.fails(3, command, "classes", "--data", "lines:fire.txt", says=["'fire'", "(earth, water)"])
        self.fails(2, "eval", "classes", "--tokenizer", str(FIXTURES / "bert"), says="--weights")
        self.fails(2, "train", f"bert:{small}", "--data", "text:text.txt", "--out", "none", says="--tokenizer")

    def told(self, *words):
        """The output with wrapped lines joined."""
        result = self.ok(*words)
        return " ".join((result.out + result.err).split())

    def test_cut_texts_and_unknown_words_are_reported(self):
        vocabulary = (FIXTURES / "bert" / "vocab.txt").read_text(encoding="utf-8").split("\n")
        long, odd = "water\tthe sea is wide and so is the land\n", "earth\tthe land 龘\n"
        (self.folder / "lines.txt").write_text((long + "earth\tthe land\n") * 19 + odd * 2, encoding="utf-8")
        given = ("--data", "lines:lines.txt,length=6,validation=0,split=0", "--tokenizer", str(FIXTURES / "bert"))
        said = ["note: lines.txt, line 1: 19 of 40 texts of the training part are cut to 6 tokens",
                "note: lines.txt, line 39: 2 words or characters in 2 of 40 texts of the training part are not in the vocabulary"]
        self.assertNotIn("龘", vocabulary)
        self.assertEqual([note[6:] in self.told("data", "info", *given[1:]) for note in said], [True, True])
        small = f"bert_classifier:layers=1,heads=2,width=16,context=16,vocabulary={len(vocabulary)}"
        train = ("train", small, *given, "--epochs", "1", "--out", "run")
        self.fails(3, *train, "--strict", says="19 of 40 texts")
        told = self.told(*train)
        self.assertEqual([note in told for note in said], [True, True])

    def test_what_texts_hold(self):
        (self.folder / "told.txt").write_text("water\tthe sea is wide\nearth\tthe land is far\n" * 40)
        (self.folder / "asked.tsv").write_text("".join(f"what is wide\tthe sea {k} is wide .\tthe sea\n" for k in range(40)))
        given = ("--tokenizer", str(FIXTURES / "bert"))
        told = self.ok("data", "info", "lines:told.txt", *given).out
        for counts in ("earth: 32, water: 33", "earth: 4, water: 3", "earth: 4, water: 4"):
            self.assertIn(counts, told)
        held = self.json("data", "info", "spans:asked.tsv,length=32,question=8,stride=4", *given, "--json")
        self.assertEqual([held[part]["size"] for part in ("train", "validation", "test")], [32, 4, 4])
        self.assertEqual(held["train"]["counts"], [])
        (self.folder / "one.tsv").write_text("what is wide\tthe sea is wide .\tthe sea\n" * 40)
        self.fails(2, "data", "info", "spans:one.tsv", *given, says=["one.tsv", "all are of one file or text", "split=0"])
        self.fails(2, "data", "info", "lines:told.txt", says="--tokenizer")
        for command in "show", "sheet":
            self.fails(2, "data", command, "spans:asked.tsv", "x.png", says=["not images", "tenon data info spans:asked.tsv --tokenizer"])

    def test_a_run_of_questions_finds_its_file(self):
        (self.folder / "asked.tsv").write_text("".join(f"what is wide\tthe sea {k} is wide .\tthe sea\n" for k in range(40)))
        vocabulary = len((FIXTURES / "bert" / "vocab.txt").read_text(encoding="utf-8").split("\n"))
        self.ok("train", f"bert_spans:layers=1,heads=2,width=16,context=32,vocabulary={vocabulary}", "--tokenizer", str(FIXTURES / "bert"),
                "--data", "spans:asked.tsv,length=32,question=8,stride=4", "--epochs", "1", "--quiet", "--out", "elsewhere/spans")
        (self.folder / "asked.tsv").rename(self.folder / "elsewhere" / "asked.tsv")
        self.assertIn("exact", self.ok("eval", "elsewhere/spans").out)
        self.assertIn("exact", self.ok("eval", "elsewhere/spans/model.safetensors").out)
        (self.folder / "alone.safetensors").write_bytes((self.folder / "elsewhere/spans/model.safetensors").read_bytes())
        self.fails(2, "eval", "alone.safetensors", says="--data")

    def test_likeliest_next_tokens(self):
        corpus, small = FIXTURES / "corpus.txt", "gpt2:layers=1,heads=1,width=8,context=8"
        self.ok("tokenizer", "train", str(corpus), "--tokens", "300", "--out", "small.json")
        self.ok("tokenizer", "train", str(corpus), "--tokens", "600", "--out", "large.json")
        tokens = len(json.loads((self.folder / "small.json").read_text(encoding="utf-8"))["model"]["vocab"])
        (self.folder / "book.txt").write_text(corpus.read_text(encoding="utf-8") * 20, encoding="utf-8")
        self.ok("train", small, "--tokenizer", "small.json", "--data", "text:book.txt", "--set", f"classes={tokens + 3}", "--set", "max_steps=2", "--quiet", "--out", "padded")
        told = self.json("predict", "padded", "--text", "The quick", "--top", "1000", "--json")[0]["likeliest"]
        names = [each["token"] for each in told]
        self.assertEqual(len(names), tokens + 3)
        for name in ("<|endoftext|>", f"<{tokens}>", f"<{tokens + 2}>"):
            self.assertIn(name, names)
        (self.folder / "lines.txt").write_text("water\tthe sea is wide\nearth\tthe land is far\n" * 40)
        for data in ("digits:20,10", "lines:lines.txt"):
            self.fails(3, "predict", "padded", "--data", data, says=[f"--data {data}: gpt2", "text:FILE"])
        given = ("--weights", "padded/model.safetensors", "--classes", str(tokens + 3), "--tokenizer", "large.json")
        self.fails(2, "predict", small, *given, "--data", "text:book.txt", says="the tokenizer belongs to another network")

    def test_refusals(self):
        (self.folder / "bad.json").write_text('{"model": {"type": "Unigram", "vocab": {}}}')
        self.fails(7, "tokenizer", "encode", "bad.json", "a", says="Unigram")
        self.fails(4, "tokenizer", "encode", "gone", "a", says="gone")
        self.fails(2, "tokenizer", "encode", "bad.json", says="--file")
        self.fails(2, "tokenizer", "train", "bad.json", "--kind", "wordpeice", says="wordpiece")
        self.fails(2, "tokenizer", "train", "bad.json", "--tokens", "10", says="257 characters and special tokens of the text: allow at least 257")
        (self.folder / "latin").write_bytes(b"caf\xe9\n")
        self.fails(3, "tokenizer", "train", "latin", says="UTF-8")
        (self.folder / "ends").write_bytes(b"musique cr\xe9\xe9")  # reading this file did not end
        self.fails(3, "tokenizer", "encode", str(FIXTURES / "gpt2.json"), "--file", "ends", says="ends: the text is not UTF-8 at byte 10")


if __name__ == "__main__":
    unittest.main()
