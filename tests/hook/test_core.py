"""The state machine without torch: the short cut for usual steps against the long way, and what gathers when."""
import random

import harness  # noqa: F401  puts the package on the path
import pytest

from hotlap import _core, _place, _rest, _usual
from hotlap import _events as e
from hotlap import _wire as w

KEY, OTHER_KEY = 55, 66
TRAINS = e.TRAINING | e.GRAD | e.PARAMETERS


class Loader:
    def __init__(self, recorder, number):
        self.name, self.number = recorder.name("loader %d" % number), number
        self.depth_name = recorder.name("loader.queue_depth loader %d" % number)


class Discovery:
    for_good = False

    def end(self):
        pass


class Ring:
    """In place of a ring in a file: keeps what is written."""

    def __init__(self):
        self.words = self.signed = dict.fromkeys(range(512), 0)
        self.payload, self.records = b"", 0

    def write(self, payload, records):
        self.payload += payload
        self.records += records
        return True

    def set_place(self, place):
        pass


@pytest.fixture
def make_core(monkeypatch):
    from hotlap import _record

    monkeypatch.setenv("HOTLAP_RING_DIR", "/nowhere")
    clock = [0]

    def tick():
        clock[0] += 10
        return clock[0]

    monkeypatch.setattr(_record, "now", tick)
    monkeypatch.setattr(_core, "now", tick)
    monkeypatch.setattr(_core, "cpu_now", tick)

    def make():
        clock[0] = 0
        recorder = _record.Recorder()
        recorder.ring = Ring()
        recorder.place = (w.ROLE_MAIN, -1, -1, -1, -1, 0)
        core = _core.Core(recorder)
        core.discovery = Discovery()
        core.cost.clock_ns = 0
        core.cost.event_ns = 100
        core.optimizers_made = True
        core.is_training_thread(e.BY_UPDATE)
        core.loaders = Loader(recorder, 1), Loader(recorder, 2)
        return core

    return make


def usual_step(t, loader, depth=-1, fetched=False, forwards=2, batches=1):
    events = []
    for _ in range(batches):
        if fetched:
            events.append((e.FETCHED, t, t + 90, 80, 1000, (t + 50, 16, -1, -1), None, loader.name))
        events.append((e.WAITED, t, t + 100, 77, loader, 16, 1000, -1, depth))
        events += [(e.FORWARD, t + 110 + 10 * i, t + 118 + 10 * i, TRAINS if not i else TRAINS & ~e.PARAMETERS)
                   for i in range(forwards)]
        events.append((e.BACKWARD, t + 200, t + 300))
        t += 300
    events.append((e.OPTIMIZER, t + 10, t + 90, KEY, False))
    return events, t + 100


def odd_step(choose, t, loaders):
    """Something that is not usual, or usual with something in it."""
    events, end = usual_step(t, loaders[0], depth=choose.choice((-1, 3)), fetched=choose.random() < 0.5,
                             forwards=choose.randrange(4), batches=choose.choice((1, 1, 2, 3)))
    what = choose.randrange(12)
    at = choose.randrange(len(events) + 1)
    if what == 0:
        events.insert(at, (e.SPAN, t, t + 5, w.GARBAGE, 0, 2, 11, 99))
    elif what == 1:
        events.insert(at, (e.COUNT, t, t, 1, 0.5))
    elif what == 2:
        del events[min(at, len(events) - 1)]
    elif what == 3:
        events[-1] = (*events[-1][:4], True)
    elif what == 4:
        events.append((e.OPTIMIZER, end - 5, end - 2, OTHER_KEY, False))
    elif what == 5:
        events.insert(at, (e.FORWARD, t + 101, t + 105, e.PARAMETERS))
    elif what == 6:
        events = [(e.WAITED, t, t + 9, 78, loaders[1], 16, 1000, -1, -1), (e.FORWARD, t + 10, t + 50, e.PARAMETERS)] * 3
    elif what == 7:
        events.append((e.EXHAUSTED, end, end + 2_000_000, 77, loaders[0]))
        end += 2_100_000
    elif what == 8:
        events.insert(0, (e.ITERATOR, t, t + 2_000_000, loaders[0], 2))
        end += 2_100_000
    elif what == 9:
        events.insert(at, (e.PROGRAM_STEP, t, t)) if choose.random() < 0.05 else None
    elif what == 10:
        events = [event for event in events if event[0] != e.WAITED]
    elif what == 11:
        events.insert(at, (e.TAKEN_OVER,))
    return events, end


