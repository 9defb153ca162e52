#!/usr/bin/env python3
"""Writes the seed corpora of the fuzzers, small files of every format that the readers support: python3 make_corpus.py [FOLDER]

Needs only Python. The files are the same each time and are committed in corpus/.
"""
import argparse
import collections
import gzip
import io
import json
import pathlib
import pickle
import struct
import sys
import tarfile
import zipfile
import zlib

# The luminance table of the standard, in zigzag order.
JPEG_TABLE = bytes([16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60,
                    57, 51, 56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87, 95, 98, 103, 104, 103, 62, 77, 113, 121, 112,
                    100, 120, 92, 101, 103, 99])


def idx(type_code, sizes, values):
    return bytes([0, 0, type_code, len(sizes)]) + b"".join(struct.pack(">I", n) for n in sizes) + values


def npy(dictionary, values, version=1):
    text = dictionary.encode() + b" " * (-(len(dictionary) + 11) % 64) + b"\n"
    length = struct.pack("<H", len(text)) if version == 1 else struct.pack("<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + values


def program(nodes, results, **members):
    inputs = [number for number, node in enumerate(nodes) if "input" in node]
    return json.dumps({"format": 1, "tenon": "0.1.0", "inputs": inputs, "results": results, "nodes": nodes, **members}).encode()


def safetensors(header, values):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + values


def png(width, height, colour, depth, rows, extra=()):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    packed = zlib.compress(b"".join(b"\0" + row for row in rows))
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunk(k, b) for k, b in extra) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def jpeg():
    """A flat grey image of 8 x 8: one coefficient, one Huffman code of two bits."""
    def segment(marker, body):
        return bytes([0xff, marker]) + struct.pack(">H", len(body) + 2) + body
    dc = bytes([0]) + bytes([0, 1] + [0] * 14) + bytes([0])
    ac = bytes([0x10]) + bytes([0, 1] + [0] * 14) + bytes([0])
    return (b"\xff\xd8" + segment(0xdb, bytes([0]) + JPEG_TABLE) + segment(0xc0, struct.pack(">BHHB", 8, 8, 8, 1) + bytes([1, 0x11, 0]))
            + segment(0xc4, dc) + segment(0xc4, ac) + segment(0xda, bytes([1, 1, 0, 0, 63, 0])) + bytes([0x0f]) + b"\xff\xd9")


