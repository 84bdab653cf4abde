"""The whole program with a libnvidia-ml.so.1 of ours, in a mount namespace whose /dev has NVIDIA's control node."""

import os
import pathlib
import subprocess

import pytest

HOTLAP = pathlib.Path(os.environ["HOTLAP"])
FAKE = HOTLAP.parent / "fake_nvml" / "current"

# /dev of the namespace: the nodes that programs need, and one more.
INSIDE = """set -e
mount -t tmpfs none "$1"
for node in null zero full random urandom; do touch "$1/$node"; mount --bind /dev/$node "$1/$node"; done
mkdir "$1/shm"; mount --bind /dev/shm "$1/shm"
touch "$1/nvidiactl"
mount --rbind "$1" /dev
shift
exec "$@"
"""


def inside(folder: pathlib.Path, *command: str) -> subprocess.CompletedProcess[str]:
    dev = folder / "dev"
    dev.mkdir(exist_ok=True)
    script = folder / "gpus"
    script.write_text("gpu 0-1 like h100\ngpu 1 mig 1 busy na controller na\ngpu 1/0 like mig-1g.10gb\n")
    environment = {
        **os.environ,
        "FAKE_NVML_SCRIPT": str(script),
        "LD_LIBRARY_PATH": str(FAKE),
        "HOTLAP_HOME": str(folder / "home"),
        "CUDA_VISIBLE_DEVICES": "0",
    }
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", INSIDE, "sh", str(dev), *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(autouse=True)
def needs_namespaces(tmp_path: pathlib.Path) -> None:
    if inside(tmp_path, "test", "-e", "/dev/nvidiactl").returncode != 0:
        pytest.skip("no mount namespaces for this user")


def test_a_run_on_gpus_records_them_and_leaves_the_job_alone(tmp_path: pathlib.Path) -> None:
    run = inside(tmp_path, str(HOTLAP), "run", "--quiet", "--no-hook", "--", "sh", "-c", "sleep 6; exit 7")
    assert run.returncode == 7, run.stderr
    rows = inside(tmp_path, str(HOTLAP), "export", "last", "--format", "csv").stdout.splitlines()
    values: dict[tuple[str, str], set[str]] = {}
    for row in rows[1:]:
        _, metric, instance, value = row.split(",")[:4]
        values.setdefault((metric, instance), set()).add(value)
    assert values["gpu.busy.percent", "gpu0"] == {"100"}
    assert values["gpu.busy.percent", "gpu1"] == {""}, "a GPU that is split: missing, not 0"
    assert "93.5" in values["gpu.sm_active.percent", "gpu0"]
    assert values["gpu.memory.total.bytes", "gpu1/mig0"] == {str(9984 << 20)}
    shown = inside(tmp_path, str(HOTLAP), "show", "last").stdout
    assert "gpu_found" in shown and "NVIDIA H100 80GB HBM3" in shown


def test_doctor_lists_them(tmp_path: pathlib.Path) -> None:
    said = inside(tmp_path, str(HOTLAP), "doctor", "--no-python").stdout
    assert "NVIDIA H100 80GB HBM3, 79.6 GiB" in said
    assert "split into MIG instances" in said
