"""Every file that Python can write of a trace: what is in it, that it appears whole or not at all, and what is said."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import sherlorch
import torch
from conftest import ROOT, run_python
from torch import nn

Write = Callable[..., object]
EXPORTS = ["to_json", "to_dot", "to_prov_json", "to_html", "to_chrome_trace"]


@pytest.fixture(scope="module")
def traced() -> tuple[sherlorch.ProvenanceTracker, sherlorch.DiagnosisReport]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with sherlorch.trace() as tracker:
        tracker.watch(model, "net")
        loss = model(torch.randn(3, 4)).log().sum()
        loss.backward()
    return tracker, tracker.diagnose(loss)


@pytest.fixture(params=EXPORTS)
def write(request: pytest.FixtureRequest, traced: tuple[object, object]) -> Write:
    return next(getattr(each, request.param) for each in traced if hasattr(each, request.param))  # type: ignore[no-any-return]


def test_a_file_appears_whole_and_alone(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path)
    content = path.read_text(encoding="utf-8")
    assert content.endswith("\n")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write(path)
    assert path.read_text(encoding="utf-8") == content
    write(path, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("nowhere/out", "there is no folder .*nowhere; create it or choose another path"),
        ("file/out", "is not a folder; choose another path"),
        (".", "it is a folder; add a file name"),
        ("x" * 300, "the name is too long; choose a shorter one"),
        ("/dev/full", "the disk is full; free some space or choose a path on another disk"),
    ],
)
def test_a_path_that_cannot_be_written_is_a_sentence_and_leaves_nothing(
    write: Write, tmp_path: Path, name: str, advice: str
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match=f"^Cannot write .*: .*{advice}\\.$"):
        write(tmp_path / name, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_leaves_the_old_file(traced: tuple[object, sherlorch.DiagnosisReport], tmp_path: Path) -> None:
    """With a limit on the size of files, which strikes in the middle of writing as a full disk does."""
    path = tmp_path / "page.html"
    path.write_text("the old one")
    program = (
        "import resource, signal, sys; from sherlorch import _native\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: _native.write_file(sys.argv[1], 'x' * 100_000, True)\n"
        "except OSError as error: sys.exit(str(error))"
    )
    ran = run_python("-c", program, str(path), cwd=tmp_path)
    assert ran.returncode == 1
    assert "Cannot write" in ran.stderr
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_json_of_a_live_trace_is_as_its_schema_says(traced: tuple[object, sherlorch.DiagnosisReport]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "report-schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(traced[1].to_json()))
    assert traced[1].to_dict() == json.loads(traced[1].to_json())


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_dot_is_drawn_by_graphviz(traced: tuple[object, sherlorch.DiagnosisReport]) -> None:
    ran = subprocess.run(["dot", "-Tsvg"], input=traced[1].to_dot(), capture_output=True, text=True, check=True)
    assert "] log<" in ran.stdout


def test_prov_json_names_only_what_it_declares(traced: tuple[object, sherlorch.DiagnosisReport]) -> None:
    report = traced[1]
    prov = json.loads(report.to_prov_json())
    assert set(prov) == {"prefix", "entity", "activity", "wasGeneratedBy", "used", "wasDerivedFrom"}
    for section, ends in {
        "wasGeneratedBy": {"prov:entity": "entity", "prov:activity": "activity"},
        "used": {"prov:activity": "activity", "prov:entity": "entity"},
        "wasDerivedFrom": {"prov:generatedEntity": "entity", "prov:usedEntity": "entity"},
    }.items():
        for relation in prov[section].values():
            for key, kind in ends.items():
                assert relation[key] in prov[kind]
    made = {relation["prov:entity"] for relation in prov["wasGeneratedBy"].values()}
    for culprit in report.culprits:
        activity = prov["activity"][f"sherlorch:op{culprit.seq}"]
        assert activity["sherlorch:role"] == "culprit"
        assert activity["prov:label"] == culprit.op_name
        for node in report.paths[culprit.seq]:
            assert f"sherlorch:tensor{node.seq}" in made


@pytest.mark.skipif(importlib.util.find_spec("prov") is None, reason="the prov package is not installed")
def test_prov_json_is_read_by_the_prov_package(traced: tuple[object, sherlorch.DiagnosisReport]) -> None:
    from prov.model import ProvDocument

    document = ProvDocument.deserialize(content=traced[1].to_prov_json(), format="json")
    assert len(list(document.get_records())) > 5


def test_chrome_trace_has_every_op_its_line_and_the_first_bad_one(
    traced: tuple[sherlorch.ProvenanceTracker, sherlorch.DiagnosisReport],
) -> None:
    tracker, report = traced
    events = json.loads(tracker.to_chrome_trace())["traceEvents"]
    assert all({"name", "ph", "pid", "tid", "ts"} <= set(event) for event in events)
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == tracker.op_count
    starts = [event["ts"] for event in slices]
    assert starts == sorted(starts)
    bad = [event for event in slices if event["args"]["nonfinite"]]
    assert bad[0]["name"] == "log"
    assert any(event["ph"] == "i" and event["name"] == "first non-finite op: log" for event in events)
    backward = [event for event in slices if event["cat"].startswith("backward") and "module" in event["args"]]
    assert {event["args"]["module"] for event in backward} >= {"net.0", "net.1"}
    lines = [event["args"].get("location", "") for event in backward]
    assert any(line.startswith(__file__) for line in lines), lines
    assert report.culprits
