"""The training process of bench/hook_overhead.py: one job, in which the hook is taken out and put back in blocks.

`off` is without the hook: every function that the hook wrapped is put back as torch has it (HOTLAP_SHADOW, the switch
that users have, leaves the wrappers in place, because it has to go on counting steps). In both kinds of blocks there is
a clock reading around each of these functions and one inside, around torch's own; what the first sums up beyond the
second is `bracket`, the hook's time without the training's own noise. It contains what cold caches cost the hook, and
not what the hook's use of the caches costs the training: that is only in the step times.

Prints one JSON object: for each block whether the hook was on, its steps, and its wall, CPU and bracket time.
"""
import argparse
import gc
import importlib.util
import json
import os
import pathlib
import random
import signal
import sys
import time

now = time.monotonic_ns
cpu_now = time.thread_time_ns
WARM_STEPS = 5  # at the start of a block: the interpreter adapts its code to the functions put in
ROOT = pathlib.Path(__file__).resolve().parents[1]


class Brackets:
    """Sums up time between the outer and the inner reading of every function that is bracketed."""

    def __init__(self):
        self.ns = 0
        self.depth = 0

    def inner(self, plain):
        """In place of torch's function, inside the wrapper."""

        def inside(*args, **kwargs):
            start = now()
            try:
                return plain(*args, **kwargs)
            finally:
                self.ns -= now() - start

        return inside

    def outer(self, function):
        """In place of the wrapper."""

        def outside(*args, **kwargs):
            start = now()
            try:
                return function(*args, **kwargs)
            finally:
                self.ns += now() - start

        return outside


class Wrapped:
    """One function that the hook has wrapped, as the attribute `name` of `owner`."""

    def __init__(self, owner, name, brackets):
        self.owner, self.name = owner, name
        wrapper = vars(owner)[name]
        plain = wrapper.__wrapped__
        inner = brackets.inner(plain)
        place_inside(wrapper, plain, inner)
        self.on, self.off = brackets.outer(wrapper), brackets.outer(inner)
        for function in (self.on, self.off):
            function.__dict__.update(vars(wrapper))  # marks such as torch's `hooked`

    def put(self, on):
        setattr(self.owner, self.name, self.on if on else self.off)


def place_inside(wrapper, plain, inner):
    """Makes `wrapper` call `inner` where it called `plain`. Modules are called by way of nn.Module."""
    cells = dict(zip(wrapper.__code__.co_freevars, wrapper.__closure__))
    for name, cell in cells.items():
        if cell.cell_contents is plain and name != "plain_call":
            cell.cell_contents = inner
            return
    if "module_class" in cells:
        cells["module_class"].cell_contents = type("Module", (), {"__call__": inner})
        return
    for cell in cells.values():
        if cell.cell_contents is plain:
            cell.cell_contents = inner
            return
    raise LookupError("the wrapper %s does not call what it wraps" % wrapper.__qualname__)


class Switch:
    """Takes the whole hook of this process out, and puts it back."""

    def __init__(self, torch, core, brackets, step_done):
        from hotlap._torch import fetch

        self.core, self.brackets = core, brackets
        utilities = torch.utils.data
        self.wrapped = [
            Wrapped(utilities.dataloader._BaseDataLoaderIter, "__next__", brackets),
            Wrapped(utilities._utils.fetch._MapDatasetFetcher, "fetch", brackets),
            Wrapped(torch.autograd, "backward", brackets),
        ]
        self.wrapped += [Wrapped(cls, "__call__", brackets) for cls in core.discovery.classes]
        self.optimizer = Wrapped(torch.optim.SGD, "step", brackets)
        for kind in ("on", "off"):
            setattr(self.optimizer, kind, followed_by(step_done, getattr(self.optimizer, kind)))
        self.wrapped.append(self.optimizer)
        self.collate_class = fetch.TimedCollate
        ours = vars(fetch.TimedCollate)["__call__"]
        self.collate = {True: brackets.outer(ours), False: brackets.outer(plain_collate)}
        bracketed = {(w.owner, w.name): (w.on, w.off) for w in self.wrapped}
        bracketed[fetch.TimedCollate, "__call__"] = self.collate[True], self.collate[False]
        for place in core.rest.places:  # what the hook itself takes out now and then
            if (place.owner, place.name) in bracketed:
                place.wrapper, place.plain = bracketed[place.owner, place.name]
        self.collected = [callback for callback in gc.callbacks if "hotlap" in (callback.__module__ or "")]

    def put(self, on):
        for each in self.wrapped:
            each.put(on)
        self.collate_class.__call__ = self.collate[on]
        if on and self.core.resting:
            self.core.rest.put(True)
        for callback in self.collected:
            if on and callback not in gc.callbacks:
                gc.callbacks.append(callback)
            elif not on and callback in gc.callbacks:
                gc.callbacks.remove(callback)
        if on:
            self.core.start_ns = now()  # the steps in between were nobody's

    def settle(self, on):
        """At the end of a block: what was gathered in it is its own."""
        if on:
            start = now()
            self.core.drain()
            self.brackets.ns += now() - start


def plain_collate(self, data):
    return self.collate_fn(data)


