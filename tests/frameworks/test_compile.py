"""torch.compile: the same graphs, no recompilation because of us, the right steps. Needs a current torch."""
import pytest
from framework_harness import run, steps, w

NET = """
import torch._dynamo.utils as counters
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
    def forward(self, x):
        return torch.relu(self.inner(x)) + x
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(8, 2)
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
x, y = data(16).tensors
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
def train(forward, step, n):
    for _ in range(n):
        optimizer.zero_grad()
        loss = loss_of(forward(x), y)
        loss.backward()
        step()
        say(loss)
"""
COUNTERS = "print(dict(counters.counters['stats']), len(counters.counters['graph_break']))\n"

CASES = {
    "whole": ("train(torch.compile(model, fullgraph=True, backend='aot_eager'), optimizer.step, 8)", 8, True),
    "whole, inductor": ("train(torch.compile(model, fullgraph=True), optimizer.step, 6)", 6, True),
    "in place": ("model.compile(backend='aot_eager')\ntrain(model, optimizer.step, 8)", 8, True),
    "after an eager warm-up": (
        "train(model, optimizer.step, 5)\n"
        "train(torch.compile(model, fullgraph=True, backend='aot_eager'), optimizer.step, 5)", 10, True),
    "blocks": ("for b in model.blocks:\n    b.compile(backend='aot_eager', fullgraph=True)\n"
               "train(model, optimizer.step, 8)", 8, True),
    "a function around an eager module": (
        "f = torch.compile(lambda x: model(x), backend='aot_eager', fullgraph=True)\n"
        "train(model, optimizer.step, 2)\ntrain(f, optimizer.step, 5)\ntrain(model, optimizer.step, 2)\n"
        "train(f, optimizer.step, 2)", 11, False),
    "the optimizer": ("train(model, torch.compile(optimizer.step, backend='aot_eager'), 6)", 6, True),
    "the whole step": (
        "@torch.compile(backend='aot_eager')\ndef whole():\n    optimizer.zero_grad()\n"
        "    loss = loss_of(model(x), y)\n"
        "    loss.backward()\n    optimizer.step()\n    return loss\nfor _ in range(6):\n    say(whole())", 6, False),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled(tmp_path, name):
    body, expected, sees_forward = CASES[name]
    ring = run(tmp_path, NET + body + "\n" + COUNTERS).main()
    found = steps(ring)
    assert len(found) == expected
    assert ring.spans(w.COMPILE)
    assert not any("hotlap" in n or "Roots" in n or "wrapped" in n for n in ring.names.values())
    if sees_forward:
        assert {f["step"] for f in ring.spans(w.FORWARD)} == set(range(expected))


def test_changing_shapes_recompile_as_often_as_without_us(tmp_path):
    ring = run(tmp_path, NET + """
f = torch.compile(model, backend="aot_eager")
for n in (4, 8, 12, 16):
    optimizer.zero_grad()
    loss = loss_of(f(x[:n]), y[:n])
    loss.backward()
    optimizer.step()
    say(loss)
""" + COUNTERS).main()
    assert len(steps(ring)) == 4
    assert len(ring.spans(w.COMPILE)) >= 2


def test_export_trace_script_and_pickles(tmp_path):
    run(tmp_path, NET + """
import copy, io, warnings
warnings.simplefilter("ignore")
train(model, optimizer.step, 2)
print(len(list(torch.export.export(model, (x,)).graph.nodes)))
print(torch.fx.symbolic_trace(model).code)
print(float(torch.jit.trace(model, (x,))(x).sum()), torch.jit.script(nn.Sequential(nn.Linear(8, 2)))(x).shape)
copied = copy.deepcopy(model)
target = io.BytesIO()
torch.save(model, target)
print(b"hotlap" in target.getvalue(), float(copied(x).sum()))
""")
