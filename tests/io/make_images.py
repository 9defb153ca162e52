#!/usr/bin/env python3
"""Writes tests/io/images: one small image of each kind and mode, and expected.txt with Pillow's result.

    pip install pillow numpy      (Pillow 13.0 made the committed files)

A line of expected.txt: file, source of the expectation, largest difference, width, height, hexadecimal RGB, hexadecimal grey.
The source is "Pillow" for convert("RGB") and convert("L") after ImageOps.exif_transpose(). It is "Tenon" where Pillow has no such
conversion (it clips 16-bit grey at 255): then the documented rule is computed here with NumPy.
"""
import io
import pathlib
import shutil
import struct
import warnings
import zlib

import numpy as np
from PIL import Image, ImageOps

FOLDER = pathlib.Path(__file__).parent / "images"
SEEDS = pathlib.Path(__file__).parent.parent / "fuzz" / "corpus" / "image"  # of tests/fuzz/image.cpp
W, H = 13, 7
y, x = np.mgrid[0:H, 0:W]
COLOURS = np.stack([x * 19, y * 36, 255 - x * 10 - y * 5], -1).astype(np.uint8)
GREY = ((x * 17 + y * 29) % 256).astype(np.uint8)
ALPHA = (x * 19).astype(np.uint8)
RGB, L = Image.fromarray(COLOURS), Image.fromarray(GREY)
LA = Image.merge("LA", [L, Image.fromarray(ALPHA)])
RGBA = Image.merge("RGBA", [*RGB.split(), Image.fromarray(ALPHA)])
P = RGB.quantize(16)
BITS = Image.fromarray(((x + y) % 3 == 0).astype(np.uint8) * 255).convert("1", dither=Image.Dither.NONE)
lines = []


def level(grey):
    return grey.astype(np.uint8)


def luma(rgb):
    return np.asarray(Image.fromarray(rgb).convert("L"))


def add(name, data, bound=0, expected=None):
    """expected: grey or RGB levels by the documented rule; without them Pillow decides."""
    (FOLDER / name).write_bytes(data)
    if expected is None:
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        rgb, grey, source = np.asarray(image.convert("RGB")), np.asarray(image.convert("RGB").convert("L")), "Pillow"
        if image.mode in ("1", "L", "LA"):
            assert (np.asarray(image.convert("L")) == grey).all(), name
    else:
        rgb = expected if expected.ndim == 3 else np.stack([expected] * 3, -1)
        grey, source = luma(rgb) if expected.ndim == 3 else expected, "Tenon"
    lines.append(f"{name} {source} {bound} {rgb.shape[1]} {rgb.shape[0]} {rgb.tobytes().hex()} {grey.tobytes().hex()}")


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def exif(orientation):
    out = Image.Exif()
    out[0x0112] = orientation
    return out


# ---- PNG
def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def packed(samples, bits):
    """Rows of samples [H, W, channels] as PNG packs them."""
    rows = []
    for row in samples.reshape(samples.shape[0], -1):
        if bits == 16:
            rows.append(row.astype(">u2").tobytes())
        elif bits == 8:
            rows.append(row.astype(np.uint8).tobytes())
        else:
            each = np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, 8 - bits:]
            rows.append(np.packbits(each.reshape(-1)).tobytes())
    return rows


PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(samples, bits, kind, before=b"", interlaced=False):
    parts = [samples[b::d, a::c] for a, b, c, d in PASSES] if interlaced else [samples]
    data = b"".join(b"\0" + row for part in parts if part.size for row in packed(part, bits))
    head = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], bits, kind, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def png_files():
    for mode, image in {"1": BITS, "l": L, "la": LA, "rgb": RGB, "rgba": RGBA, "p": P}.items():
        add(f"{mode}.png", saved(image, "PNG"))
    for bits in (1, 2, 4):
        few = (GREY >> (8 - bits))[..., None]
        add(f"grey{bits}.png", png(few, bits, 0))
        add(f"palette{bits}.png", saved(RGB.quantize(1 << bits), "PNG", bits=bits))
    # Pillow warns about these; their colours are expected.
    warnings.simplefilter("ignore")
    add("palette_alpha.png", saved(P, "PNG", transparency=bytes(range(0, 256, 16))))
    add("palette_key.png", saved(P, "PNG", transparency=3))
    add("grey_key.png", saved(L, "PNG", transparency=int(GREY[2, 3])))
    add("rgb_key.png", saved(RGB, "PNG", transparency=tuple(int(v) for v in COLOURS[2, 3])))
    deep = COLOURS.astype(np.uint16) * 256 + 200 - x.astype(np.uint16)[..., None]
    deep_grey = GREY.astype(np.uint16) * 256 + 77
    deep_alpha = np.concatenate([deep, (x * 5000).astype(np.uint16)[..., None]], -1)
    add("rgb16.png", png(deep, 16, 2))
    add("rgba16.png", png(deep_alpha, 16, 6))
    add("la16.png", png(np.stack([deep_grey, (x * 5000).astype(np.uint16)], -1), 16, 4))
    add("grey16.png", png(deep_grey[..., None], 16, 0), expected=level(deep_grey >> 8))
    for name, samples, bits, kind in [("grey2", GREY[..., None] >> 6, 2, 0), ("rgb", COLOURS, 8, 2),
                                      ("rgba16", deep_alpha, 16, 6)]:
        add(f"interlaced_{name}.png", png(samples, bits, kind, interlaced=True))
    add("gamma.png", png(COLOURS, 8, 2, chunk(b"gAMA", struct.pack(">I", 55556))))
    add("gamma16.png", png(deep, 16, 2, chunk(b"gAMA", struct.pack(">I", 100000))))
    add("profile.png", saved(RGB, "PNG", icc_profile=bytes(200)))
    for k in range(1, 9):
        add(f"exif{k}.png", saved(RGB, "PNG", exif=exif(k)))
    add("animated.png", saved(RGB, "PNG", save_all=True, append_images=[RGBA.convert("RGB").rotate(180)]))


