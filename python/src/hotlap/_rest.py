"""Small steps are watched in turns: a few with everything on, then many of which only the step itself is noted.

Where steps are so small that noting each part of each is too dear (Governor), the wrappers of forward, backward and
fetch are taken out between two steps and put back later. Means stay what they are; a step that was not watched has no
parts, which is not the same as parts of no time. A new pass over a loader is always watched, and forwards without
gradients that follow an update are noted while resting too, so that evaluations and roll-outs are seen.
"""
from hotlap import _usual, _wire
from hotlap._events import QUIET

WATCHED_STEPS = 16
RESTING_STEPS = 112
BATCHES_MAX = 8  # without an update in between: something else than training goes on

NEVER = 1 << 62


class Place:
    """A wrapper of ours, and what stands there while resting: what was there before (an attribute of `owner`, or none:
    `plain` is None), or something lighter."""

    __slots__ = ("owner", "name", "wrapper", "plain")

    def __init__(self, owner, name, wrapper, plain):
        self.owner, self.name, self.wrapper, self.plain = owner, name, wrapper, plain

    def put(self, resting):
        there, wanted = (self.wrapper, self.plain) if resting else (self.plain, self.wrapper)
        if vars(self.owner).get(self.name) is not there:
            return  # somebody has put something else there
        if wanted is None:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, wanted)


class Rest:
    """Whose turn it is. Never where dynamo has begun to compile: it looks at what modules are made of."""

    def __init__(self, core):
        self.core = core
        self.places = []
        self.next_step = WATCHED_STEPS
        self.calls = self.batches = 0
        self.quiet_place = self.quiet_event = None
        self.worked = -1  # updates until then when something of a step was last seen while resting

    def add(self, owner, name, plain):
        """After a wrapper was put there."""
        self.places.append(Place(owner, name, vars(owner)[name], plain))

    def turn(self):
        """After a drain in the training thread."""
        core = self.core
        if core.index < self.next_step:
            return
        if core.resting:
            self.watch()
        elif core.shed & _wire.PART_EACH_DETAIL and self.may_turn() and _usual.begins(core):
            self.put(True)
            self.next_step = core.index + RESTING_STEPS

    def may_turn(self):
        roots = self.core.discovery
        return roots is not None and not roots.for_good

    def watch(self):
        if self.core.resting:
            self.core.drain()  # what gathered is of the turn that ends; returns at once where a drain brought us here
            self.put(False)
        self.next_step = self.core.index + WATCHED_STEPS

    def hold(self):
        """A pass over a loader is over: what comes is watched until another one begins."""
        if self.core.resting:
            self.core.drain()
            self.put(False)
        self.next_step = NEVER

    def reset(self):
        if self.core.resting:
            self.put(False)
        self.quiet_place = self.quiet_event = None
        self.next_step = WATCHED_STEPS

    def batch(self):
        """A batch was asked for while resting."""
        self.worked = calls = self.core.optimizer_calls
        if calls != self.calls:
            self.calls, self.batches = calls, 0
            return
        self.batches += 1
        if self.batches > BATCHES_MAX:
            self.watch()

    def quiet(self, updates, start, end, events):
        """A forward without gradients, before anything of a step. One after another they are one event."""
        place = updates, self.core.last_drain_ns
        if self.quiet_place != place:  # an event that was worked off grows no more
            self.quiet_place, self.quiet_event = place, [QUIET, start, end, 0]
            events.append(self.quiet_event)
        self.quiet_event[2] = end
        self.quiet_event[3] += 1

    def put(self, resting):
        for place in self.places:
            place.put(resting)
        if not resting and self.calls and self.calls == self.core.optimizer_calls:
            self.core.unwatched = self.core.index  # its batch was taken unseen
        self.core.resting = resting
        self.core.choose_pace()
        self.calls = self.batches = 0