def tar(*files, kind=tarfile.USTAR_FORMAT):
    """An archive without the two final blocks of zeros; a name that ends in a slash is a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size, member.type = len(content), tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            archive.addfile(member, io.BytesIO(content))
        end = archive.offset + 1024
    return out.getvalue()[:end]


def tune_row(*fields):
    line = "".join(field + "\t" for field in fields).encode()
    checksum = 0xcbf29ce484222325
    for byte in line:
        checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
    return line + b"%016x\n" % checksum


def pt_pickle(*sizes):
    """{"w": a view of four floats of storage "0"} with the given sizes and strides."""
    def text(words):
        return b"X" + struct.pack("<I", len(words)) + words
    numbers = b"(" + b"".join(b"J" + struct.pack("<i", n) for n in sizes) + b"t"
    return (b"\x80\x02}" + text(b"w") + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text(b"storage") + b"ctorch\nFloatStorage\n" + text(b"0")
            + text(b"cpu") + b"K\x04tQK\0" + numbers + numbers + b"\x89ccollections\nOrderedDict\n)RtRs.")


def objects_pickle(protocol):
    """Objects that training scripts store with tensors."""
    odd = collections.defaultdict(list)
    odd["a"].append(1)
    return pickle.dumps({"args": argparse.Namespace(lr=0.1), "set": {1}, "frozen": frozenset({2}), "odd": odd, "bytes": b"ab", "large": 2**80,
                         "path": pathlib.PurePosixPath("a"), 0.5: None, (1, 2): 3, "range": range(2), "size": 1 + 2j}, protocol)


GPT2 = {"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 4, "vocab_size": 9, "n_inner": None,
        "activation_function": "relu", "layer_norm_epsilon": 1e-6, "attn_pdrop": 0.0, "tie_word_embeddings": True, "odd": 1}
BERT = {"model_type": "bert", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 5, "vocab_size": 9,
        "max_position_embeddings": 4, "hidden_act": "gelu_new", "id2label": {"0": "a", "1": "b"}, "classifier_dropout": 0.3}
RESNET = {"model_type": "resnet", "depths": [2, 2, 2, 2], "hidden_sizes": [4, 8, 16, 32], "embedding_size": 4, "layer_type": "basic"}
MODEL = {"model": "a.toml", "network": "input = [4]\nclasses = 2\nlayers = [ { linear = \"classes\" } ]\n", "classes": 2, "input_mean": 0,
         "input_std": 1, "data": "digits:10,10", "class_names": ["a", "b"], "table": {"label": "y", "columns": [{"name": "x", "fill": 1}]}}


def pt_legacy():
    """The three pickles of the older form, the state dict of pt_pickle(), and its storage."""
    return (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." + b"\x80\x02M\xe9\x03." + b"\x80\x02}X\x0d\0\0\0little_endian\x88s."
            + pt_pickle(1) + b"\x80\x02]X\x01\0\0\x000a." + struct.pack("<q4f", 4, *range(4)))


def pt_zip(pickle):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in (("a/data.pkl", pickle), ("a/byteorder", b"little"), ("a/data/0", struct.pack("<4f", *range(4)))):
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def gguf(*tensors, values=b"", count=0, version=3):
    """Tensors as (name, sizes, type, bytes), laid out at multiples of 32."""
    def text(words):
        return struct.pack("<Q", len(words)) + words
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), count) + values
    data = b""
    for name, sizes, kind, content in tensors:
        head += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, len(data))
        data += content + b"\0" * (-len(content) % 32)
    return head + b"\0" * (-len(head) % 32) + data


def npz(method, **arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), content, method)
    return out.getvalue()


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "corpus"
    images = idx(8, [2, 2, 3], bytes(range(12)))
    tuned = tune_row("NVIDIA H200 | matmul [m, k]float32{5,1} with m 3 k 5", "native", "16x16x64-256/4", "", "12.300", "cublaslt 2", "14.000", "native, cublaslt 130002")
    f32 = struct.pack("<6f", *range(6))
    plain = "{'descr': '<f4', 'fortran_order': %s, 'shape': (2, 3), }"
    corpora = {
        "idx": {"u8": images, "gz": gzip.compress(images, mtime=0), "gz2": gzip.compress(images[:9], mtime=0) + gzip.compress(images[9:], mtime=0),
                "i8": idx(9, [2], b"\xff\1"), "i16": idx(11, [2], b"\xff\xfe\1\2"), "i32": idx(12, [1], b"\0\0\1\2"), "f32": idx(13, [1], b"\x3f\xc0\0\0"),
                "f64": idx(14, [1, 1], b"\xbf\xf8" + bytes(6)), "empty": idx(8, [0, 4], b""),
                "huge": idx(8, [2**32 - 1] * 3, b"")},
        "gzip": {"one": gzip.compress(b"plain " * 50, mtime=0), "two_members": gzip.compress(b"a" * 100, mtime=0) + gzip.compress(b"b", mtime=0),
                 "stored": gzip.compress(b"plain", 0, mtime=0), "truncated": gzip.compress(b"plain " * 50, mtime=0)[:-6]},
        "tar": {"two": tar(("set/", b""), ("set/a.bin", b"a" * 700), ("skipped", b"b"), ("set/c", b"")),
                "gz": gzip.compress(tar(("a", b"a" * 3000)), mtime=0), "prefix": tar(("folder/" * 20 + "a", b"a")),
                "gnu": tar(("folder/" * 20 + "a", b"a"), kind=tarfile.GNU_FORMAT), "pax": tar(("\u00fc" * 90, b"a"), kind=tarfile.PAX_FORMAT),
                "cut": tar(("a", b"a" * 700))[:1100], "huge": tar(("a", b""))[:124] + b"77777777777" + tar(("a", b""))[135:]},
        "list": {"comma": b"\0" b"a/1.jpg,cat\na/2.jpg,dog\nb/3.jpg,0\n", "tab": b"\1" b"# images\na 1.jpg\tcat\r\n\na 2.jpg\tcat\n", "space": b"\2" b"1.jpg 10\n2.jpg 9",
                 "share": b"\4" b"1.jpg 1\n2.jpg 2\n3.jpg 1\n", "known": b"\x08" b"1.jpg,cat\n2.jpg,cow\n", "none": b"\0" b"1.jpg\n", "zero": b"\2" b"a\0b.jpg,cat\n", "header": b"\2" b"\xef\xbb\xbffilename,label\r\"a, b.jpg\",cat\r",
                 "latin": b"\x42" b"a.jpg,caf\xe9\n", "columns": b"\x12" b"id|patient|image|class\n1|p1|a.jpg|x\n2|p2|b.jpg|y\n", "lines": b"\2" b"text\tlabel\n\"good\"\tpos\nbad\tneg\n"},
        "shards": {"classes": tar(("1.png", png(3, 2, 0, 8, [b"\0\x80\xff"] * 2)), ("1.cls", b"dog\n"), ("2.cls", b"cat"), ("2.jpg", jpeg())),
                   "folders": tar(("x/owl/", b""), ("x/owl/1.png", png(1, 1, 2, 8, [b"\1\2\3"])), ("x/ape/1.ppm", b"P6 1 1 255\nabc")),
                   "broken": tar(("a/1.png", b"\x89PNG"), ("a/2.bmp", b"")), "gz": gzip.compress(tar(("a/1.png", b"")), mtime=0),
                   "cut": tar(("a/1.png", b"a" * 700))[:1100], "huge": tar(("a/1.png", b""))[:124] + b"77777777777" + tar(("a/1.png", b""))[135:]},
        "json": {"values": b'{"a": [1, -2, 0.5, 1e-7, true, false, null], "b": {"c": "", "d": {}}, "e": []}', "repeated": b'{"a":1,"b":2,"a":[3]}',
                 "escapes": b'["\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00","\xc3\xa9","\\ud83d"]', "mark": b"\xef\xbb\xbf [1]",
                 "numbers": b"[18446744073709551615,18446744073709551616,-9223372036854775808,-0,-0.0,1e308,1e-400,0.0001e-330,5e-324]",
                 "large": b"-1e400", "deep": b"[" * 600 + b"]" * 600, "zero": b"[1]\0", "cut": b'{"a":[1,{"b":"c'},
        "progress": {"log": b'{"step":1,"loss":2.3,"lr":0.1}\n{"step":2,"loss":1.5,"lr":0.1}\n{"step":3,"lo', "start": b'{"step":0}', "deep": b"[" * 2000},
        "settings": {"deep": b"a." * 700 + b"a = 1\n", "inline": b"x = " + b"{ a = " * 40 + b"1" + b" }" * 40 + b"\n", "run": b'# a run\nmodel = "lenet5"\nepochs = 3\nlr = 1e-3\nshuffle = true\ndata = "digits:60000"\n', "nested": b"[optimizer]\nlr = 0.1\n",
                     "odd": b"a.b = 1\n'c' = [1, 2]\nd = 2024-01-01\ne = inf\n",
                     "accent": b"\xcc\x9c#=", "table_line_break": b"[\nlr = 0.1\n"},
        "network": {"plain": b'input = [1, 8, 8]\nclasses = 3\nlayers = [ { conv2d = 4, kernel = 3, bias_init = 0 }, "relu", "flatten", { linear = "classes" } ]\n'
                             b'[recipe]\nlr = 0.1\n',
                    "structures": b'input = [2, 8, 8]\nclasses = 3\nvariables = { w = 4, h = "2 * w" }\nlayers = [ { repeat = 2, layers = [ '
                                  b'{ block = "b", c = "w + i" } ] },\n{ branches = { l = [ "tanh" ], r = [ "relu" ] }, join = "add" }, "global_avg_pool", '
                                  b'{ linear = 3 } ]\n[blocks.b]\nlayers = [ { residual = [ { conv2d = "c", kernel = 3, padding = 1, name = "a{c}" } ], '
                                  b'shortcut = [ { conv2d = "c", kernel = 1 } ], then = "relu" } ]\n',
                    "tokens": b'input = [6]\nclasses = 9\ntokens = true\nlayers = [ { embedding = 8, name = "e" }, { positions = 6 }, '
                              b'{ self_attention = 2, causal = true }, { lstm = 8 }, { linear = "classes", bias = false, tie = "e.weight" } ]\n'
                              b'init = [ { parameters = "*", values = { uniform = 0.1 } } ]\nfreeze = ["e"]\n',
                    "pairs": b'input = [2, 6]\nclasses = 9\npairs = true\nencoder = [ { embedding = 8, name = "e" }, { transformer_encoder_layer = 2, padding = "padding" } ]\n'
                             b'layers = [ { embedding = 8, tie = "e.weight" }, { keep = "b" }, { transformer_decoder_layer = 2, hidden = 4 }, { add = "b" }, '
                             b'{ concat = "b", axis = 2 }, { linear = "classes" } ]\n',
                    "texts": b'input = [6]\nclasses = 3\nvocabulary = 9\nlayers = [ { bert_embeddings = 8 }, { keep = "q" }, { linear = 8 }, '
                             b'{ attention = 2, queries = "q", keys = "q", seen = "seen", dropout = 0.1 }, "first", { bias = true }, { linear = "classes" } ]\n',
                    "volumes": b'input = [2, 5, 6, 7]\nclasses = 3\nlayers = [ { max_pool3d = [1, 2, 3], stride = 1, padding = [0, 1, 1], dilation = 2, ceil_mode = true }, '
                               b'{ avg_pool3d = 2, divisor = 3 }, { adaptive_max_pool3d = [2, 1, 3] }, { reshape = [4, 3] }, { max_pool1d = 2 }, { adaptive_avg_pool1d = 2 }, '
                               b'"flatten", { linear = "classes" } ]\n',
                    "cycle": b'input = [2]\nclasses = 2\nlayers = [ { block = "a" } ]\n[blocks.a]\nlayers = [ { block = "a" } ]\n',
                    "expression": b'input = [2]\nclasses = 2\nlayers = [ { linear = "max(2, floor(sqrt(9) ^ 2 / 3 - 1))" } ]\n'},
        "spans": {"lines": b"who\tthe sea is wide\tsea\t4\nwho is it\tin 1990 , the sea\t1990\nwho\tthe sea\t\n",
                  "squad": b'{"data": [{"paragraphs": [{"context": "the \\u00e9 sea (1990)", "qas": [{"id": "1", "question": "who", "answers": '
                           b'[{"text": "1990", "answer_start": 11}]}, {"id": "2", "question": "is it", "answers": [], "is_impossible": true}]}]}]}',
                  "deep": b'{"data": ' + b"[" * 2000, "long": b"who\t" + b"the wide sea , " * 12 + b"\tsea\t130\n"},
        "tune": {"one": b"tenon-tune 1\n" + tuned, "empty": b"tenon-tune 1\n", "torn": b"tenon-tune 1\n" + tuned + tuned[:40],
                 "numbers": b"tenon-tune 1\n" + tune_row("k", "e", "", "", "1e300", "", "nan", "") + tune_row("k", "e", "", "", "-1", "", "0x1p3", "")
                 + tune_row("k", "e", "", "", "999999999.9999", "", "0.0004", ""), "control": b"tenon-tune 1\n" + tune_row("k\r\0", "e\x1f", "", "", "1", "", "2", ""),
                 "key": b"m 128 k 5"},
        "program": {"product": program([{"input": 0, "dtype": "float32", "shape": ["n", 3]}, {"weight": "w", "variable": True, "dtype": "float32", "shape": [3, 2]},
                                        {"op": "matmul", "inputs": [0, 1], "dtype": "float32", "shape": ["n", 2], "attributes": {
                                            "stride_h": 1, "stride_w": 1, "pad_h": 0, "pad_w": 0, "dil_h": 1, "dil_w": 1, "groups": 1, "precision": "fp32"}},
                                        {"op": "sum", "inputs": [2], "dtype": "float32", "shape": [1, 2], "attributes": {"axes": 1}, "layer": "head"},
                                        {"op": "constant", "dtype": "float32", "shape": [3, 2], "attributes": {"value": "1/4n", "real": True}},
                                        {"op": "assign", "inputs": [1, 4], "dtype": "float32", "shape": [3, 2]}], [3], batch=4, assignments=[5]),
                    "image": program([{"input": 0, "dtype": "float32", "shape": [2, 1, 6, 6]}, {"weight": "k", "dtype": "float32", "shape": [4, 1, 3, 3]},
                                      {"op": "conv2d", "inputs": [0, 1], "dtype": "float32", "shape": [2, 4, 3, 3], "attributes": {
                                          "stride_h": 2, "stride_w": 2, "pad_h": 1, "pad_w": 1, "dil_h": 1, "dil_w": 1, "groups": 1, "precision": "bf16"}},
                                      {"op": "max_pool2d", "inputs": [2], "dtype": "float32", "shape": [2, 4, 1, 1], "attributes": {
                                          "kernel_h": 2, "kernel_w": 2, "stride_h": 2, "stride_w": 2, "pad_h": 0, "pad_w": 0, "dil_h": 1, "dil_w": 1,
                                          "ceil_mode": 0, "count_include_pad": 1}},
                                      {"op": "pad", "inputs": [3], "dtype": "float32", "shape": [2, 4, 2, 1], "attributes": {
                                          "before": [0, 0, 1, 0], "after": [0, 0, 0, 0], "value": "-inf", "real": True}},
                                      {"op": "permute", "inputs": [4], "dtype": "float32", "shape": [4, 2, 2, 1], "attributes": {"axes": [1, 0, 2, 3]}},
                                      {"op": "slice", "inputs": [5], "dtype": "float32", "shape": [2, 1, 2, 1], "attributes": {
                                          "start": [3, 1, 0, 0], "step": [-2, 1, 1, 1]}},
                                      {"op": "sort", "inputs": [6], "dtype": "float32", "shape": [2, 1, 2, 1], "attributes": {"count": 1, "descending": 1, "first": 0}},
                                      {"op": "result", "inputs": [7], "dtype": "int64", "shape": [2, 1, 2, 1], "attributes": {"index": 1}},
                                      {"op": "formula", "inputs": [6], "dtype": "float32", "shape": [2, 1, 2, 1], "attributes": {
                                          "formula": "polygamma", "parameter": 2}}], [8, 9]),
                    "loop": program([{"input": 0, "dtype": "float32", "shape": [2]}, {"random": True, "dtype": "int64", "shape": [2]},
                                     {"op": "scan", "inputs": [0, 1], "dtype": "float32", "shape": [2], "attributes": {
                                         "length": 3, "reverse": 0, "carries": 1, "rows": 0, "body": {"parameters": [0, 1], "results": [3], "nodes": [
                                             {"parameter": 0, "dtype": "float32", "shape": [2]}, {"parameter": 1, "dtype": "int64", "shape": [2]},
                                             {"op": "random", "inputs": [1], "dtype": "float32", "shape": [2], "attributes": {"kind": "normal", "offset": 0}},
                                             {"op": "add", "inputs": [0, 2], "dtype": "float32", "shape": [2]}]}}},
                                     {"op": "result", "inputs": [2], "dtype": "float32", "shape": [2], "attributes": {"index": 0}}], [3], draws=1),
                    "empty": program([], []), "newer": b'{"format": 2}', "number": b"7"},
        "npy": {"c": npy(plain % "False", f32), "f": npy(plain % "True", f32), "v2": npy(plain % "False", f32, 2), "v3": npy(plain % "False", f32, 3),
                "big": npy("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }", bytes(8)),
                "bool": npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", b"\0\1\2"),
                "scalar": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", bytes(8)),
                "void": npy("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", bytes(2)),
                "record": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", bytes(4))},
        "safetensors": {"two": safetensors({"__metadata__": {"format": "pt"}, "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                            "a": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [8, 12]}}, bytes(12)),
                        "none": safetensors({}, b""), "huge": safetensors({"a": {"dtype": "F64", "shape": [2**62, 4], "data_offsets": [0, 2**64 - 1]}}, b""),
                        "overlap": safetensors({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                                                "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}}, bytes(3)), "scalar": safetensors({"s": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}}, bytes(8)),
                        "bool": safetensors({"t": {"dtype": "BOOL", "shape": [0, 3], "data_offsets": [0, 0]}}, b""),
                        "sums": safetensors({"__metadata__": {"tenon.crc32": json.dumps({"__metadata__": "%08x" % zlib.crc32(b"s\0U8 [2]\0"),
                                                                                         "s": "%08x" % zlib.crc32(b"ab")})},
                                             "s": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, b"ab"),
                        "foreign": safetensors({"f": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]},
                                                "c": {"dtype": "C64", "shape": [1], "data_offsets": [2, 10]},
                                                "u": {"dtype": "F4", "shape": [3], "data_offsets": [10, 12]}}, bytes(12)),
                        "gap": safetensors({"t": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, bytes(2))},
        "pt": {"zip": b"\0" + pt_zip(pt_pickle(2, 1)), "legacy": b"\0" + pt_legacy(), "pickle": b"\1" + pt_pickle(1, 2), "foreign": b"\1\x80\x02cos\nsystem\n)R.",
               "objects": b"\1" + objects_pickle(2), "objects4": b"\1" + objects_pickle(4),
               "protocol4": b"\1\x80\x04\x95\x0d\0\0\0\0\0\0\0}\x94(\x8c\1a\x94K\1\x8c\1b\x94N]\x94u.", "self": b"\1\x80\x02]q\1h\1a."},
        "weights": {"gguf": b"\0" + gguf((b"a", [2, 3], 0, f32), (b"q", [32], 8, bytes(34)), (b"r", [32, 1], 2, bytes(18))),
                    "gguf_values": b"\0" + gguf(count=3, values=struct.pack("<Q1sIf", 1, b"a", 6, 0.5) + struct.pack("<Q1sIQ2s", 1, b"b", 8, 2, b"hi")
                                                + struct.pack("<Q1sIIQ2i", 1, b"c", 9, 5, 2, 1, 2)),
                    "stored": b"\1" + npz(zipfile.ZIP_STORED, a=npy(plain % "False", f32), b=npy(plain % "True", f32)),
                    "deflated": b"\1" + npz(zipfile.ZIP_DEFLATED, a=npy(plain % "False", f32)), "array": b"\2" + npy(plain % "False", f32),
                    "gpt2": b"\4" + json.dumps(GPT2).encode(), "bert": b"\5" + json.dumps(BERT).encode(), "resnet": b"\6" + json.dumps(RESNET).encode(),
                    "timm": b"\6" + json.dumps({"architecture": "resnet18", "num_classes": 3, "pretrained_cfg": {"mean": [0.5], "std": [1]}}).encode(),
                    "model": b"\7" + json.dumps(MODEL).encode(),
                    "index": b"\3" + b'{"metadata": {"total_size": 4}, "weight_map": {"a": "b.safetensors"}}'},
        "tokenizer": {"bpe": b"\0" + json.dumps({"added_tokens": [{"id": 3, "content": "<s>", "special": True}], "normalizer": {"type": "NFC"}, "pre_tokenizer": {
                      "type": "ByteLevel", "add_prefix_space": True}, "post_processor": None, "decoder": {"type": "ByteLevel"},
                      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}).encode(),
                      "wordpiece": b"\0" + json.dumps({"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": {
                          "type": "BertProcessing", "sep": ["b", 1], "cls": ["a", 0]}, "model": {"type": "WordPiece", "unk_token": "a", "vocab": {"a": 0, "##b": 1}}}).encode(),
                      "vocab": b"\1[UNK]\n[CLS]\n[SEP]\na\n##b\n", "merges": b"\2#version: 0.2\na b\n", "text": b"\3caf\xc3\xa9 it's  \n\t\xe6\xbc\xa2\xf0\x9f\x98\x80\xcc\x81 \xc4\xb0"},
        "csv": {"plain": b"\1\0" b"1,2,0\n3,4.5,1\n", "header": b"\1\0" b"a,label,b\r\n1,cat,2\r\n3,\"dog, big\",4\r\n", "quotes": b"\1\0" b"1,\"a \"\"b\"\"\"\n2,c\n",
                "semicolon": b"\3\0" b"0;1;2\n1;3;4\n", "numbers": b"\0\0" b"1\t2\t0.5\n-1e3\t+4\t1\n", "image": b"\7\0" b"3,0,255,17,4\n1,1,2,3,4\n",
                "known": b"\x09\0" b"1,0\n2,cat\n", "comment": b"\1\0" b"# note\n\n1,2,3\n", "unclosed": b"\1\0" b'1,"2\n3,4\n',
                "unlabelled": b"\x11\0" b"a,b\n1,2\n3,4\n", "words": b"\x61\0" b"town,x,y\nAix,1,0\nBonn,NA,1\n,3,0\n",
                "columns": b"\x91\0" b"b,a,c\ncat,2,0\ncow,,1\n",
                "latin": b"\1\1" b"a,label\n1,caf\xe9\n2,x\n", "utf16": b"\1\0" b"\xff\xfea\0\t\0b\0\n\0001\0\t\0002\0\n\0", "decimal": b"\1\x0c" b"a;b;label\n1.234,5;\xe2\x88\x923;1\n2,5;10%;2\n",
                "dates": b"\1\x10" b"a|b|label\n2024-03-05T06:07:08Z|1|0\n5 Mar 2024|2|1\n", "double": b"\1\0" b"sep=;\na;a;;label\n1;2;3;0\n#4;5;6;1\n",
                "categories": b"\1\x80" b"a b label\n1 x1 0\n2 x2 1\n", "cr": b"\1\0" b"0,1,label\r1,2,3\r4,5,6\r"},
        "command": {"train": b"r\nlenet5\n--epochs\n3\n--lr=0.1\n--set\nmomentum=0.9\n--data\ncsv:a.csv,label=x\n", "misspelt": b"r\n--hlep\n",
                    "bytes": b"r\nlenet5\n--memory-limit\n1.5GiB\n", "sets": b"r\ntask=regression\nmilestones=3,6\nlayer_precision=0=fp32\nseed=9e15\n",
                    "predict": b"t\nruns/a\nx y.png\n--count\n-1\n--top=99999999999999999999\n", "bench": b"u\nlenet5\n--budget\n1e308\n",
                    "help": b"w\n--help\n", "ends": b"r\nlenet5\n--\n--epochs\n"},
        "image": {"grey": png(3, 2, 0, 8, [b"\0\x80\xff"] * 2), "rgb": png(1, 1, 2, 8, [b"\1\2\3"]), "rgba": png(1, 1, 6, 8, [b"\1\2\3\x40"]),
                  "palette": png(2, 1, 3, 8, [b"\0\1"], [(b"PLTE", b"\0\0\0\xff\0\xff")]), "grey16": png(1, 1, 0, 16, [b"\x12\x34"]),
                  "bits": png(8, 1, 0, 1, [b"\xa5"]), "jpeg": jpeg(), "p2": b"P2\n# note\n2 2\n15\n0 1\n2 15\n", "p3": b"P3 1 1 255 1 2 3",
                  "p5": b"P5 2 1 255\n\0\xff", "p5-16": b"P5 1 1 65535\n\x80\0", "p6": b"P6 1 1 255\nabc"},
    }
    for name, files in corpora.items():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (folder / file).write_bytes(content)


if __name__ == "__main__":
    main()