def course(seed, loaders, count=300):
    choose = random.Random(seed)
    t, events = 1000, []
    for _ in range(count):
        if choose.random() < 0.8:
            more, t = usual_step(t, loaders[0], depth=choose.choice((-1, 2)), fetched=choose.random() < 0.5)
        else:
            more, t = odd_step(choose, t, loaders)
        events += more
    cuts = sorted(choose.sample(range(len(events)), 40))
    return [events[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)])]


def state_of(core):
    left_out = {"recorder", "events", "handlers", "rest", "cost", "governor", "loaders", "lock", "own_ns", "discovery",
                "train_loader", "forwards_ever", "backwards_ever", "started_ns", "last_drain_ns", "gather_ns"}
    return {name: value for name, value in vars(core).items() if name not in left_out}


def run(core, batches):
    for events in batches:
        core.events += events
        core.drain()
    assert core.recorder.errors == 0, core.recorder.said
    core.recorder.flush()
    ring = core.recorder.ring
    records = [dict(r, t=0) if r["type"] == "info" else r for r in decoded(ring.payload)
               if r.get("kind") != w.HOOK]
    assert len(list(decoded(ring.payload))) == ring.records
    return records


def decoded(payload):
    at = 0
    while at < len(payload):
        size = int.from_bytes(payload[at + 2:at + 4], "little")
        yield w._decode(payload[at:at + size])
        at += size


def by_step(records):
    """The order inside a step is nobody's business."""
    steps = [[]]
    for record in records:
        steps[-1].append(repr(record))
        if record["type"] == "span" and record["kind"] == w.STEP:
            steps.append([])
    return [sorted(step) for step in steps]


@pytest.mark.parametrize("shed", [0, w.PART_PHASES])
@pytest.mark.parametrize("seed", range(25))
def test_the_short_cut_and_the_long_way_leave_the_same(make_core, monkeypatch, seed, shed):
    def prepared():
        core = make_core()
        core.governor.step = lambda *_: shed
        return core

    short = prepared()
    by_short_cut = run(short, course(seed, short.loaders))
    assert short.index > 0
    monkeypatch.setattr(_usual, "begins", lambda core: False)
    long = prepared()
    by_long_way = run(long, course(seed, long.loaders))
    for found, expected in zip(by_step(by_short_cut), by_step(by_long_way)):
        assert found == expected
    assert len(by_short_cut) == len(by_long_way)
    assert state_of(short) == state_of(long)


def test_usual_steps_take_the_short_cut(make_core, monkeypatch):
    core = make_core()
    core.governor.step = lambda *_: 0
    t, first = 1000, []
    for _ in range(6):
        events, t = usual_step(t, core.loaders[0])
        first += events
    run(core, [first])

    def refuse(event):
        raise AssertionError("the long way")

    core.handlers[:] = [refuse] * len(core.handlers)
    rest = []
    for fetched, depth, batches in ((True, -1, 1), (False, 4, 1), (True, -1, 3)):
        events, t = usual_step(t, core.loaders[0], depth, fetched, batches=batches)
        rest += events
    run(core, [rest])
    assert core.index == 9
    core.events += [(e.OPTIMIZER, t, t + 9, KEY, False)]
    core.resting = True
    core.drain()
    assert core.index == 10 and core.recorder.errors == 0


class Owner:
    def wrapper(self):
        return "ours"


def plain(self):
    return "theirs"


@pytest.mark.parametrize("reason", ["dynamo compiles", "modules could not be attached to"])
def test_no_turns_where_modules_are_not_ours_to_change(make_core, reason):
    core = make_core()
    core.governor.step = lambda *_: w.PART_EACH_DETAIL
    core.discovery.for_good = True
    t = 1000
    for i in range(60):
        events, t = usual_step(t, core.loaders[0])
        core.events += events
        core.drain()
        if i == 10 and reason != "dynamo compiles":
            core.discovery = None
        assert not core.resting
    assert core.index == 60 and core.recorder.errors == 0


