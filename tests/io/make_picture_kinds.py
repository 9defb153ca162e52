#!/usr/bin/env python3
"""Writes tests/io/test_image_kinds.inc: one small picture as Pillow saves it in each kind, for tests/io/test_image_kinds.cpp.

    pip install pillow numpy      (Pillow 13.0 made the committed file)
"""
import io
import pathlib

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 13, 7
y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
RGB = Image.fromarray(np.stack([x * 19, y * 36, 255 - x * 10 - y * 5], -1).astype(np.uint8))


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


alpha = RGB.convert("RGBA")
alpha.putalpha(Image.fromarray((x * 19).astype(np.uint8)))
deep = Image.fromarray(((x * 19).astype(np.uint16) * 257))
inks = Image.eval(RGB.convert("CMYK"), lambda v: v)
KINDS = {
    "webp": saved(RGB, "WEBP", lossless=True),
    "webp_alpha": saved(alpha, "WEBP", lossless=True, exact=True),
    "tiff": saved(RGB, "TIFF"),
    "tiff_lzw": saved(RGB, "TIFF", compression="tiff_lzw"),
    "bmp": saved(RGB, "BMP"),
    "bmp_palette": saved(RGB.quantize(16), "BMP"),
    "png_16": saved(deep, "PNG"),
    "jpeg_cmyk": saved(inks, "JPEG", quality=100, subsampling=0),
}
text = "// Made by make_picture_kinds.py.\n"
for name, data in KINDS.items():
    rows = [", ".join(str(v) for v in data[i:i + 20]) for i in range(0, len(data), 20)]
    text += f"constexpr unsigned char k_{name}[] = {{\n    " + ",\n    ".join(rows) + "};\n"
palette = RGB.quantize(16).convert("RGB").tobytes()
rows = [", ".join(str(v) for v in palette[i:i + 20]) for i in range(0, len(palette), 20)]
text += "constexpr unsigned char k_palette_pixels[] = {\n    " + ",\n    ".join(rows) + "};\n"
(pathlib.Path(__file__).parent / "test_image_kinds.inc").write_text(text)
for name, data in KINDS.items():
    (pathlib.Path(__file__).parent.parent / "fuzz" / "corpus" / "image" / name).write_bytes(data)
