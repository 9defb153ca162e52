#!/usr/bin/env python3
"""Writes the videos of tests/io/videos, each of a few kilobytes, for tests/io/test_video.cpp, and the seeds of the fuzzer.

    pip install av numpy      (PyAV 18.1 with FFmpeg 8.1 made the committed files)
    tests/io/make_videos.py [FOLDER]

24 frames of 64 x 48, 8 a second. The left half of frame k is grey of level 20 + 9 k, the right half 128, with a dark bar on top, so
that a test can distinguish each frame from its neighbours and from an upside-down frame.
"""
import pathlib
import sys

import av
import numpy as np

WIDTH, HEIGHT, FRAMES, RATE = 64, 48, 24, 8


def image(k):
    out = np.full((HEIGHT, WIDTH, 3), 128, np.uint8)
    out[:, :WIDTH // 2] = 20 + 9 * k
    out[:8, WIDTH // 2:] = 16
    return out


def encoded(path, codec, pixels="yuv420p", **options):
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream(codec, rate=RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pixels
        stream.codec_context.thread_count = 1
        stream.codec_context.gop_size = 8
        stream.options = {"flags": "+bitexact", **options}
        for k in range(FRAMES):
            for packet in stream.encode(av.VideoFrame.from_ndarray(image(k), "rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def raw(path):
    """YUV4MPEG2 without compression, grey, six frames."""
    out = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{RATE}:1 Ip A1:1 Cmono\n".encode()
    for k in range(6):
        out += b"FRAME\n" + image(4 * k)[:, :, 0].tobytes()
    path.write_bytes(out)


def rotated(path, original):
    """As a phone held upright writes it: must be rotated clockwise by 90 degrees."""
    data = bytearray(original.read_bytes())
    matrix = data.index(b"tkhd") + 4 + 40  # version, flags and ten numbers of a version 0 header
    for at, value in zip(range(matrix, matrix + 36, 4), (0, 65536, 0, -65536, 0, 0, HEIGHT << 16, 0, 1 << 30)):
        data[at:at + 4] = value.to_bytes(4, "big", signed=True)
    path.write_bytes(data)


def small(path):
    """For the fuzzer: two frames of 4 x 2."""
    path.write_bytes(b"YUV4MPEG2 W4 H2 F5:1 Ip C420jpeg\n" + b"".join(b"FRAME\n" + bytes(range(k, k + 12)) for k in (0, 90)))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "videos")
    folder.mkdir(exist_ok=True)
    encoded(folder / "h264.mp4", "libx264", crf="20", bf="2", **{"x264-params": "threads=1"})
    encoded(folder / "mjpeg.avi", "mjpeg", "yuvj420p", qscale="3")
    encoded(folder / "vp8.webm", "libvpx", crf="10", b="200k")
    encoded(folder / "mpeg2.ts", "mpeg2video", b="300k")
    raw(folder / "raw.y4m")
    rotated(folder / "rotated.mov", folder / "h264.mp4")
    seeds = pathlib.Path(__file__).parent.parent / "fuzz" / "corpus" / "video"
    seeds.mkdir(parents=True, exist_ok=True)
    for name in ("rotated.mov", "vp8.webm"):
        (seeds / name).write_bytes((folder / name).read_bytes())
    (seeds / "mjpeg.avi").write_bytes((folder / "mjpeg.avi").read_bytes()[:7000])
    (seeds / "mpeg2.ts").write_bytes((folder / "mpeg2.ts").read_bytes()[:188 * 20])
    small(seeds / "raw.y4m")


if __name__ == "__main__":
    main()