def test_small_steps_are_watched_in_turns(make_core):
    core = make_core()
    core.governor.step = lambda *_: w.PART_EACH_DETAIL
    core.rest.add(Owner, "wrapper", plain)
    t, turns = 1000, []
    for _ in range(400):
        if core.resting:
            events, t = [(e.OPTIMIZER, t, t + 50, KEY, False)], t + 60
        else:
            events, t = usual_step(t, core.loaders[0])
        core.optimizer_calls += 1
        core.events += events
        core.drain()
        turns.append(core.resting)
        assert Owner().wrapper() == ("theirs" if core.resting else "ours")
    steps = [r for r in decoded(core.recorder.ring.payload) if r["type"] == "span" and r["kind"] == w.STEP]
    assert [s["step"] for s in steps] == list(range(400))
    first = turns.index(True)
    assert turns[first:first + _rest.RESTING_STEPS] == [True] * _rest.RESTING_STEPS
    assert turns[first + _rest.RESTING_STEPS:][:_rest.WATCHED_STEPS] == [False] * _rest.WATCHED_STEPS
    if not core.resting:
        core.rest.put(True)
    for _ in range(_rest.BATCHES_MAX + 2):
        core.rest.batch()  # batch after batch and no update
    assert not core.resting
    core.rest.put(True)
    core.rest.hold()
    assert not core.resting and core.rest.next_step > 1 << 60
    Owner.wrapper = lambda self: "somebody's"
    core.rest.put(True)
    assert Owner().wrapper() == "somebody's"
    core.rest.put(False)
    assert Owner().wrapper() == "somebody's"


def spans_of(core, kind):
    core.recorder.flush()
    return [r for r in decoded(core.recorder.ring.payload) if r["type"] == "span" and r["kind"] == kind]


@pytest.mark.parametrize("ends", ["hold", "watch"])
def test_what_gathered_while_resting_stays_unwatched(make_core, ends):
    """A loader's end or a new pass switches the watch on in the middle of what gathered."""
    core = make_core()
    t = 1000
    for _ in range(6):
        events, t = usual_step(t, core.loaders[0])
        core.events += events
    core.drain()
    core.rest.put(True)
    watched = len(spans_of(core, w.OPTIMIZER))
    core.events += [(e.OPTIMIZER, t + 100 * i, t + 100 * i + 50, KEY, False) for i in range(5)]
    getattr(core.rest, ends)()
    core.drain()
    assert not core.resting and core.index == 11 and core.recorder.errors == 0
    assert len(spans_of(core, w.STEP)) == 11
    assert len(spans_of(core, w.OPTIMIZER)) == watched


def test_an_evaluation_holds_the_start_and_the_end_of_its_workers(make_core):
    core = make_core()
    t = 1000
    for _ in range(6):
        events, t = usual_step(t, core.loaders[0])
        core.events += events
    core.drain()
    validation, begin = core.loaders[1], t
    core.events.append((e.ITERATOR, t, t + 5_000_000, validation, 2))
    t += 9_000_000
    for _ in range(3):
        core.events.append((e.WAITED, t, t + 100, 78, validation, 16, 1000, -1, -1))
        core.events.append((e.FORWARD, t + 110, t + 200, e.PARAMETERS))
        t += 300
    core.events.append((e.EXHAUSTED, t, t + 3_000_000, 78, validation))
    end = t + 3_000_000
    core.drain()
    events, _ = usual_step(end + 10, core.loaders[0])
    core.events += events
    core.drain()
    (evaluation,) = spans_of(core, w.EVALUATION)
    assert (evaluation["start"], evaluation["duration"], evaluation["a"]) == (begin, end - begin, 3)
    assert spans_of(core, w.STEP)[6]["start"] == end and core.recorder.errors == 0


