#!/usr/bin/env python3
"""Writes transforms.safetensors and mixing.safetensors of tests/e2e/fixtures: results of torchvision's transforms with given parameters.

    pip install torch torchvision numpy safetensors pillow      (torchvision 0.26, Pillow 13.0 made the committed file)
    tests/e2e/make_transform_fixtures.py [FOLDER]

NAME: uint8 [height, width, channels], or with crops before, as tests/data/test_transforms.cpp names it; "in" is the input image of all. The
images are PIL's, which is what torchvision's datasets give; PCA colour, which torchvision lacks, is computed with NumPy.

mixing.safetensors: a batch of floats [4, 3, 9, 11] with labels, after v2.MixUp and v2.CutMix with the shares and box centres of
tests/train/test_mixing.cpp, and scores with the cross entropy and its gradient for the mixtures of labels.
"""
import pathlib
import sys
import unittest.mock

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import save_file
from torchvision.transforms import functional as F
from torchvision.transforms import InterpolationMode, v2


def draw_image(height, width):
    """Smooth colours, a sharp edge and noise."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 120 * np.sin(x / 5 + 1.3 * c) * np.cos(y / 7 - c) for c in range(3)]
    out = np.stack(planes, -1) + rng.normal(0, 12, (height, width, 3))
    out[(x - 20) ** 2 + (y - 12) ** 2 < 60] = [230, 40, 90]
    return np.clip(out, 0, 255).astype(np.uint8)


def mixing():
    generator = torch.Generator().manual_seed(3)
    images = torch.randn(4, 3, 9, 11, generator=generator)
    labels, scores = torch.tensor([2, 0, 4, 2]), torch.randn(4, 5, generator=generator)
    out = {"images": images, "labels": labels, "scores": scores}

    def add(name, transform, params):
        params = {"labels": labels, "batch_size": 4, **params}
        mixture = transform.transform(labels, params)
        out[name], out[name + ".labels"] = transform.transform(images, params), mixture
        for smoothing, suffix in ((0.0, ""), (0.1, ".smooth")):
            leaf = scores.clone().requires_grad_()
            loss = torch.nn.functional.cross_entropy(leaf, mixture, label_smoothing=smoothing)
            loss.backward()
            out[f"{name}{suffix}.loss"], out[f"{name}{suffix}.grad"] = loss.detach(), leaf.grad

    add("mixup", v2.MixUp(num_classes=5), {"lam": 0.37})
    cutmix = v2.CutMix(num_classes=5)
    for name, share, x, y in (("cutmix", 0.6, 5, 4), ("cutmix_corner", 0.3, 0, 8), ("cutmix_whole", 0.0, 5, 4)):
        cutmix._dist.sample = lambda shape, share=share: torch.tensor([share])
        middles = iter((torch.tensor([x]), torch.tensor([y])))
        with unittest.mock.patch("torch.randint", lambda *_, **__: next(middles)):
            params = cutmix.make_params([images])
        add(name, cutmix, params)
        out[name + ".box"] = torch.tensor(params["box"])
    return out


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "fixtures")
    image = Image.fromarray(draw_image(34, 45))
    out = {"in": image}
    out["resize_down"] = F.resize(image, 20, InterpolationMode.BILINEAR)
    out["resize_up"] = F.resize(image, 51, InterpolationMode.BILINEAR)
    out["center_crop"] = F.center_crop(image, [21, 28])
    out["center_crop_beyond"] = F.center_crop(image, [40, 30])
    out["resized_crop"] = F.resized_crop(image, 5, 7, 23, 31, [16, 16])
    out["crop"] = F.crop(F.pad(image, 4), 1, 6, 34, 45)
    out["hflip"] = F.hflip(image)
    out["vflip"] = F.vflip(image)
    out["rotate"] = F.rotate(image, 25)
    out["affine"] = F.affine(image, angle=-12, translate=[3, -2], scale=1.2, shear=[8.0, 0.0])
    w, h = image.size
    start = [[0, 0], [w - 1, 0], [w - 1, h - 1], [0, h - 1]]
    end = [[3, 2], [w - 6, 4], [w - 2, h - 5], [7, h - 3]]
    out["perspective"] = F.perspective(image, start, end, InterpolationMode.BILINEAR)
    out["brightness"] = F.adjust_brightness(image, 1.35)
    out["contrast"] = F.adjust_contrast(image, 0.6)
    out["contrast_more"] = F.adjust_contrast(image, 1.7)
    out["saturation"] = F.adjust_saturation(image, 1.5)
    out["hue"] = F.adjust_hue(image, 0.17)
    out["hue_back"] = F.adjust_hue(image, -0.3)
    out["sharpness"] = F.adjust_sharpness(image, 1.8)
    out["blur"] = F.gaussian_blur(image, [5, 5], [1.4, 1.4])
    out["grey"] = F.rgb_to_grayscale(image, 3)
    out["posterize"] = F.posterize(image, 3)
    out["solarize"] = F.solarize(image, 153.0)
    out["auto_contrast"] = F.autocontrast(F.adjust_contrast(image, 0.6))
    out["equalize"] = F.equalize(image)
    out["shear_x"] = F.affine(image, 0.0, [0, 0], 1.0, [np.degrees(np.arctan(0.21)), 0.0], InterpolationMode.NEAREST, center=[0, 0])
    # Each is [crops, height, width, channels]; the margins are odd.
    out["five_crop"] = np.stack([np.array(crop) for crop in F.five_crop(image, [15, 20])])
    out["ten_crop"] = np.stack([np.array(crop) for crop in F.ten_crop(image, [21, 28])])
    out["ten_crop_vertical"] = np.stack([np.array(crop) for crop in F.ten_crop(image, [21, 28], vertical_flip=True)])
    tensor = torch.from_numpy(np.array(image)).permute(2, 0, 1)
    out["erase"] = F.erase(tensor, 6, 9, 12, 17, torch.tensor([10, 20, 30], dtype=torch.uint8).view(3, 1, 1)).permute(1, 2, 0).numpy()
    values, vectors = np.array([0.2175, 0.0188, 0.0045]), np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
    added = vectors @ (np.array([0.12, -0.2, 0.08]) * values)
    out["pca"] = np.clip(np.rint((np.array(image) / 255 + added) * 255), 0, 255).astype(np.uint8)
    save_file({name: np.ascontiguousarray(np.array(value)) for name, value in out.items()}, folder / "transforms.safetensors")
    save_file({name: np.ascontiguousarray(value.numpy()) for name, value in mixing().items()}, folder / "mixing.safetensors")


if __name__ == "__main__":
    main()
