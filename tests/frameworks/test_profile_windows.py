"""Windows of the profiler with Kineto, in current PyTorch: what is in the file, silence, nothing compiled for them."""
import json

from framework_harness import run, steps, w

LOOP = """
model, optimizer = %s, None
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 8), torch.tensor([0, 1, 0, 1])
for i in range(40):
    say(update(model, optimizer, x, y))
"""


def windows(folder, body, plan="steps=10:3", env=None, **kwargs):
    env = {"HOTLAP_PROFILE": plan, "HOTLAP_PROFILE_DIR": str(folder / "windows"), **(env or {})}
    ring = run(folder / "job", body, env=env, **kwargs).main()
    told = {r["key"]: json.loads(r["json"]) for r in ring.records if r["type"] == "info"
            and r["key"].startswith("profile.")}
    return ring, told, sorted((folder / "windows").glob("*")) if (folder / "windows").exists() else []


def test_kineto_writes_the_steps_and_says_nothing(tmp_path):
    ring, told, (path,) = windows(tmp_path, LOOP % "net()")
    assert len(steps(ring)) == 40
    assert (told["profile.window.1"]["first_step"], told["profile.window.1"]["steps"]) == (10, 3)
    document = json.loads(path.read_text())
    assert document["baseTimeNanoseconds"] > 0
    events = document["traceEvents"]
    marks = [e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    assert sorted(e["name"] for e in marks) == ["ProfilerStep#10", "ProfilerStep#11", "ProfilerStep#12"]
    assert sum(e["name"] == "aten::linear" for e in events) == 6
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_window_makes_dynamo_compile_nothing(tmp_path):
    body = LOOP % "torch.compile(net(), backend='eager')" + """
from torch._dynamo.utils import counters
print(dict(counters["stats"]), dict(counters["recompiles"]))
"""
    ring, told, (path,) = windows(tmp_path, body)
    assert told["profile.window.1"]["steps"] == 3
    assert len(steps(ring)) == 40


def test_the_programs_schedule_goes_first(tmp_path):
    body = LOOP.replace("for i in range(40):", """
seen = []
own = torch.profiler.profile(schedule=torch.profiler.schedule(wait=20, warmup=1, active=2),
                             on_trace_ready=lambda p: seen.append(sum(
                                 e.count for e in p.key_averages() if e.key == "aten::linear")))
own.start()
for i in range(40):
    own.step()""") % "net()" + "own.stop()\nprint(seen)\n"
    ring, told, paths = windows(tmp_path, body, env={"KINETO_LOG_LEVEL": "99"})  # else it says pid and time
    assert not paths and not ring.spans(w.PROFILE_PAUSE)
    assert "started by the program" in told["profile.refused"]["why"]
