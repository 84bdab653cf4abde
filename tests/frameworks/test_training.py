"""Lightning, Transformers, Accelerate, scalers, FSDP and torchrun: the right steps through every wrapper."""
import pathlib
import subprocess
import sys
import tempfile

import pytest
from framework_harness import Program, run, steps, w
from harness import collect, environment, parts


def test_a_scaler_that_skips_updates(tmp_path):
    ring = run(tmp_path, """
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
for i, (x, y) in enumerate(DataLoader(data(), batch_size=8)):
    optimizer.zero_grad()
    loss = loss_of(model(x), y) * (float("inf") if i in (2, 5) else 1.0)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(scaler.get_scale())
""").main()
    found = steps(ring)
    assert [s["flags"] for s in found] == [5 if i in (2, 5) else 1 for i in range(8)]
    assert len(ring.spans(w.OPTIMIZER)) == 6


def test_autocast_and_activation_checkpointing(tmp_path):
    ring = run(tmp_path, """
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = net(), nn.Linear(2, 2)
    def forward(self, x):
        return self.b(checkpoint(self.a, x, use_reentrant=False))
model = Net()
optimizer = torch.optim.AdamW(model.parameters())
for x, y in DataLoader(data(), batch_size=8):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()
    say(loss)
""").main()
    assert len(steps(ring)) == 8
    assert len(ring.spans(w.FORWARD)) == len(ring.spans(w.BACKWARD)) == 8


def test_an_optimizer_inside_backward(tmp_path):
    ring = run(tmp_path, """
model = net()
optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
def update(p):
    optimizers[p].step()
    optimizers[p].zero_grad()
for p in model.parameters():
    p.register_post_accumulate_grad_hook(update)
for x, y in DataLoader(data(), batch_size=8):
    loss = loss_of(model(x), y)
    loss.backward()
    say(loss)
""").main()
    assert len(steps(ring)) == 8


ACCELERATE = """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=%d)
model = net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1.0)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, DataLoader(data(), batch_size=8), scheduler)
for epoch in range(2):
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = loss_of(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        say(loss)
"""


@pytest.mark.parametrize("accumulate,expected", [(1, 16), (4, 4)])
def test_accelerate(tmp_path, accumulate, expected):
    pytest.importorskip("accelerate")
    ring = run(tmp_path, ACCELERATE % accumulate).main()
    found = steps(ring)
    assert len(found) == expected
    assert sum(max(s["a"], 0) for s in found) == 128  # read one batch ahead: the last step has none
    assert len(ring.spans(w.EPOCH)) == 2


def test_transformers_trainer(tmp_path):
    pytest.importorskip("transformers")
    ring = run(tmp_path, """
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
class Words(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        ids = (torch.arange(12) * (i + 1)) % 50
        return {"input_ids": ids, "labels": ids}
model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2))
arguments = TrainingArguments("out", num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=2,
    per_device_eval_batch_size=8, eval_strategy="epoch", save_strategy="epoch", report_to=[], use_cpu=True,
    disable_tqdm=True, logging_strategy="no", dataloader_num_workers=0)
trainer = Trainer(model=model, args=arguments, train_dataset=Words(), eval_dataset=Words())
result = trainer.train()
print(result.global_step, result.training_loss.hex())
""", env={"HF_HUB_OFFLINE": "1"}, compare=False)
    assert ring.code == 0, ring.err
    assert ring.out.split()[-2] == "8"
    main = ring.main()
    found = steps(main)
    assert len(found) == 8
    # The loader is read one batch ahead: a batch may count for the step before.
    assert sum(max(s["a"], 0) for s in found) == 64 and sum(max(s["b"], 0) for s in found) == 768
    assert len(main.spans(w.EVALUATION)) == 2
    assert main.spans(w.CHECKPOINT)
    assert {w.DATA_WAIT, w.FORWARD, w.BACKWARD, w.OPTIMIZER} <= set(parts(main, 5))


def test_transformers_trainer_gives_the_same_losses(tmp_path):
    pytest.importorskip("transformers")
    run(tmp_path, """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
class Words(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, i):
        return {"input_ids": (torch.arange(12) * (i + 1)) % 50, "labels": i % 2}
model = BertForSequenceClassification(BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1,
    num_attention_heads=2, intermediate_size=16, max_position_embeddings=16))
arguments = TrainingArguments("out", max_steps=6, per_device_train_batch_size=4, report_to=[], use_cpu=True,
    disable_tqdm=True, logging_strategy="no", save_strategy="no", seed=5)
print(Trainer(model=model, args=arguments, train_dataset=Words()).train().training_loss.hex())
""", env={"HF_HUB_OFFLINE": "1"})