# ---- GIF, WebP, JPEG
def gif_block(image, left, top, interlaced, palette=b""):
    """One image of a GIF: Pillow packs it, the descriptor is written here."""
    data = saved(image, "GIF", interlace=interlaced, optimize=False)
    at = data.index(b",", 13 + 3 * 256) if data[10] & 7 == 7 else data.index(b",", 13 + (6 << (data[10] & 7)))
    body = data[at + 10:-1]
    flags = (0x40 if interlaced else 0) | (0x80 | (len(palette) // 6).bit_length() - 1 if palette else 0)
    return b"," + struct.pack("<HHHHB", left, top, image.width, image.height, flags) + palette + body


def gif_files():
    add("p.gif", saved(P, "GIF"))
    add("grey.gif", saved(L, "GIF"))
    add("interlaced.gif", saved(RGB, "GIF", interlace=1))
    add("key.gif", saved(P, "GIF", transparency=3))
    add("bits.gif", saved(BITS, "GIF"))
    add("animated.gif", saved(RGB, "GIF", save_all=True, append_images=[RGB.rotate(180)], duration=50))
    large = Image.fromarray(np.random.default_rng(1).integers(0, 256, (60, 90)).astype(np.uint8))
    add("large_codes.gif", saved(large, "GIF"))
    colours = bytes(range(0, 240, 5))  # 16 of them
    few = Image.fromarray((GREY % 16).astype(np.uint8))
    few.putpalette(colours)
    screen = b"GIF89a" + struct.pack("<HHBBB", 20, 11, 0x80 | 3, 5, 0) + bytes(reversed(colours))
    control = b"!\xf9\x04\x01\0\0\x07\0"
    add("offset.gif", screen + gif_block(few, 3, 2, False) + b";")
    add("offset_key.gif", screen + control + gif_block(few, 3, 2, True, colours) + b";")
    add("beyond.gif", screen + gif_block(few, 12, 6, False) + b";")


def webp_files():
    add("rgb.webp", saved(RGB, "WEBP", lossless=True))
    add("rgba.webp", saved(RGBA, "WEBP", lossless=True, exact=True))
    add("lossy.webp", saved(RGB, "WEBP", quality=80), 2)
    add("lossy_alpha.webp", saved(RGBA, "WEBP", quality=80, exact=True), 2)
    add("animated.webp", saved(RGBA, "WEBP", lossless=True, exact=True, save_all=True, append_images=[RGBA.rotate(180)]))
    for k in (3, 6):
        add(f"exif{k}.webp", saved(RGB, "WEBP", lossless=True, exif=exif(k)))


def jpeg_files():
    smooth = RGB.resize((40, 24), Image.Resampling.BICUBIC)
    add("grey.jpg", saved(L.resize((40, 24)), "JPEG"), 1)
    add("rgb444.jpg", saved(smooth, "JPEG", subsampling=0), 1)
    add("rgb420.jpg", saved(smooth, "JPEG", subsampling=2), 1)
    add("progressive.jpg", saved(smooth, "JPEG", progressive=True), 1)
    inks = saved(smooth.convert("CMYK"), "JPEG", quality=95)
    add("cmyk.jpg", inks, 1)
    adobe = inks.index(b"Adobe")
    add("ycck.jpg", inks[:adobe + 11] + b"\2" + inks[adobe + 12:], 1)
    for k in range(1, 9):
        add(f"exif{k}.jpg", saved(smooth, "JPEG", exif=exif(k)), 1)


# ---- TIFF
def tiff(samples, bits, photometric, big=False, planar=False, tile=0, extra=(), form=1, orientation=1, maps=None):
    """Uncompressed: samples [H, W, channels]."""
    e = ">" if big else "<"
    h, w, n = samples.shape
    kind = {8: "u1", 16: "u2", 32: "f4"}.get(bits)

    def pack(part):
        if bits < 8:
            return b"".join(packed(part, bits))
        return part.astype(e + kind).tobytes()

    planes = [samples[..., k:k + 1] for k in range(n)] if planar else [samples]
    pieces = []
    for plane in planes:
        if not tile:
            pieces.append(pack(plane))
            continue
        for top in range(0, h, tile):
            for left in range(0, w, tile):
                piece = np.zeros((tile, tile, plane.shape[2]), samples.dtype)
                part = plane[top:top + tile, left:left + tile]
                piece[:part.shape[0], :part.shape[1]] = part
                pieces.append(pack(piece))
    entries, rest, data_at = [], b"", 8

    def entry(tag, code, *values):
        letters = {3: "H", 4: "I"}[code]
        content = struct.pack(e + letters * len(values), *values)
        entries.append((tag, code, len(values), content))

    places, body = [], b""
    for piece in pieces:
        places.append(8 + len(body))
        body += piece + b"\0" * (len(piece) % 2)
    entry(256, 4, w)
    entry(257, 4, h)
    entry(258, 3, *([bits] * n))
    entry(259, 3, 1)
    entry(262, 3, photometric)
    if not tile:
        entry(273, 4, *places)
    entry(274, 3, orientation)
    entry(277, 3, n)
    if not tile:
        entry(278, 4, h)
        entry(279, 4, *[len(p) for p in pieces])
    entry(284, 3, 2 if planar else 1)
    if maps is not None:
        entry(320, 3, *maps)
    if tile:
        entry(322, 4, tile)
        entry(323, 4, tile)
        entry(324, 4, *places)
        entry(325, 4, *[len(p) for p in pieces])
    if extra:
        entry(338, 3, *extra)
    entry(339, 3, *([form] * n))
    directory = 8 + len(body)
    after = directory + 2 + 12 * len(entries) + 4
    table = struct.pack(e + "H", len(entries))
    for tag, code, count, content in entries:
        if len(content) <= 4:
            value = content.ljust(4, b"\0")
        else:
            value = struct.pack(e + "I", after + len(rest))
            rest += content + b"\0" * (len(content) % 2)
        table += struct.pack(e + "HHI", tag, code, count) + value
    start = (b"MM" if big else b"II") + struct.pack(e + "HI", 42, directory)
    return start + body + table + struct.pack(e + "I", 0) + rest


def tiff_files():
    for mode, image in {"1": BITS, "l": L, "la": LA, "rgb": RGB, "rgba": RGBA, "p": P}.items():
        add(f"{mode}.tif", saved(image, "TIFF"))
    add("cmyk.tif", saved(RGB.convert("CMYK"), "TIFF"))
    for kind in ("tiff_lzw", "tiff_adobe_deflate", "packbits"):
        add(f"{kind}.tif", saved(RGB, "TIFF", compression=kind))
    add("group4.tif", saved(BITS, "TIFF", compression="group4"))
    add("jpeg.tif", saved(RGB.resize((32, 16)), "TIFF", compression="jpeg", quality=90), 3)
    deep = COLOURS.astype(np.uint16) * 256 + 200 - x.astype(np.uint16)[..., None]
    deep_grey = GREY.astype(np.uint16) * 256 + 77
    add("rgb16.tif", tiff(deep, 16, 2))
    add("rgb16_big.tif", tiff(deep, 16, 2, big=True))
    add("rgba16.tif", tiff(np.concatenate([deep, deep_grey[..., None]], -1), 16, 2, extra=(2,)))
    add("grey16.tif", tiff(deep_grey[..., None], 16, 1), expected=level(deep_grey >> 8))
    add("grey16_big.tif", tiff(deep_grey[..., None], 16, 1, big=True), expected=level(deep_grey >> 8))
    add("float.tif", tiff((GREY / 255).astype(np.float32)[..., None], 32, 1, form=3), expected=GREY)
    add("float_255.tif", tiff(GREY.astype(np.float32)[..., None], 32, 1, form=3, big=True), expected=GREY)
    add("float_rgb.tif", tiff((COLOURS / 255).astype(np.float32), 32, 2, form=3), expected=COLOURS)
    add("white.tif", tiff(GREY[..., None], 8, 0))
    for bits in (1, 2, 4):
        add(f"grey{bits}.tif", tiff(GREY[..., None] >> (8 - bits), bits, 1))
        add(f"white{bits}.tif", tiff(GREY[..., None] >> (8 - bits), bits, 0))
    add("planar.tif", tiff(COLOURS, 8, 2, planar=True))
    add("tiles.tif", tiff(np.tile(COLOURS, (5, 3, 1)), 8, 2, tile=16))
    add("planar_tiles.tif", tiff(np.tile(COLOURS, (5, 3, 1)), 8, 2, planar=True, tile=16),
        expected=np.tile(COLOURS, (5, 3, 1)))
    with_alpha = np.asarray(RGBA)
    add("unspecified.tif", tiff(with_alpha, 8, 2, extra=(0,)))
    add("no_extra.tif", tiff(with_alpha, 8, 2))
    multiplied = (with_alpha[..., :3].astype(int) * ALPHA[..., None] + 127) // 255
    add("associated.tif", tiff(np.concatenate([multiplied, ALPHA[..., None]], -1).astype(np.uint8), 8, 2, extra=(1,)))
    maps = [int(v) * 257 for v in np.asarray(P.getpalette("RGB")[:48]).reshape(16, 3).T.reshape(-1)]
    add("palette4.tif", tiff(np.asarray(P)[..., None], 4, 3, maps=maps))
    for k in range(1, 9):
        add(f"orientation{k}.tif", tiff(COLOURS, 8, 2, orientation=k))
    add("pages.tif", saved(RGB, "TIFF", save_all=True, append_images=[RGB.rotate(180)]))


# ---- BMP and PNM
def bmp(bits, packing, data, colours=b"", masks=b"", height=H, core=False):
    if core:
        header = struct.pack("<IHHHH", 12, W, H, 1, bits)
    else:
        header = struct.pack("<IiiHHIIiiII", 40, W, height, 1, bits, packing, len(data), 0, 0, len(colours) // 4, 0)
    at = 14 + len(header) + len(masks) + len(colours)
    return b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at) + header + masks + colours + data


def rows_up(rows):
    return b"".join(row.ljust((len(row) + 3) // 4 * 4, b"\0") for row in reversed(rows))


def bmp_files():
    for mode, image in {"1": BITS, "l": L, "rgb": RGB, "rgba": RGBA, "p": P}.items():
        add(f"{mode}.bmp", saved(image, "BMP"))
    wide = COLOURS.astype(np.uint16)
    for name, shifts, masks in [("565", (11, 5, 0), (0xF800, 0x7E0, 0x1F)), ("555", (10, 5, 0), (0x7C00, 0x3E0, 0x1F))]:
        bits = (5, 6, 5) if name == "565" else (5, 5, 5)
        words = sum((wide[..., c] >> (8 - bits[c])) << shifts[c] for c in range(3)).astype("<u2")
        add(f"{name}.bmp", bmp(16, 3, rows_up([r.tobytes() for r in words]), masks=struct.pack("<III", *masks)))
        if name == "555":
            add("16.bmp", bmp(16, 0, rows_up([r.tobytes() for r in words])))
    palette = np.asarray(P.getpalette("RGB")[:48], np.uint8).reshape(16, 3)[:, ::-1]
    quads = b"".join(bytes(entry) + b"\0" for entry in palette)
    indices = np.asarray(P)
    add("down.bmp", bmp(8, 0, b"".join(bytes(r).ljust(16, b"\0") for r in indices), quads, height=-H))
    full = b"".join(bytes(palette[k % 16]) for k in range(256))
    add("core.bmp", bmp(8, 0, rows_up([bytes(r) for r in indices]), full, core=True))
    runs8 = b"".join(b"".join(bytes([1, v]) for v in row[:5]) + bytes([0, 8]) + bytes(row[5:13]) + b"\0\0"
                     for row in indices[::-1]) + b"\0\1"
    add("runs8.bmp", bmp(8, 1, runs8, quads))
    jump = bytes([3, 5, 0, 2, 4, 1, 2, 9, 0, 0]) + b"".join(bytes([13, k, 0, 0]) for k in range(5)) + b"\0\1"
    add("jump8.bmp", bmp(8, 1, jump, quads))
    pairs = indices[:, :12:2] * 16 + indices[:, 1:12:2]
    runs4 = b"".join(bytes([0, 12]) + bytes(row) + bytes([1, last * 16]) + b"\0\0"
                     for row, last in zip(pairs[::-1], indices[::-1, 12])) + b"\0\1"
    add("runs4.bmp", bmp(4, 2, runs4, quads))


def pnm_files():
    text = lambda values: " ".join(str(int(v)) for v in values.reshape(-1)).encode()
    black = 1 - np.asarray(BITS).astype(np.uint8)
    size = b"%d %d\n" % (W, H)
    add("text.pbm", b"P1\n# a comment\n" + size + text(black))
    add("bytes.pbm", b"P4\n" + size + b"".join(np.packbits(row).tobytes() for row in black))
    add("text.pgm", b"P2\n" + size + b"255\n" + text(GREY))
    add("bytes.pgm", b"P5\n" + size + b"255\n" + GREY.tobytes())
    add("text.ppm", b"P3\n" + size + b"255\n" + text(COLOURS))
    add("bytes.ppm", b"P6\n" + size + b"255\n" + COLOURS.tobytes())
    add("levels.pgm", b"P5\n171 1\n170\n" + bytes(range(171)))  # includes half-way cases
    deep = GREY.astype(np.uint16) * 257 - np.where(GREY > 0, 100, 0)
    add("deep.pgm", b"P5\n" + size + b"65535\n" + deep.astype(">u2").tobytes(),
        expected=level((deep.astype(np.int64) * 255 + 32767) // 65535))


# One file for each path through the decoders.
SEED_FILES = """p.gif offset_key.gif beyond.gif animated.gif 565.bmp core.bmp runs8.bmp jump8.bmp runs4.bmp text.pbm bytes.pbm exif6.png
animated.png palette_key.png interlaced_rgba16.png exif6.webp animated.webp lossy_alpha.webp float.tif associated.tif
planar_tiles.tif white4.tif palette4.tif cmyk.tif jpeg.tif orientation6.tif pages.tif ycck.jpg exif6.jpg"""

if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for write in (png_files, gif_files, webp_files, jpeg_files, tiff_files, bmp_files, pnm_files):
        write()
    (FOLDER / "expected.txt").write_text("\n".join(lines) + "\n")
    for name in SEED_FILES.split():
        shutil.copy(FOLDER / name, SEEDS / name)
