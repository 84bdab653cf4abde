#!/usr/bin/env python3
"""Trains a small convolutional network on images that it makes itself: the job of `make demo`.

The images (coloured shapes on noise, one class per shape) are written to a file first. Each item is then read from it,
cropped, flipped, blurred and jittered on the CPU: with no loader workers this is done between two training steps, and
the model waits. Runs with PyTorch 1.13 and later, on the GPU if there is one.

    python3 examples/train_images.py --num-workers 0 --epochs 4
"""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

IMAGE_SIZE = 96
CROP_SIZE = 80
CLASSES = ("disc", "square", "cross", "stripes")


def make_image(rng: np.random.Generator, label: int) -> np.ndarray:
    """One noisy uint8 image, [IMAGE_SIZE, IMAGE_SIZE, 3], that shows the shape of class `label`."""
    y, x = np.mgrid[0:IMAGE_SIZE, 0:IMAGE_SIZE]
    centre_y, centre_x = rng.integers(36, IMAGE_SIZE - 36, size=2)
    radius = int(rng.integers(16, 26))
    dy, dx = np.abs(y - centre_y), np.abs(x - centre_x)
    shape = (
        dy**2 + dx**2 < radius**2,
        (dy < radius) & (dx < radius),
        ((dy < radius // 3) & (dx < radius)) | ((dx < radius // 3) & (dy < radius)),
        (dy < radius) & (dx < radius) & (y % 8 < 4),
    )[label]
    image = rng.normal(96, 32, size=(IMAGE_SIZE, IMAGE_SIZE, 3))
    image[shape] += rng.uniform(40, 120, size=3)
    return np.clip(image, 0, 255).astype(np.uint8)


def make_images(path: str, count: int) -> None:
    rng = np.random.default_rng(0)
    images = np.stack([make_image(rng, i % len(CLASSES)) for i in range(count)])
    np.save(path, images)


class ShapeImages(Dataset):
    """Images from a memory-mapped file, each transformed anew whenever it is asked for."""

    def __init__(self, path: str, blur_passes: int) -> None:
        self.path = path
        self.blur_passes = blur_passes
        self.images = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.images)

    def transform(self, image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        top, left = rng.integers(0, IMAGE_SIZE - CROP_SIZE, size=2)
        out = image[top : top + CROP_SIZE, left : left + CROP_SIZE].astype(np.float32) / 255.0
        if rng.random() < 0.5:
            out = out[:, ::-1]
        for _ in range(self.blur_passes):  # a box blur by shifted sums: the part that costs CPU
            out = (out + np.roll(out, 1, 0) + np.roll(out, -1, 0) + np.roll(out, 1, 1) + np.roll(out, -1, 1)) / 5.0
        out = (out - out.mean()) / (out.std() + 1e-3)
        return out * rng.uniform(0.8, 1.2) + rng.uniform(-0.1, 0.1)

    def __getitem__(self, index: int):
        rng = np.random.default_rng(index)
        pixels = self.transform(np.asarray(self.images[index]), rng)
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1), dtype=np.float32)), index % len(CLASSES)


def make_model() -> nn.Module:
    def block(channels_in: int, channels_out: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1), nn.BatchNorm2d(channels_out), nn.ReLU()
        )

    return nn.Sequential(
        block(3, 16), block(16, 32), block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(CLASSES))
    )


def train(args: argparse.Namespace, data_path: str) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(
        ShapeImages(data_path, args.blur_passes),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.num_workers,
        persistent_workers=args.num_workers > 0,
    )
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        begin, correct, seen, total_loss = time.monotonic(), 0, 0, 0.0
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            outputs = model(images)
            loss = loss_function(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss.item() * len(labels)
            correct += int((outputs.argmax(1) == labels).sum())
            seen += len(labels)
        seconds = time.monotonic() - begin
        print(
            f"epoch {epoch}: loss {total_loss / seen:.4f}, accuracy {correct / seen:.3f}, "
            f"{seen / seconds:.0f} images/s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1, help="threads of the model's own arithmetic")
    parser.add_argument("--images", type=int, default=1024, help="images to make")
    parser.add_argument("--blur-passes", type=int, default=40, help="cost of the transform")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="train_images-") as folder:
        data_path = os.path.join(folder, "images.npy")
        make_images(data_path, args.images)
        train(args, data_path)


if __name__ == "__main__":
    main()
