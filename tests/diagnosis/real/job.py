#!/usr/bin/env python3
"""A training job with one planted cause, for tests/diagnosis/real/prove.py: real PyTorch, on the CPU.

The model's own work is a wait (`--device-ms`), as it is for a process whose GPU computes, or arithmetic (`--cpu-ms`).
Costs on the CPU are spun by the thread's own clock, so that a loaded machine does not change them.
"""
import argparse
import gc
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def spin_ms(ms: float) -> None:
    """Uses the CPU for so long; waiting for a core does not count."""
    end = time.thread_time() + ms / 1e3
    while time.thread_time() < end:
        pass


def sleep_ms(ms: float) -> None:
    if ms > 0:
        time.sleep(ms / 1e3)


class Samples(Dataset):
    def __init__(self, args: argparse.Namespace, length: int) -> None:
        self.args = args
        self.length = length
        self.file = args.read_file
        self.objects = [str(i) for i in range(args.shared_objects)]

    def __len__(self) -> int:
        return self.length

    def read(self, index: int) -> None:
        size = self.args.read_kb * 1024
        descriptor = os.open(self.file, os.O_RDONLY)
        blocks = max(os.fstat(descriptor).st_size // size, 1)
        offset = (index * 7919 % blocks) * size
        os.pread(descriptor, size, offset)
        if not self.args.keep_cache:
            os.posix_fadvise(descriptor, offset, size, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)

    def __getitem__(self, index: int):
        if self.file:
            self.read(index)
        if self.args.objects_per_item:
            step = max(self.args.shared_objects // self.args.objects_per_item, 1)
            first = index * 31 % step
            len([self.objects[i] for i in range(first, self.args.shared_objects, step)])
        sleep_ms(self.args.item_wait_ms)
        spin_ms(self.args.item_cpu_ms)
        if self.args.worker_threads:
            side = torch.ones(256, 256)
            end = time.monotonic() + self.args.worker_math_ms / 1e3
            while time.monotonic() < end:
                side @ side
        if self.args.slow_item_every and index % self.args.slow_item_every == 0:
            sleep_ms(self.args.slow_item_ms)
        return torch.full((3, 16, 16), float(index % 7)), index % 4


class Model(nn.Module):
    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        self.args = args
        self.steps = 0
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 256, 4))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        sleep_ms(self.args.device_ms)
        spin_ms(self.args.cpu_ms)
        if self.training:
            self.steps += 1
            if self.args.slower_from and self.steps > self.args.slower_from:
                sleep_ms(self.args.slower_ms)
            if self.args.jitter_ms:
                sleep_ms(self.args.jitter_ms * (self.steps * 7919 % 100) / 100)
        return self.layers(batch)


class SlowFile:
    """A file on a slow disk: so many megabytes a second."""

    def __init__(self, path: str, mb_per_s: float) -> None:
        self.file = open(path, "wb")
        self.mb_per_s = mb_per_s

    def write(self, data) -> int:
        size = memoryview(data).nbytes
        sleep_ms(size / self.mb_per_s / 1e3)
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()


def start_worker(worker: int) -> None:
    sleep_ms(ARGS.worker_start_ms)
    if ARGS.worker_threads:
        torch.set_num_threads(ARGS.worker_threads)


def evaluate(model: nn.Module, args: argparse.Namespace) -> None:
    model.eval()
    with torch.no_grad():
        for batch, _ in DataLoader(Samples(argparse.Namespace(**{**vars(args), "item_wait_ms": 0, "read_file": None}),
                                           args.eval_batches * args.batch_size), batch_size=args.batch_size):
            model(batch)
    model.train()


def make_loader(args: argparse.Namespace) -> DataLoader:
    length = (args.epoch_steps or args.steps) * args.batch_size
    return DataLoader(Samples(args, length), batch_size=args.batch_size, num_workers=args.workers,
                      worker_init_fn=start_worker if args.workers else None,
                      persistent_workers=args.persistent and args.workers > 0)