LIGHTNING = """
import logging, warnings
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning as L
class Task(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = net()
    def training_step(self, batch, _):
        x, y = batch
        loss = loss_of(self.net(x), y)
        print(float(loss.detach()).hex())
        return loss
    def validation_step(self, batch, _):
        x, y = batch
        return loss_of(self.net(x), y)
    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]
trainer = L.Trainer(max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=%s,
                    enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=%d)
trainer.fit(Task(), DataLoader(data(), batch_size=8), DataLoader(data(16), batch_size=8))
"""


@pytest.mark.parametrize("accumulate,expected", [(1, 16), (2, 8)])
def test_lightning(tmp_path, accumulate, expected):
    pytest.importorskip("lightning")
    ring = run(tmp_path, LIGHTNING % (accumulate == 1, accumulate)).main()
    found = steps(ring)
    assert len(found) == expected
    assert len(ring.spans(w.EVALUATION)) == 3  # the sanity check before training is one
    assert sum(max(s["a"], 0) for s in found) == 128  # read one batch ahead: the last step has none
    for step in found[1:]:
        total = parts(ring, step["step"])
        assert sum(total.values()) <= step["duration"]
        assert {w.FORWARD, w.BACKWARD, w.OPTIMIZER} <= set(total)


def torchrun(tmp_path, body, arguments, extra=()):
    """Without and with the hook; returns the outputs and the rings."""
    program = Program(tmp_path, body)
    outputs, rings = [], []
    for hooked in (False, True):
        for left in tmp_path.glob("*.state"):
            left.unlink()
        with tempfile.TemporaryDirectory(prefix="hotlap-rings-") as name:
            ring_dir = pathlib.Path(name) if hooked else None
            command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", *extra,
                       str(program.path), *arguments]
            done = subprocess.run(command, cwd=str(tmp_path), env=environment(ring_dir, {}), capture_output=True,
                                  timeout=900)
            outputs.append((done.returncode, sorted(done.stdout.decode().splitlines())))
            if hooked:
                rings = collect(ring_dir)[0]
    assert outputs[0] == outputs[1], done.stderr.decode()
    return outputs[1], [r for r in rings if r.role == w.ROLE_RANK]


def test_torchrun_with_a_restart(tmp_path):
    (code, lines), rings = torchrun(tmp_path, """
import torch.distributed as dist
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
# A store of its own for each attempt: in torch 2.15 the agent's still names the sockets of the attempt before.
dist.init_process_group("gloo", init_method="file://%s.%d.state" % (os.path.abspath(__file__), attempt), rank=rank, world_size=2)
model = nn.parallel.DistributedDataParallel(net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(DataLoader(data(), batch_size=8)):
    if attempt == 0 and i == 3:
        os._exit(1)
    optimizer.zero_grad()
    loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()
if attempt:
    os.write(1, ("%d %d %s\\n" % (rank, attempt, float(loss.detach()).hex())).encode())
dist.destroy_process_group()
""", (), ["--max-restarts=1"])
    assert code == 0 and len(lines) == 2
    assert sorted((r.attempt, r.rank, len(steps(r))) for r in rings) == [(0, 0, 3), (0, 1, 3), (1, 0, 8), (1, 1, 8)]


@pytest.mark.parametrize("wrap", [
    "from torch.distributed.fsdp import FullyShardedDataParallel\n"
    "model = FullyShardedDataParallel(net(), device_id=torch.device('cpu'))",
    "from torch.distributed.fsdp import fully_shard\nmodel = net()\nfully_shard(model[0])\nfully_shard(model)",
])
def test_fsdp(tmp_path, wrap):
    (code, lines), rings = torchrun(tmp_path, """
import torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(1)
""" + wrap + """
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for x, y in DataLoader(data(), batch_size=8):
    optimizer.zero_grad()
    loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()
    os.write(1, ("%d %s\\n" % (dist.get_rank(), float(loss.detach()).hex())).encode())  # whole lines, from two ranks
dist.destroy_process_group()
""", ())
    assert code == 0 and len(lines) == 16
    assert sorted((r.rank, len(steps(r))) for r in rings) == [(0, 8), (1, 8)]
    for ring in rings:
        assert {f["step"] for f in ring.spans(w.FORWARD)} == set(range(8))
