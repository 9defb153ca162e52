#!/usr/bin/env python3
"""Writes fixtures/tokenizers/: small tokenizers and the results of Hugging Face's library for a hard text: python3 make_tokenizer_fixtures.py

    pip install tokenizers            (0.23 made the committed files)

corpus.txt     lines in many scripts, with emoji, control characters, odd spaces, long words; the tokenizers are trained on it
NAME.json      tokenizer.json; bert/ and gpt2/ have the older file formats of the first two
expected.json  NAME: lines of corpus.txt and more as [numbers, decoded text]; trained: what train() learns
"""
import json
import pathlib
import random
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = pathlib.Path(__file__).resolve().parent / "fixtures" / "tokenizers"

LINES = """The quick brown fox jumps over the lazy dog, doesn't it? They'll say: "I'd've..." -- we're, you're, it's, I'm, can't.
Der schnelle braune Fuchs springt über den faulen Hund; Straße, GROẞ, Ärger, Öl, naïve café, coöperate, Ångström, Łódź, İstanbul ıspanak.
Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë au delà des îles.
Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка, Ђурђевдан, їжак.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΟΔΥΣΣΕΥΣ Σίσυφος ς σ Σ.
נקודות: שָׁלוֹם עוֹלָם, דג סקרן שט בים. ‏RTL‎ marks.
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. مُحَمَّد ٠١٢٣٤٥٦٧٨٩ ۱۲۳
हिन्दी में लिखा हुआ एक वाक्य। क्षत्रिय ज्ञान श्री १२३
বাংলা ভাষা, தமிழ் மொழி, తెలుగు, ಕನ್ನಡ, മലയാളം, ਪੰਜਾਬੀ, ગુજરાતી, සිංහල
ภาษาไทยไม่มีช่องว่างระหว่างคำ พ.ศ. ๒๕๖๗ ລາວ ភាសាខ្មែរ မြန်မာဘာသာ བོད་སྐད།
我能吞下玻璃而不伤身体。漢字とひらがなとカタカナ、ﾊﾝｶｸ。「引用」〜々〆 𠀀𠮷𪚥
다람쥐 헌 쳇바퀴에 타고파. 한글 분해: 각
ქართული ენა, Հայերեն լեզու, ᏣᎳᎩ, አማርኛ, ᚠᚢᚦ, ꦧꦱꦗꦮ, ᐃᓄᒃᑎᑐᑦ, ⵜⴰⵎⴰⵣⵉⵖⵜ, ⠃⠗⠇
Emoji 😀😃🤖 👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️ ☎︎ 1️⃣ 🏴‍☠️ ✂️ © ® ™
x² + y³ = ∑∫√∞ ≠ ≤ ½ ¼ Ⅷ ⅷ ① ㊗ ℃ ﬁ ﬃ Ǆ ŉ µ Ω K Å
prices: $5.00 €3,50 £2 ¥100 ₹7 ₿0.1 50% 10‰ #hash @user under_score e-mail a.b@c.de http://x.y/z?q=1&r=2
𝕬𝖑𝖕𝖍𝖆 𝒷ℯ𝓉𝒶 𝔾𝕒𝕞𝕞𝕒 ｆｕｌｌｗｉｄｔｈ ＡＢＣ１２３ ⓒⓘⓡⓒⓛⓔⓓ
combining: é é ạ̈̂ ṩ ṩ q̣̇ o̶ ạ̈̂̃̄̅̆̇ Z̷a̶l̴g̵o̸
'single' ‘curly’ “double” «guillemets» ‹x› „low“ – — … · • ¿que? ¡no! ‽ ※ † ‡ § ¶
12345 1,234.56 3.14159 1e-10 0xFF 2024-01-31 12:34:56 +1 (555) 010-9999 IV. 4th ٣٫١٤
CamelCase snake_case kebab-case SCREAMING_CASE iPhone McDonald's O'Neill rock'n'roll ''' ''quoted''s
def f(x):  return x**2  # code\t{"a": [1, 2, 3], 'b': null};  // end""".splitlines()

