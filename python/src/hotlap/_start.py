"""The first steps of the hook in a Python process: is it wanted, say that it is here, wait for frameworks.

Runs in every Python process of a job, so it imports nothing that the interpreter has not loaded and costs about a
millisecond. Environment (set by `hotlap run`): HOTLAP_RING_DIR, the private folder of rings; HOTLAP=0 turns it off.
"""
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # nothing is imported for it at run time, and annotations stay text
    from typing import Any, Optional, Set

OLDEST = (3, 8)

# Module that gets imported -> adapter in this package that attaches to it.
ADAPTERS = {
    "torch": "hotlap._torch",
    "torch._dynamo": "hotlap._torch.compile",
    "torch.distributed.distributed_c10d": "hotlap._torch.distributed",
    "safetensors.torch": "hotlap._torch.safetensors",
    "torchvision.transforms.transforms": "hotlap._torch.transforms",
    "keras.src.callbacks.callback_list": "hotlap._keras",
    "keras.src.backend.jax.trainer": "hotlap._keras",
    "jax": "hotlap._jax",
    "albumentations.core.composition": "hotlap._torch.transforms",
}


def wanted() -> bool:
    environ = os.environ
    return bool(environ.get("HOTLAP_RING_DIR")) and environ.get("HOTLAP") != "0"


def start_ticks() -> int:
    """Field 22 of /proc/self/stat: tells apart two processes that had the same pid."""
    fd = os.open("/proc/self/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(fd, 4096).rpartition(b")")[2].split()[19])
    finally:
        os.close(fd)


def ring_base() -> str:
    return "%s/%d-%d" % (os.environ["HOTLAP_RING_DIR"], os.getpid(), start_ticks())


def ring_folder_fault(folder: str) -> "Optional[str]":
    """Why the ring folder cannot be used, or None."""
    try:
        found = os.lstat(folder)
    except OSError as error:
        return error.strerror
    if found.st_mode & 0o170000 != 0o040000:
        return "not a folder"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & 0o077:
        return "others may enter it"
    return None


def profile_folder() -> str:
    """Where what is seen of some steps goes: in the run's folder, which is the recorder's to make. Raises OSError."""
    folder = os.environ.get("HOTLAP_PROFILE_DIR", "")
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    return folder


def say_off(code: str, detail: object) -> None:
    """Leaves `<pid>-<start>.off` with the reason for the recorder; silent when even that fails."""
    try:
        fd = os.open(ring_base() + ".off", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, ("%s: %s\n" % (code, detail)).replace("\n", " ").encode("utf-8", "replace")[:4096])
        finally:
            os.close(fd)
    except (OSError, ValueError):
        pass


def start(package: str) -> None:
    """Once per process (its callers see to that). `package` is the folder of the hotlap package."""
    if not wanted():
        return
    fault = ring_folder_fault(os.environ["HOTLAP_RING_DIR"])
    if fault is not None:
        say_off("ring-folder", fault)
        return
    if sys.version_info < OLDEST:
        say_off("python", "%d.%d is older than %d.%d" % (sys.version_info[:2] + OLDEST))
        return
    try:
        os.close(os.open(ring_base() + ".on", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError:
        pass
    sys.meta_path.insert(0, Finder(package))


def adapter_call(adapter: str, function: str, *arguments: object) -> None:
    """Calls a function of an adapter, if it has it. Never raises."""
    try:
        __import__(adapter)
        call = getattr(sys.modules[adapter], function, None)
        if call is not None:
            call(*arguments)
    except Exception as error:
        say_off("hook-failed", "%s: %s: %s" % (adapter, type(error).__name__, error))


class Finder:
    """First on sys.meta_path: lets the other finders find a module and attaches once it has been executed."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.adapters = dict(ADAPTERS)
        self.asking: Set[str] = set()

    def find_spec(self, name: str, path: object = None, target: object = None) -> "Any":
        if name == "hotlap":
            return self.find_own(path)
        if name not in self.adapters or name in self.asking:
            return None
        self.asking.add(name)
        try:
            spec = self.ask_others(name, path, target)
        finally:
            self.asking.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = Loader(spec.loader, name, self)
        return spec

    def ask_others(self, name: str, path: object, target: object) -> "Any":
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def find_own(self, path: object) -> "Any":
        """This package under its name, unless the program has another module called hotlap: that one goes first."""
        found = self.ask_others("hotlap", path, None)
        if found is not None:
            folders = found.submodule_search_locations or ()
            if not any(os.path.exists(folder + "/_wire.py") for folder in folders):
                say_off("name-taken", "the program has its own module named hotlap")
                return None
        external = sys.modules["_frozen_importlib_external"]
        return external.spec_from_file_location("hotlap", self.package + "/__init__.py",
                                                submodule_search_locations=[self.package])


class Loader:
    """Executes a module with its own loader, which the module also sees as its loader."""

    def __init__(self, loader: "Any", name: str, finder: Finder) -> None:
        self.loader, self.name, self.finder = loader, name, finder

    def __getattr__(self, attribute: str) -> "Any":
        return getattr(self.loader, attribute)

    def create_module(self, spec: object) -> "Any":
        return self.loader.create_module(spec)

    def exec_module(self, module: "Any") -> None:
        module.__loader__ = module.__spec__.loader = self.loader
        adapter = self.finder.adapters.pop(self.name, None)
        if adapter is not None:
            adapter_call(adapter, "prepare")
        try:
            self.loader.exec_module(module)
        except BaseException as error:
            if adapter is not None:
                self.finder.adapters[self.name] = adapter
            error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]  # as if this frame were not there
            raise
        if adapter is not None:
            adapter_call(adapter, "attach", module)


def installed() -> "Any":
    for finder in sys.meta_path:
        if type(finder).__name__ == "Finder" and hasattr(finder, "adapters") and hasattr(finder, "find_own"):
            return finder
    return None
