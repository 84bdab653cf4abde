"""Windows of torch's profiler inside a job: which steps, what is told, and that the job does not notice."""
import json

import pytest
from harness import PYTHON, SOURCE, Program, collect, execute, steps, w

pytest.importorskip("torch")

LOOP = """
model, n = net(), int(sys.argv[1]) if len(sys.argv) > 1 else 40
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 8), torch.tensor([0, 1, 0, 1])
for i in range(n):
    say(update(model, optimizer, x, y))
"""


def run(folder, body, plan, env=None, compare=False, **kwargs):
    env = {"HOTLAP_PROFILE": plan, "HOTLAP_PROFILE_DIR": str(folder / "windows"), **(env or {})}
    return Program(folder / "job", body).run(env=env, compare=compare, **kwargs)


def told(ring, start="profile."):
    return {r["key"]: json.loads(r["json"]) for r in ring.records if r["type"] == "info" and r["key"].startswith(start)}


def traces(folder):
    return sorted((folder / "windows").glob("*")) if (folder / "windows").exists() else []


def test_the_steps_that_were_asked_for_and_no_other(tmp_path):
    ring = run(tmp_path, LOOP, "steps=10:3", compare=True).main()
    assert len(steps(ring)) == 40
    found = told(ring)
    assert sorted(found) == ["profile.measured", "profile.window.1"]
    assert (found["profile.measured"]["first_step"], found["profile.measured"]["steps"]) == (9, 1)
    window = found["profile.window.1"]
    assert (window["first_step"], window["steps"]) == (10, 3)
    (path,) = traces(tmp_path)
    assert path.name == window["file"] and path.stat().st_size == window["bytes"]
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    events = json.loads(path.read_text())["traceEvents"]
    marks = [e["name"] for e in events if e["name"].startswith("ProfilerStep#")]
    assert marks == ["ProfilerStep#10", "ProfilerStep#11", "ProfilerStep#12"]
    assert sum(e["name"] == "aten::linear" for e in events) == 6
    assert any("Backward" in e["name"] for e in events)


def test_the_pauses_are_no_part_of_a_step(tmp_path):
    ring = run(tmp_path, LOOP, "steps=10:3").main()
    pauses = ring.spans(w.PROFILE_PAUSE)
    assert [(p["step"], p["a"]) for p in pauses] == [(9, 1), (10, 1), (13, 0)]
    found = steps(ring)
    for pause in pauses:
        before, after = found[pause["step"] - 1], found[pause["step"]]
        assert before["start"] + before["duration"] <= pause["start"]
        assert after["start"] == pause["start"] + pause["duration"]


@pytest.mark.parametrize("plan, rank", [("ranks=0+3,steps=10:3", "1"), ("nonsense,steps=x:y,=,every_s", "0")])
def test_nothing_is_done_where_nothing_is_asked_for(tmp_path, plan, rank):
    ring = run(tmp_path, LOOP, plan, env={"RANK": rank, "WORLD_SIZE": "4"}).main()
    assert not ring.spans(w.PROFILE_PAUSE) and not traces(tmp_path)
    assert not told(ring)


def test_the_program_asks(tmp_path):
    ring = Program(tmp_path / "job", """
        import hotlap
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(4, 8), torch.tensor([0, 1, 0, 1])
        for i in range(200):
            if i == 150:
                assert hotlap.profile(steps=2) is hotlap.recorded()
            say(update(model, optimizer, x, y))
        """).run(env={"HOTLAP_PROFILE_DIR": str(tmp_path / "windows"), "PYTHONPATH": str(SOURCE)}).main()
    window = told(ring)["profile.window.1"]
    assert window["steps"] == 2 and window["first_step"] >= 151
    assert len(steps(ring)) == 200


OWN = LOOP.replace("for i in range(n):", """
for i in range(n):
    if i == %s:
        own = %s
        own.__enter__()
    if i == %s:
        own.__exit__(None, None, None)
        print(sum(e.key == "aten::linear" and e.count for e in own.key_averages()))
""")


@pytest.mark.parametrize("begins", ["5", "10", "11"])
def test_the_programs_own_profiler_goes_first(tmp_path, begins):
    ring = run(tmp_path, OWN % (begins, "torch.autograd.profiler.profile()", "20"), "steps=10:3", compare=True,
               env={"KINETO_LOG_LEVEL": "99"}).main()
    assert len(steps(ring)) == 40
    found = told(ring)
    assert "program" in found["profile.refused"]["why"]
    assert "profile.window.1" not in found and not traces(tmp_path)


def test_a_profiler_of_the_program_that_waits_for_its_turn_counts(tmp_path):
    ring = run(tmp_path, OWN % ("5", "torch.profiler.profile()", "20"), "steps=10:3").main()
    assert "started by the program" in told(ring)["profile.refused"]["why"] and not traces(tmp_path)


def test_cprofile_counts(tmp_path):
    ring = run(tmp_path, LOOP.replace("for i in", "import cProfile; p = cProfile.Profile(); p.enable()\nfor i in"),
               "steps=10:3").main()
    assert "Python profiler" in told(ring)["profile.refused"]["why"] and not traces(tmp_path)


