"""Every plug-in has what its recipe in CONTRIBUTING.md asks for: a spec named after its file, and its test data."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = {  # folder below src -> (type of the spec, prefix of its symbol, field with its name)
    "collect/plugins": ("CollectorSpec", "collector", "name"),
    "ingest/plugins": ("ImporterSpec", "importer", "name"),
    "analysis/plugins": ("AnalyzerSpec", "analyzer", "id"),
    "rules/plugins": ("RuleSpec", "rule", "id"),
    "report/plugins": ("ExporterSpec", "exporter", "name"),
    "query/plugins": ("TableSpec", "table", "name"),
    "cli/commands": ("CommandSpec", "command", "name"),
}


def plugin_files(folder):
    return sorted(p for p in (ROOT / "src" / folder).glob("*.cpp") if not p.stem.endswith("_test"))


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.replace("PCIe", "PCIE")).lower().replace("-", "_")


ALL = [(folder, path) for folder in KINDS for path in plugin_files(folder)]


def test_there_are_plugins():
    assert len(ALL) >= 10


@pytest.mark.parametrize("folder, path", ALL, ids=[p.stem for _, p in ALL])
def test_the_spec_is_named_after_its_file(folder, path):
    spec, prefix, field = KINDS[folder]
    text = path.read_text(encoding="utf-8")
    declared = re.search(r"extern constinit const %s %s_(\w+)\s*\{" % (spec, prefix), text)
    assert declared, "no `extern constinit const %s %s_%s{…}`" % (spec, prefix, path.stem)
    assert declared[1] == path.stem
    named = re.search(r"\.%s = \"([^\"]+)\"" % field, text[declared.end():])
    assert named, "the spec has no .%s" % field
    assert snake(named[1]).lstrip("_") == path.stem  # an internal command's name starts with an underscore
    assert text.startswith("//"), "a plug-in's first line says what it is"


def documented_metrics(collector):
    """From the reference, which is compared with the specs."""
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    section = re.search(r"^## %s$(.*?)(?=^## |\Z)" % re.escape(collector), text, re.S | re.M)
    return re.findall(r"^\| `([^`]+)`", section[1], re.M) if section else []


def metrics_with_a_value():
    """Those that a machine below tests/hosts shows with a value and not only as missing: "name [instance]  5  -"."""
    shown = set()
    for path in (ROOT / "tests" / "hosts").rglob("expected*"):
        for line in path.read_text(encoding="utf-8").splitlines():
            name, *values = re.split(r"  +", line)
            if any(value != "-" and not value.startswith("(") for value in values):
                shown.add(name.split(" ")[0])
    return shown


@pytest.mark.parametrize("collector", [p.stem for p in plugin_files("collect/plugins")])
def test_a_fake_machine_shows_every_metric(collector):
    metrics = documented_metrics(collector)
    assert metrics, "docs/reference/metrics.md has no section '%s'" % collector
    unseen = sorted(set(metrics) - metrics_with_a_value())
    assert not unseen, "no machine below tests/hosts has a value of %s" % ", ".join(unseen)


@pytest.mark.parametrize("path", plugin_files("cli/commands"), ids=lambda p: p.stem)
def test_a_command_has_a_scenario(path):
    text = path.read_text(encoding="utf-8")
    if ".is_hidden = true" in text:
        pytest.skip("an internal process of ours, covered by the commands that start it")
    name = re.search(r"CommandSpec command_\w+\s*\{[^}]*?\.name = \"([^\"]+)\"", text, re.S)[1]
    cases = [p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("cmd")]
    cases += [p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py")]
    used = [c for c in cases if re.search(r"hotlap %s\b|[\"']%s[\"']" % (name, name), c)]
    assert used, "no scenario below tests/cases runs `hotlap %s`" % name


def rule_id(path):
    return re.search(r"\.id = \"(\w+)\"", path.read_text(encoding="utf-8"))[1]


@pytest.mark.parametrize("path", plugin_files("rules/plugins"), ids=lambda p: p.stem)
@pytest.mark.parametrize("kind", ["fires", "near-miss", "missing-data"])
def test_a_rule_fires_passes_a_near_miss_and_says_what_is_missing(path, kind):
    cases = sorted((ROOT / "tests" / "cases" / "rules" / rule_id(path)).glob(kind + "*/facts.json"))
    assert cases, "no case tests/cases/rules/%s/%s*" % (rule_id(path), kind)
    assert all((case.parent / "expected.json").is_file() for case in cases)


@pytest.mark.parametrize("path", plugin_files("ingest/plugins"), ids=lambda p: p.stem)
def test_an_importer_has_a_seed_to_fuzz_from(path):
    seeds = [p for p in (ROOT / "fuzz" / "corpus").rglob("*") if p.is_file() and path.stem in p.as_posix()]
    assert seeds, "no file below fuzz/corpus has %s in its name" % path.stem