def followed_by(step_done, function):
    def step(*args, **kwargs):
        result = function(*args, **kwargs)
        step_done()
        return result

    step.__dict__.update(vars(function))
    return step


class Companions:
    """The recorder and the watcher of a whole `hotlap run`, stopped while the hook is out."""

    def __init__(self, is_wanted):
        self.is_wanted = is_wanted
        self.pids = []
        self.stopped = False

    def find(self):
        if self.is_wanted:
            parent = os.getppid()
            found = pathlib.Path("/proc/%d/task/%d/children" % (parent, parent)).read_text().split()
            self.pids = [int(pid) for pid in found if int(pid) != os.getpid()]
            if not self.pids:
                sys.exit("no recorder beside this job: start it with `hotlap run`")

    def send(self, number):
        for pid in self.pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def put(self, on):
        if self.stopped is on:
            self.send(signal.SIGCONT if on else signal.SIGSTOP)
            self.stopped = not on


class Blocks:
    """Counts steps and turns the switch: pairs of an `on` and an `off` block, whichever first by lot."""

    def __init__(self, args, torch):
        self.args, self.torch = args, torch
        self.generator = random.Random(args.seed)
        self.brackets = Brackets()
        self.companions = Companions(args.stop_companions)
        self.switch = None
        self.plan = []
        self.on = True
        self.steps = 0
        self.warm = args.warm_up
        self.blocks = []
        collate = torch.utils.data._utils.collate
        collate.default_collate = self.brackets.inner(collate.default_collate)
        # The hook wraps a class when the first of its optimizers is made; step_done goes around that.
        torch.optim.SGD([torch.zeros(1)], lr=1.0)
        self.wrapped_step = torch.optim.SGD.step
        torch.optim.SGD.step = followed_by(self.step_done, self.wrapped_step)

    def step_done(self):
        self.steps += 1
        if self.steps == self.warm:
            self.start()
        elif self.steps == self.warm + self.args.block:
            self.stop()

    def prepare(self):
        """After a few steps with the hook: the root modules are known by then."""
        from hotlap import _hook

        self.torch.optim.SGD.step = self.wrapped_step
        self.companions.find()
        core = _hook.parts()[1]
        core.rest.watch()
        if self.args.all_parts:
            core.governor.step = lambda shed, *_: 0
            core.shed, core.no_phases = 0, False
            core.rest.watch()
        self.switch = Switch(self.torch, core, self.brackets, self.step_done)

    def start(self):
        if self.switch is None:
            self.prepare()
            self.next_block()
            return
        self.bracket_ns, self.cpu_ns, self.start_ns = self.brackets.ns, cpu_now(), now()

    def stop(self):
        switch = self.switch
        switch.settle(self.on)
        end, cpu = now(), cpu_now()
        self.blocks.append({"on": self.on, "steps": self.args.block, "wall_ns": end - self.start_ns,
                            "cpu_ns": cpu - self.cpu_ns, "bracket_ns": self.brackets.ns - self.bracket_ns,
                            "shed": switch.core.shed})
        if len(self.blocks) == 2 * self.args.pairs:
            switch.put(True)
            self.companions.put(True)
            raise Done
        self.next_block()

    def next_block(self):
        if not self.plan:
            self.plan = [True, False]
            self.generator.shuffle(self.plan)
        self.on = self.plan.pop()
        self.switch.put(self.on)
        self.companions.put(self.on)
        self.steps, self.warm = 0, WARM_STEPS


class Done(Exception):
    pass


def train_small(torch, args):
    """Steps of less than a millisecond: a few small layers."""
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    data = TensorDataset(torch.randn(16 * 2000, args.width), torch.randint(0, 10, (16 * 2000,)))
    loader = DataLoader(data, batch_size=16, num_workers=args.workers, persistent_workers=args.workers > 0)
    model = torch.nn.Sequential(
        *[m for _ in range(4) for m in (torch.nn.Linear(args.width, args.width), torch.nn.ReLU())],
        torch.nn.Linear(args.width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()


def train_images(torch, args):
    """The job of `make demo`: steps of a tenth of a second, between which our code leaves the caches."""
    spec = importlib.util.spec_from_file_location("train_images", ROOT / "examples" / "train_images.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    settings = argparse.Namespace(batch_size=32, num_workers=args.workers, epochs=1_000_000, threads=1, images=1024,
                                  blur_passes=40)
    path = os.path.join(args.folder, "images.npy")
    example.make_images(path, settings.images)
    example.print = lambda *_, **__: None
    example.train(settings, path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=("small", "images"), required=True)
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--block", type=int, required=True)
    parser.add_argument("--warm-up", type=int, required=True)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", required=True, help="for files of the job and its result, blocks.json")
    parser.add_argument("--stop-companions", action="store_true")
    parser.add_argument("--all-parts", action="store_true", help="nothing is shed, however dear")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    blocks = Blocks(args, torch)
    try:
        {"small": train_small, "images": train_images}[args.job](torch, args)
    except Done:
        pass
    finally:
        blocks.companions.put(True)
    pathlib.Path(args.folder, "blocks.json").write_text(json.dumps(blocks.blocks))


if __name__ == "__main__":
    main()
