"""torch's profiler for _profile.py: the windows, the program's own use of it, and the hours at which neither may be."""
import os

from hotlap import _profile
from hotlap._torch import module, window


class OwnUse(window.OwnUse):
    def __init__(self, torch):
        super().__init__(torch)
        self.beside = False  # the program's profiler began in another thread, while ours is on
        self.capturing = module.capture_check(torch)

    def busy(self):
        """A CUDA graph is being captured: not now."""
        return self.capturing is not None and self.capturing()

    def active_beside(self):
        beside, self.beside = self.beside, False
        return beside


def attach_area(torch, recorder, core):
    if not os.environ.get("HOTLAP_PROFILE_DIR"):
        return  # a recorder that knows no windows, or keeps none
    use = OwnUse(torch)
    profile = _profile.Profile(recorder, core, lambda shapes: window.Window(torch, use, shapes), use)
    core.profile = profile
    core.at_fork.append(profile.begin)
    core.at_end.append(profile.close)
    os.register_at_fork(before=profile.before_fork)
