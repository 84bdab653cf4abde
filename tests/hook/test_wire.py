"""The Python half of the ring against the golden files that the C++ half wrote, and back."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "src"))

from hotlap import _wire as w

GOLDEN = ROOT / "tests" / "golden" / "wire"
PLACE = (2, 3, 1, 4, -1, 0)


def make_ring(path):
    return w.RingWriter(str(path), 4096, 1000, 4711, 123456, 4700, 1_000_000_000, 1_500_000_000,
                        "01J0000000000000000000TEST", PLACE)


def write_plain(ring):
    ring.write(w.pack_process(1_000_000_000, 2, 3, 1, 4, -1, 0, 4711, 4700)
               + w.pack_info(1_000_000_001, "versions", '{"python":"3.11.2","torch":"1.13.1"}')
               + w.pack_phase(1_000_000_002, 2, -1), 3)
    ring.write(w.pack_name(1, "loader") + w.pack_name(2, "na\u00efve \u20ac name")
               + w.pack_span(w.DATA_WAIT, 2_000_000_000, 5_000_000, 4711, 1, 0, 64, 38_535_168)
               + w.pack_count(1, 2_005_000_000, 2.5, 0)
               + w.pack_span(w.STEP, 1_990_000_000, 95_000_000, 4711, 0, 0, 64, -1, w.STEP_BY_OPTIMIZER), 5)
    ring.write(w.pack_phase(2_100_000_000, 5, 0) + w.pack_end(2_200_000_000, 0), 2)
    ring.signed[w.LIVE_PHASE] = 5
    ring.signed[w.LIVE_STEP] = 0
    ring.signed[w.LIVE_STEP_END] = 2_085_000_000
    ring.signed[w.LIVE_OWN_TIME] = 12_345
    ring.words[w.LIVE_CLOSED] = 1


def write_device(ring):
    ring.write(w.pack_name(1, "allocator.allocated.bytes cuda:0") + w.pack_name(2, "all_reduce (gloo, group 0)")
               + w.pack_name(3, "loss")
               + w.pack_count(1, 2_000_000_000, 17_179_869_184.0, -1, w.COUNT_OF_HOOK)
               + w.pack_count(3, 2_000_000_001, 0.25, 0)
               + w.pack_span(w.COLLECTIVE, 2_000_000_100, 1_500_000, 4711, 2, 0, 4096, 41)
               + w.pack_info(2_000_000_200, "communication_unseen", '"DistributedDataParallel"'), 7)
    ring.signed[w.LIVE_GROUP] = 2
    ring.signed[w.LIVE_SEQUENCE] = 42
    ring.words[w.LIVE_SHED] = w.PART_COLLECTIVES | w.PART_DEVICE


def write_wrapped(ring):
    for i in range(40):
        assert ring.write(b"".join(w.pack_span(w.FORWARD, 1000 * i + k, 10, 1, 0, i, -1, -1) for k in range(3)), 3)
        if i % 10 == 9 and i < 39:
            ring.words[w.TAIL] = ring.words[w.HEAD]  # as the reader does


@pytest.mark.parametrize("name,write", [("plain", write_plain), ("wrapped", write_wrapped),
                                        ("device", write_device)])
def test_both_halves_write_the_same_bytes_and_read_the_same_lines(tmp_path, name, write):
    ring = make_ring(tmp_path / "4711-123456.ring")
    write(ring)
    written = pathlib.Path(ring.path).read_bytes()
    golden = GOLDEN / (name + ".bin")
    assert written == golden.read_bytes()
    decoded = w.Ring(str(golden))
    assert decoded.lines() == (GOLDEN / (name + ".txt")).read_text(encoding="utf-8")
    assert decoded.frames_damaged == 0
    assert (decoded.pid, decoded.rank, decoded.run_id) == (4711, 3, "01J0000000000000000000TEST")
    assert (decoded.group, decoded.sequence) == ((2, 42) if name == "device" else (-1, -1))


def test_a_full_ring_drops_and_counts_and_goes_on_when_it_was_read(tmp_path):
    ring = make_ring(tmp_path / "1-2.ring")
    record = w.pack_span(w.FORWARD, 1, 2, 3, 0, 4, -1, -1)
    kept = sum(ring.write(record, 1) for _ in range(200))
    assert kept == 4096 // 72
    assert ring.words[w.LIVE_DROPPED] == 200 - kept
    ring.words[w.TAIL] = ring.words[w.HEAD]
    assert ring.write(record, 1)
    assert len(w.Ring(ring.path).records) == 1


def test_a_tail_that_lies_is_not_believed(tmp_path):
    ring = make_ring(tmp_path / "1-2.ring")
    record = w.pack_span(w.FORWARD, 1, 2, 3, 0, 4, -1, -1)
    while ring.write(record, 1):
        pass
    ring.words[w.TAIL] = 1 << 60
    assert not ring.write(record, 1)


def test_the_file_is_private_and_allocated(tmp_path):
    ring = make_ring(tmp_path / "1-2.ring")
    found = os.stat(ring.path)
    assert found.st_mode & 0o777 == 0o600
    assert found.st_blocks * 512 >= found.st_size
    with pytest.raises(OSError):
        make_ring(tmp_path / "missing" / "1-2.ring")
    assert os.listdir(tmp_path) == ["1-2.ring"]


def test_long_text_is_cut_between_characters():
    record = w.pack_name(1, "\u20ac" * 1000)
    assert len(record) % 8 == 0
    assert w._decode(record)["text"] == "\u20ac" * 341
    assert w.pack_info(0, "key", "x" * 20000) is None