def test_forwards_without_gradients_are_seen_while_resting(make_core):
    core = make_core()
    t = 1000
    for _ in range(6):
        events, t = usual_step(t, core.loaders[0])
        core.events += events
    core.drain()
    core.rest.put(True)
    for forwards in (2, 3, 30):  # two are part of the step
        begin = t
        for _ in range(forwards):
            core.rest.quiet(core.optimizer_calls, t, t + 40, core.events)
            t += 50
        if forwards == 30:
            core.drain()  # in the middle of it
            core.rest.quiet(core.optimizer_calls, t, t + 40, core.events)
        core.optimizer_calls += 1
        core.events.append((e.OPTIMIZER, t + 100, t + 150, KEY, False))
        t += 160
    core.drain()
    assert core.index == 9 and core.recorder.errors == 0
    small, large = spans_of(core, w.EVALUATION)
    assert small["duration"] == 140 and large["start"] == begin and large["duration"] == 30 * 50 + 40
    unwatched = spans_of(core, w.STEP)[6:]
    assert [s["duration"] for s in unwatched] == [10 + 2 * 50 + 150, 160, 110]
    assert not [s for s in spans_of(core, w.FORWARD) if s["step"] > 5]


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_step_that_was_watched_from_its_middle_on_has_no_parts(make_core, is_taken):
    """An evaluation over a loader begins after the batch of a resting step was taken: its wait was not seen."""
    core = make_core()
    t = 1000
    for _ in range(6):
        events, t = usual_step(t, core.loaders[0])
        core.events += events
        core.optimizer_calls += 1
    core.drain()
    core.rest.put(True)
    if is_taken:
        core.rest.batch()
    core.rest.watch()
    core.events += [(e.FORWARD, t, t + 100, TRAINS), (e.BACKWARD, t + 100, t + 200),
                    (e.OPTIMIZER, t + 200, t + 300, KEY, False)]
    events, _ = usual_step(t + 300, core.loaders[0])
    core.events += events
    core.drain()
    assert core.index == 8 and core.recorder.errors == 0
    core.recorder.flush()
    kinds = {step: [r["kind"] for r in decoded(core.recorder.ring.payload) if r["type"] == "span" and r["step"] == step]
             for step in (6, 7)}
    parts = [w.FORWARD, w.BACKWARD, w.OPTIMIZER]
    assert [kind for kind in kinds[6] if kind != w.HOOK] == ([] if is_taken else parts) + [w.STEP]
    assert [kind for kind in kinds[7] if kind != w.HOOK] == [w.DATA_WAIT, *parts, w.STEP]


def named_span(core, start, end, thread=None):
    return e.SPAN, start, end, w.USER, core.recorder.name("metrics"), -1, -1, thread or core.thread_number


def test_what_the_program_has_named_is_no_wait_before_forward(make_core):
    core = make_core()

    def step(t, *named):
        return [*(named_span(core, t + a, t + b, thread) for a, b, thread in named),
                (e.FORWARD, t + 500, t + 600, TRAINS), (e.BACKWARD, t + 600, t + 700),
                (e.OPTIMIZER, t + 700, t + 800, KEY, False)]

    core.events += step(1000)
    core.events += step(1800, (220, 250, None), (200, 300, None), (350, 400, None), (410, 490, 12345))
    core.events += step(2600, (0, 500, None))
    core.events += step(3400, (500, 600, None))  # what is named is the forward pass
    core.drain()
    assert core.recorder.errors == 0 and core.index == 4
    core.recorder.flush()
    waits = [(r["start"], r["duration"], r["a"]) for r in decoded(core.recorder.ring.payload)
             if r["type"] == "span" and r["kind"] == w.DATA_WAIT and r["step"] > 0]
    assert waits == [(1800, 200, 0), (2100, 50, 0), (2200, 100, -1), (3400, 500, -1)]


def test_small_steps_of_a_program_without_torch(make_core):
    """Nobody looks for roots there; the steps are the program's own marks."""
    core = make_core()
    core.discovery = None
    core.shed = (1 << 16) - 1
    for i in range(300):
        core.events.append((e.PROGRAM_STEP, 1000 * i, 1000 * i))
        core.drain()
    assert core.index == 300 and core.recorder.errors == 0


def test_adapters_see_the_end_of_each_step_and_work_in_the_order_of_events(make_core):
    core = make_core()
    ends, order = [], []
    core.at_step.append(ends.append)
    for i in range(3):
        core.events.append((e.CALL, 10 * i, 10 * i, lambda event: order.append((event[1], core.index))))
        core.events.append((e.PROGRAM_STEP, 10 * i + 5, 10 * i + 5))
    core.drain()
    assert ends == [5, 15, 25]
    assert order == [(0, 0), (10, 1), (20, 2)]
    assert core.recorder.errors == 0