class Memory:
    """What stays of each step."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.kept: list = []
        self.graph: list = []

    def after_step(self, step: int) -> None:
        args = self.args
        if args.leak_mb and step > args.leak_from:
            self.kept.append(bytearray(os.urandom(1024)) + bytearray(b"x") * int(args.leak_mb * 1e6))
            if args.leak_cap_mb and len(self.kept) * args.leak_mb > args.leak_cap_mb:
                self.kept.pop(0)
        if args.jump_mb and step == args.jump_at:
            self.kept.append(bytearray(b"x") * int(args.jump_mb * 1e6))
        for _ in range(args.garbage):
            cycle: list = [step]
            cycle.append(cycle)
        if args.collect:
            gc.collect()


def train(args: argparse.Namespace, rank: int = 0) -> None:
    if args.gc_objects:
        memory_objects = [[i] for i in range(args.gc_objects)]
        del memory_objects[0]
    if args.gc_off:
        gc.freeze()
        gc.disable()
    sleep_ms(args.init_ms)
    model = Model(args)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    if args.ranks > 1:
        wrapped: nn.Module = nn.parallel.DistributedDataParallel(model)
        if rank == args.slow_rank:
            args.device_ms += args.slow_rank_ms
    else:
        wrapped = model
    loss_of = nn.CrossEntropyLoss()
    state = torch.zeros(int(args.checkpoint_mb * 1e6 / 4))
    loader, memory, step = make_loader(args), Memory(args), 0
    with tempfile.TemporaryDirectory() as folder:
        while step < args.steps:
            for batch, label in loader:
                optimizer.zero_grad()
                loss_of(wrapped(batch), label).backward()
                optimizer.step()
                step += 1
                memory.after_step(step)
                spin_ms(args.other_ms)
                if args.checkpoint_every and step % args.checkpoint_every == 0:
                    torch.save({"model": model.state_dict(), "state": state},
                               SlowFile(os.path.join(folder, "checkpoint.pt"), args.checkpoint_mb_per_s))
                if args.eval_every and step % args.eval_every == 0:
                    evaluate(model, args)
                if step >= args.steps:
                    break


def train_rank(rank: int, args: argparse.Namespace) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(args.ranks), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(args.port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=args.ranks)
    train(args, rank)
    torch.distributed.destroy_process_group()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("steps", 200), ("epoch-steps", 0), ("batch-size", 8), ("workers", 0), ("worker-threads", 0),
                          ("slow-item-every", 0), ("checkpoint-every", 0), ("eval-every", 0), ("eval-batches", 10),
                          ("garbage", 0), ("gc-objects", 0), ("leak-from", 0), ("jump-at", 0), ("slower-from", 0),
                          ("ranks", 1), ("slow-rank", 1), ("port", 29517), ("threads", 0), ("read-kb", 64),
                          ("shared-objects", 0), ("objects-per-item", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    for name, default in (("device-ms", 0.0), ("cpu-ms", 0.0), ("item-wait-ms", 0.0), ("item-cpu-ms", 0.0),
                          ("slow-item-ms", 0.0), ("other-ms", 0.0), ("worker-start-ms", 0.0), ("worker-math-ms", 0.0),
                          ("checkpoint-mb", 8.0), ("checkpoint-mb-per-s", 16.0), ("leak-mb", 0.0),
                          ("leak-cap-mb", 0.0), ("jump-mb", 0.0), ("slower-ms", 0.0), ("jitter-ms", 0.0),
                          ("init-ms", 0.0), ("slow-rank-ms", 0.0)):
        parser.add_argument("--" + name, type=float, default=default)
    for name in ("persistent", "collect", "gc-off", "keep-cache"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--read-file")
    return parser.parse_args()


if __name__ == "__main__":
    ARGS = arguments()
    torch.set_num_threads(ARGS.threads or 1)
    if ARGS.ranks > 1:
        torch.multiprocessing.start_processes(train_rank, (ARGS,), nprocs=ARGS.ranks, start_method="fork")
    else:
        train(ARGS)
