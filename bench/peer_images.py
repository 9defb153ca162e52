#!/usr/bin/env python3
"""Measures photographs per second through torchvision's DataLoader, beside bench/images.cpp.

    bench/peer_images.py make FOLDER [COUNT]     writes COUNT JPEG files of 500 x 375 in two classes, from drawn noise and shapes
    bench/peer_images.py many FOLDER [COUNT]     writes COUNT JPEG files of 500 x 375 (79 KB each) in ten classes: 32 drawn images under
                                                   many names, to measure reading and decoding
    bench/peer_images.py FOLDER [WORKERS] [SIDE] [SECONDS]   prints one number
    bench/peer_images.py pairs PROGRAM FOLDER [WORKERS] [ROUNDS]   PROGRAM (bench_images) and this script in turn, with the
                                                                     median of the ratios

Needs torch and torchvision (2.11 and 0.26 for the numbers in docs/images.md) and Pillow.
"""
import pathlib
import statistics
import subprocess
import sys
import time


def make(folder, count):
    import numpy as np
    from PIL import Image
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:375, 0:500]
    for k in range(count):
        place = pathlib.Path(folder) / ("even" if k % 2 == 0 else "odd")
        place.mkdir(parents=True, exist_ok=True)
        waves = sum(40 * np.sin(rng.uniform(0.01, 0.2) * x + rng.uniform(0.01, 0.2) * y + rng.uniform(0, 6)) for _ in range(3))
        planes = np.stack([128 + waves * rng.uniform(0.3, 1) + rng.normal(0, 9, x.shape) for _ in range(3)], -1)
        Image.fromarray(np.clip(planes, 0, 255).astype(np.uint8)).save(place / f"{k:05}.jpg", quality=85)


def drawn(rng):
    """A test image: smooth light, forty shapes with edges, texture on one half, and noise."""
    import numpy as np
    from PIL import Image, ImageDraw, ImageFilter
    y, x = np.mgrid[0:375, 0:500]
    light = np.stack([128 + 60 * np.sin(rng.uniform(.003, .03) * x + rng.uniform(.003, .03) * y + rng.uniform(0, 6)) for _ in range(3)], -1)
    image = Image.fromarray(np.clip(light, 0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for _ in range(40):
        left, top, side = (int(rng.integers(low, high)) for low, high in ((0, 500), (0, 375), (5, 90)))
        colour = tuple(int(v) for v in rng.integers(0, 256, 3))
        shape = pen.ellipse if rng.random() < 0.5 else pen.rectangle
        shape([left, top, left + side, top + int(side * rng.uniform(0.3, 1.6))], fill=colour)
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(0.7))).astype(np.float32)
    grain = Image.fromarray((128 + 40 * rng.normal(0, 1, x.shape)).clip(0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(1))
    where = np.sin(x * rng.uniform(.005, .02) + y * rng.uniform(.005, .02)) > 0
    pixels += ((np.asarray(grain).astype(np.float32) - 128) * 1.2 * where + rng.normal(0, 6, x.shape))[..., None]
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def make_many(folder, count):
    import concurrent.futures
    import io
    import numpy as np
    rng = np.random.default_rng(7)
    files = []
    for _ in range(32):
        out = io.BytesIO()
        drawn(rng).save(out, "JPEG", quality=92)
        files.append(out.getvalue())
    places = [pathlib.Path(folder) / f"c{k}" for k in range(10)]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda k: (places[k % 10] / f"{k:05}.jpg").write_bytes(files[(k * 7 + k // 32) % 32]), range(count)))


def measure(folder, workers, side, seconds):
    import torch
    from torchvision import datasets, transforms
    torch.set_num_threads(1)
    change = transforms.Compose([transforms.RandomResizedCrop(side), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                 transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, change), 64, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    first, images, start = True, 0, None
    while True:
        for inputs, _ in loader:
            if first:
                first, start = False, time.perf_counter()
                continue
            images += len(inputs)
            if time.perf_counter() - start >= seconds:
                return images / (time.perf_counter() - start)


def pairs(program, folder, workers, rounds):
    ratios = []
    for _ in range(rounds):
        ours = float(subprocess.run([program, folder, str(workers)], check=True, capture_output=True, text=True).stdout)
        theirs = float(subprocess.run([sys.executable, __file__, folder, str(workers)], check=True, capture_output=True, text=True).stdout)
        ratios.append(ours / theirs)
        print(f"{ours:8.1f} /s  {theirs:8.1f} /s  {ratios[-1]:5.2f} times", flush=True)
    print(f"median {statistics.median(ratios):.2f} times")


def main():
    words = sys.argv[1:]
    if words[:1] == ["make"]:
        make(words[1], int(words[2]) if len(words) > 2 else 512)
    elif words[:1] == ["many"]:
        make_many(words[1], int(words[2]) if len(words) > 2 else 20000)
    elif words[:1] == ["pairs"]:
        pairs(words[1], words[2], int(words[3]) if len(words) > 3 else 2, int(words[4]) if len(words) > 4 else 5)
    elif words:
        numbers = [float(word) for word in words[1:]] + [2, 224, 5][len(words) - 1:]
        print(f"{measure(words[0], int(numbers[0]), int(numbers[1]), numbers[2]):.1f}")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