ODD = [
    "", " ", "  ", "   a", "a   ", "a  b   c", "\t\ttabs\t", "line\nbreak\r\nand\rmore\n\n\nend", "\n", " \n ", "a\u00a0b\u2003c\u3000d\u1680e\u205ff",
    "nul\0in\u0001side\u0007bell\u007fdel\u0085next\u009fapc", "soft\u00adhyphen zero\u200bwidth\u200cnon\u200djoin\ufeffbom\u2060word", "\ufffd replaced \ufffc",
    "\ue000private\uf8ff use \U000f0000", "line\u2028sep\u2029par", "a" * 99, "b" * 100, "c" * 101, "x" * 400, "é" * 120, "漢" * 50, "😀" * 40, "don't" * 30,
    "!" * 60, " " * 50 + "x", "[CLS] [SEP] [MASK] inside[MASK]word [PAD][UNK]", "[mask] [Mask ] [ MASK]", "<|endoftext|>start<|endoftext|> mid <|endoftext|>", "<|endof text|>",
    "  <mask>  left", "new_token and NEW_TOKEN, anew_tokenx new_token", "I've we'LL they'RE 'S 's 't'd'm 'll've 're", "a'b ' 's", " 's 'x", "tail '", "tail 'l", "123abc456", "abc123 123 456abc",
    "\u0301start", "e\u0301\u0301", "\u1e9b\u0323", "\u212b\u2126", "\uac00\u11a8 \u1100\u1161\u11a8", "ǅ ǲ ß ẞ ſ ﬀ", "İI ıi", "\u0390\u03b0", "½½", "²³¹", "\U0001f3fb", "\u0300",
    "\ufb20\ufb4f", "\u0e33\u0eb3", "\u06dd\u0600", "\u180e\u061c", "a\u034fb", "\U000e0001\U000e0041", "\u2066iso\u2069", "\u3164\uffa0", "—dash–dash‐x", "_a_ __b__", "^caret `tick` ~t | $d + < = >",
]


def everything():
    """Some code points of each block of 128. They were assigned before Unicode 8, so every table has them."""
    out = []
    for first in range(0, 0x30000, 128):
        signs = [chr(c) for c in range(first, first + 128) if not 0xd800 <= c < 0xe000]
        signs = [c for c in signs if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs", "Co")]
        signs = [c for c in signs if c not in "\u1885\u1886"]  # letters of Unicode 8, as in the tokenizers' tables, then marks
        if signs and not (0x3400 <= first < 0xa000 or 0xac00 <= first < 0xd7a0 or 0x20000 <= first < 0x2f800) or first % 4096 == 0 and signs:
            out.append(" ".join(signs[:8]) + "".join(signs[8:30]))
    return out


def wordpiece(lower):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(LINES * 2, trainers.WordPieceTrainer(vocab_size=1500, special_tokens=special, show_progress=False, min_frequency=2))
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    return t


def byte_level(prefix=False, size=900, normalizer=None):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    t.decoder = decoders.ByteLevel()
    if normalizer:
        t.normalizer = normalizer
    t.train_from_iterator([line + "\n" for line in LINES], trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, min_frequency=2))
    return t


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "corpus.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8", newline="\n")
    made = {"bert": wordpiece(True), "bert_cased": wordpiece(False), "gpt2": byte_level()}
    roberta = byte_level(True, 700)
    roberta.add_special_tokens([AddedToken("<s>"), AddedToken("</s>"), AddedToken("<mask>", lstrip=True)])
    roberta.add_tokens([AddedToken("new_token", single_word=True), AddedToken("Fuchs", normalized=True, rstrip=True)])
    roberta.post_processor = processors.RobertaProcessing(("</s>", roberta.token_to_id("</s>")), ("<s>", roberta.token_to_id("<s>")))
    made["roberta"] = roberta
    made["nfc"] = byte_level(False, 600, normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]))
    made["nfd"] = byte_level(False, 600, normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]))
    lines = LINES + ODD + everything()
    expected = {"lines": lines}
    for name, tokenizer in made.items():
        tokenizer.save(str(FOLDER / f"{name}.json"))
        encoded = [tokenizer.encode(line) for line in (lines if name in ("bert", "gpt2") else LINES + ODD)]
        expected[name] = [[e.ids, tokenizer.decode(e.ids)] for e in encoded]
    for name, old in (("bert", "bert"), ("gpt2", "gpt2")):
        (FOLDER / old).mkdir(exist_ok=True)
        made[name].model.save(str(FOLDER / old))
    (FOLDER / "expected.json").write_text(json.dumps(expected, ensure_ascii=True, separators=(",", ":")) + "\n")
    print({p.name: p.stat().st_size for p in FOLDER.iterdir() if p.is_file()}, len(lines), "lines")


if __name__ == "__main__":
    main()