@pytest.mark.parametrize("plan, why", [("steps=10:3,budget_pct=0", "time budget"), ("steps=10:3,disk_mb=0", "disk"),
                                       ("steps=10:3,memory_mb=0", "memory")])
def test_a_budget_of_nothing_allows_nothing(tmp_path, plan, why):
    ring = run(tmp_path, LOOP, plan).main()
    assert why in told(ring)["profile.refused"]["why"]
    assert not traces(tmp_path) and not ring.spans(w.PROFILE_PAUSE)


@pytest.mark.parametrize("harm", [
    "torch.autograd.profiler.profile._start_trace = lambda self: 1 / 0",
    "torch.autograd.profiler.profile.__exit__ = lambda self, *_: 1 / 0",
    "import hotlap._torch.window as o; o.Window.mark = lambda *_: 1 / 0",
    "import hotlap._torch.window as o; o.Window.export = lambda *_: 1 / 0"])
def test_what_fails_ends_it_and_not_the_job(tmp_path, harm):
    (tmp_path / "windows").mkdir(mode=0o700)
    program = Program(tmp_path / "job", harm + "\n" + LOOP)
    rings = tmp_path / "rings"
    rings.mkdir(mode=0o700)
    code, out, err = execute(program.command(PYTHON, (), ()), program.folder, rings,
                             {"HOTLAP_PROFILE": "steps=10:3", "HOTLAP_PROFILE_DIR": str(tmp_path / "windows")})
    assert (code, out.count("\n"), err) == (0, 40, "")
    (ring,) = collect(rings)[0]
    assert len(steps(ring)) == 40 and ring.errors == 1
    assert "failed" in told(ring)["profile.refused"]["why"] and not traces(tmp_path)


@pytest.mark.parametrize("harm, why", [
    ("import os; os.chmod(os.environ['HOTLAP_PROFILE_DIR'], 0o777)", "others may enter it"),
    ("import os; os.rename(os.environ['HOTLAP_PROFILE_DIR'], os.environ['HOTLAP_PROFILE_DIR'] + '2'); "
     "os.environ['HOTLAP_PROFILE_DIR'] += '/profile'", "No such file or directory")])
def test_without_a_folder_of_its_own_nothing_is_begun(tmp_path, harm, why):
    (tmp_path / "windows").mkdir(mode=0o700)
    ring = run(tmp_path, harm + "\n" + LOOP, "steps=10:3,functions_hz=50").main()
    assert why in told(ring)["profile.refused"]["why"]
    assert not ring.spans(w.PROFILE_PAUSE) and not traces(tmp_path)


def test_a_fork_in_the_middle_ends_the_window(tmp_path):
    ring_of = run(tmp_path, LOOP.replace("say(", "i == 12 and (os.fork() or os._exit(0)); say("), "steps=10:5")
    ring = [r for r in ring_of.rings if r.step == 39][0]
    window = told(ring)["profile.window.1"]
    assert (window["first_step"], window["steps"], window["wanted"]) == (10, 2, 5)


def test_workers_of_a_loader_are_started_while_it_looks(tmp_path):
    ring = run(tmp_path, """
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for x, y in DataLoader(data(), batch_size=4, num_workers=2):
                say(update(model, optimizer, x, y))
        """, "steps=14:6").main()
    assert len(steps(ring)) == 48
    assert told(ring)["profile.window.1"]["first_step"] == 14


def test_a_job_without_an_optimizer(tmp_path):
    ring = run(tmp_path, """
        import time
        model = net().eval()
        with torch.no_grad():
            for x, y in DataLoader(data(128), batch_size=4):
                say(model(x).sum())
        """, "steps=10:3").main()
    found = steps(ring)
    assert len(found) == 32
    assert told(ring)["profile.window.1"]["steps"] == 3
    for pause in ring.spans(w.PROFILE_PAUSE):
        inside = [s for s in found if s["start"] <= pause["start"] < s["start"] + s["duration"]]
        assert [s["step"] for s in inside] == [pause["step"]]


def test_the_job_ends_within_a_window(tmp_path):
    ring = run(tmp_path, LOOP, "steps=38:50").main()
    assert told(ring)["profile.window.1"]["steps"] == 2


def test_a_program_that_ends_before_says_so_once(tmp_path):
    ring_of = run(tmp_path, """
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in DataLoader(data(), batch_size=4, num_workers=2):
            say(update(model, optimizer, x, y))
        """, "steps=100:3")
    assert [told(ring) for ring in ring_of.rings if told(ring)] == [
        {"profile.refused": {"why": "the program ended before", "step": 16}}]


def test_an_outlier_is_looked_into(tmp_path):
    ring = run(tmp_path, "import time\n" + LOOP.replace("say(", "i == 60 and time.sleep(0.3); say("),
               "on_outlier=1,count=2", arguments=["100"]).main()
    assert told(ring)["profile.window.1"]["first_step"] >= 21  # a busy machine makes outliers of its own