@pytest.mark.parametrize("by_short_cut", [True, False])
def test_an_event_that_cannot_be_kept_costs_itself_alone(make_core, monkeypatch, by_short_cut):
    core = make_core()
    core.governor.step = lambda *_: 0
    if not by_short_cut:
        monkeypatch.setattr(_usual, "begins", lambda core: False)
    t, events = 1000, []
    for i in range(30):
        more, t = usual_step(t, core.loaders[0])
        if i % 10 == 7:
            more.insert(2, (e.COUNT, t, t, 1, 10**400))
        events += more
    core.events += events
    core.drain()
    core.drain()
    recorded = list(decoded(core.recorder.ring.payload))
    assert [r["step"] for r in recorded if r.get("kind") == w.STEP] == list(range(30))
    assert sum(r.get("kind") == w.FORWARD for r in recorded) == 30
    assert core.recorder.errors == core.recorder.ring.words[w.LIVE_ERRORS] == 3


def test_an_adapter_that_fails_at_the_end_of_a_step_costs_no_step(make_core):
    core = make_core()
    core.at_step.append(lambda end: 1 / 0)
    core.events += [(e.PROGRAM_STEP, i, i) for i in range(5)]
    core.drain()
    assert core.index == 5 and core.recorder.errors == 5


def test_names_and_settings_are_said_again_before_what_waits(make_core):
    core = make_core()
    recorder, ring = core.recorder, core.recorder.ring
    recorder.info("python", {"version": "3"})
    core.drain()
    ring.payload = b""
    ring.words[w.COMMAND_WORD] = 1 << 16 | w.COMMAND_SAY_AGAIN
    core.events.append((e.COUNT, 5, 5, recorder.name("loss"), 0.5))
    core.drain()
    said = [r["type"] for r in decoded(ring.payload)]
    assert said == ["name"] * 4 + ["info", "name", "name", "count"]
    assert ring.words[w.ANSWER_WORD] == ring.words[w.COMMAND_WORD]
    assert ring.words[w.ANSWER_RESULT] == w.ANSWER_DONE
    ring.payload = b""
    core.events.append((e.COUNT, 5, 5, recorder.name("loss"), 0.5))
    core.drain()
    assert [r["type"] for r in decoded(ring.payload)] == ["count"]


def test_a_loader_worker_stays_one_when_torch_forgets_its_number(make_core, monkeypatch):
    core = make_core()
    worker, nobody = (w.ROLE_LOADER, -1, -1, -1, 3, 0), (w.ROLE_MAIN, -1, -1, -1, -1, 0)
    for found, expected in ((nobody, nobody), (worker, worker), (nobody, worker)):
        monkeypatch.setattr(_place, "place", lambda found=found: found)
        core.recorder.update_place()
        assert core.recorder.place == expected


def test_a_command_reaches_a_process_without_steps(make_core):
    """A loader worker: it only publishes what it made."""
    core = make_core()
    recorder, ring = core.recorder, core.recorder.ring
    ring.words[w.COMMAND_WORD] = 1 << 16 | w.COMMAND_OFF
    core.busy = e.BUSY
    recorder.phase(w.PHASE_TRAINING, 1, -1)
    recorder.flush()
    assert ring.words[w.ANSWER_WORD] == ring.words[w.COMMAND_WORD]
    assert core.busy == e.BUSY | e.OFF


def test_names_beyond_the_bound_are_counted(make_core, monkeypatch):
    from hotlap import _record

    recorder = make_core().recorder
    monkeypatch.setattr(_record, "NAMES_MAX", len(recorder.names) + 1)
    assert recorder.name("the last one") > 0
    assert [recorder.name("one more") for _ in range(3)] == [0, 0, 0]
    recorder.flush()
    assert recorder.ring.words[w.LIVE_NAMES_REFUSED] == 3


def test_two_threads_give_two_names_two_numbers(make_core):
    recorder = make_core().recorder

    class Names(dict):
        """Another thread asks for a name just when this one looks how many there are."""

        calls = 0

        def __len__(self):
            Names.calls += 1
            count = super().__len__()
            if Names.calls == 2:
                recorder.name("other")
            return count

    recorder.names = Names(recorder.names)
    numbers = {recorder.name(text) for text in ("one", "other", "two")}
    assert len(numbers) == 3
