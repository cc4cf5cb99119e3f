"""`sherlorch run`: an unchanged program, its sinks, and that it behaves as without us."""

# ruff: noqa: PT012 (what is tested is which statement of the block raises)
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import sherlorch
from conftest import Run


def _write(folder: Path, source: str, name: str = "prog.py") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))


_SINKS = {
    "loss": (
        """
        import torch
        x = torch.zeros(2, requires_grad=True)
        loss = x.log().sum()          # guilty
        print("before")
        loss.backward()
        print("after")
        """,
        "the tensor on which backward was called",
        "log",
    ),
    "gradient": (
        """
        import torch
        x = torch.zeros(2, requires_grad=True)
        y = x.sqrt() * 0              # guilty
        print("before")
        y.sum().backward()
        print("after")
        """,
        "the gradient of a tensor of shape (2,) after backward",
        None,
    ),
    "named gradient": (
        """
        import torch
        net = torch.nn.Linear(2, 2)
        y = net(torch.ones(1, 2))
        z = (y - y).sqrt() * 0        # guilty
        print("before")
        z.sum().backward()
        print("after")
        """,
        "the gradient of parameter ",
        None,
    ),
    "parameter": (
        """
        import torch
        w = torch.nn.Parameter(torch.ones(2) * 3e38)
        opt = torch.optim.SGD([w], lr=3.0)
        w.grad = -torch.ones(2) * 3e38
        print("before")
        opt.step()                    # guilty
        print("after")
        """,
        "a parameter of shape (2,) after SGD.step",
        None,
    ),
    "item": (
        """
        import torch
        x = torch.zeros(2)
        ratio = x.sum() / x.mean()    # guilty
        print("before")
        ratio.item()
        print("after")
        """,
        "the value passed to .item()",
        "div",
    ),
    "float": (
        """
        import torch
        x = torch.zeros(2)
        ratio = x.sum() / x.mean()    # guilty
        print("before")
        print("%f" % ratio)
        """,
        "the value passed to float()",
        "div",
    ),
    "what main leaves": (
        """
        import torch
        x = torch.zeros(2)
        outputs = {"y": [x.log()]}    # guilty
        print("before")
        """,
        "outputs['y'][0]",
        "log",
    ),
    "uncaught exception": (
        """
        import torch
        def check(t):
            y = t.log()               # guilty
            print("before")
            raise ValueError("bad values")
        check(torch.zeros(2))
        """,
        "y in check()",
        "log",
    ),
}


@pytest.mark.parametrize("sink", _SINKS)
def test_the_first_bad_value_at_a_sink_is_explained_and_ends_the_program(
    command: Run, tmp_path: Path, sink: str
) -> None:
    source, what, op = _SINKS[sink]
    _write(tmp_path, source)
    line = next(number for number, text in enumerate(textwrap.dedent(source).splitlines(), 1) if "# guilty" in text)
    ran = command("run", "--json", "--output", "out.json", "prog.py")
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout == "before\n"
    assert f"sherlorch: {what}" in ran.stderr
    assert "is non-finite" in ran.stderr
    data = json.loads((tmp_path / "out.json").read_text())
    culprit = data["culprits"][0]["step"]
    assert (Path(culprit["location"]["file"]).name, culprit["location"]["line"]) == ("prog.py", line)
    if op is not None:
        assert culprit["op_name"] == op
    assert json.loads((tmp_path / "sherlorch-prog.json").read_text()) == data
    assert (tmp_path / "sherlorch-prog.html").exists()
    assert ran.stderr.splitlines().count("sherlorch: Wrote sherlorch-prog.html") == 1
    if sink == "uncaught exception":
        assert "ValueError: bad values" in ran.stderr


def test_the_result_goes_to_stdout_by_default_and_kept_reports_are_numbered(command: Run, tmp_path: Path) -> None:
    _write(tmp_path, _SINKS["loss"][0])
    for number in ("", "-2"):
        ran = command("run", "prog.py")
        assert ran.returncode == 1
        assert ran.stdout.startswith("before\n")
        assert "log" in ran.stdout
        assert (tmp_path / f"sherlorch-prog{number}.json").exists()
    shown = command("show", "sherlorch-prog.json")
    assert ran.stdout.removeprefix("before\n") == shown.stdout
    ran = command("run", "--no-report", "--report", "mine.json", "prog.py")
    assert not (tmp_path / "mine.json").exists()
    command("run", "--report", "mine.json", "prog.py")
    assert (tmp_path / "mine.json").exists()
    assert (tmp_path / "mine.html").exists()


def test_keep_going_reports_once_and_lets_the_program_end(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import torch
        for step in range(3):
            x = torch.zeros(2, requires_grad=True)
            x.log().sum().backward()
        print("after")
        """,
    )
    ran = command("run", "--keep-going", "--no-report", "prog.py")
    assert ran.returncode == 1
    assert ran.stdout.endswith("after\n")
    assert ran.stdout.count("Culprit #1") == 1
    assert "more values at sinks were non-finite" in ran.stderr


def test_a_clean_program_is_as_without_us(command: Run, python: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import atexit, sys, torch
        import helper
        @atexit.register
        def bye(): print("bye", sys.modules["__main__"].__dict__["late"])
        late = 5
        print(sys.argv, __name__, __file__, __package__, __spec__, sys.path[0], type(__loader__).__name__)
        print(sorted(name for name in globals() if name.startswith("__")))
        class C: pass
        import pickle
        print(pickle.loads(pickle.dumps(C())).__class__ is C, C.__module__)
        net = torch.nn.Linear(2, 1)
        opt = torch.optim.Adam(net.parameters())
        for _ in range(3):
            net(torch.ones(4, 2)).square().mean().backward()
            opt.step()
        print(sys.stdin.read(), file=sys.stderr)
        if __name__ == "__main__":
            print("main", helper.value)
        """,
    )
    _write(tmp_path, "value = 3\n", "helper.py")
    plain = python("prog.py", "-x", "--json", "run")
    ours = command("run", "prog.py", "-x", "--json", "run")
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, plain.stdout, plain.stderr)
    assert ours.stdout.endswith("bye 5\n")
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != "") == ["helper.py", "prog.py"]


def test_a_module_a_package_a_folder_and_an_archive_run_as_python_runs_them(
    command: Run, python: Run, tmp_path: Path
) -> None:
    source = "import sys\nprint(sys.argv[1:], __name__, __package__, __spec__ and __spec__.name, sys.path[0])\n"
    source += "print(__file__)\n"
    _write(tmp_path, source, "package/__main__.py")
    _write(tmp_path, source, "package/tool.py")
    _write(tmp_path, "", "package/__init__.py")
    import zipfile

    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", source)
    for words in (["-m", "package"], ["-m", "package.tool", "-m"], ["package", "a"], ["app.zip"], ["-mpackage.tool"]):
        plain = python(*words)
        ours = command("run", *words)
        assert (ours.returncode, ours.stdout, ours.stderr) == (0, plain.stdout, plain.stderr), words


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("raise SystemExit(7)", 7),
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit('no good')", 1),
        ("import os; os._exit(9)", 9),
        ("1 / 0", 3),
        ("def f(:", 3),
        ("import no_such_thing", 3),
    ],
)
def test_a_program_that_ends_by_itself_ends_as_ever(
    command: Run, python: Run, tmp_path: Path, source: str, status: int
) -> None:
    _write(tmp_path, source)
    plain = python("prog.py")
    ours = command("run", "prog.py")
    assert ours.returncode == status
    assert ours.stdout == plain.stdout
    extra = "sherlorch: prog.py failed by itself; nothing non-finite was found\n" if status == 3 else ""
    assert ours.stderr == plain.stderr + extra


def test_the_programs_own_excepthook_is_called(command: Run, tmp_path: Path) -> None:
    _write(tmp_path, "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__)\n1/0\n")
    ran = command("run", "prog.py")
    assert (ran.returncode, ran.stdout) == (3, "hooked ZeroDivisionError\n")


def test_it_can_not_be_swallowed_by_except_exception(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import torch
        for _ in range(2):
            try:
                torch.zeros(1).log().item()
                print("after")
            except Exception:
                print("swallowed")
            finally:
                print("cleaned up")
        """,
    )
    ran = command("run", "--output", "out.txt", "prog.py")
    assert (ran.returncode, ran.stdout) == (1, "cleaned up\n")


def test_what_is_hooked_is_put_back() -> None:
    import torch
    from sherlorch.cli._sinks import Sinks
    from torch.optim import optimizer

    def state() -> list[object]:
        return [
            torch.autograd.backward,
            "item" in vars(torch.Tensor),
            torch.Tensor.item,
            torch.amp.GradScaler.scale,
            dict(optimizer._global_optimizer_pre_hooks),
            dict(optimizer._global_optimizer_post_hooks),
        ]

    before = state()
    with pytest.raises(KeyError), Sinks(lambda what, tensor, parameter: None, lambda tensor: False):
        assert state() != before
        raise KeyError
    assert state() == before


def test_leaves_of_finds_the_leaves_of_a_graph() -> None:
    import torch
    from sherlorch.cli._sinks import leaves_of

    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
    unused = torch.ones(1, requires_grad=True)
    out = net(torch.ones(1, 2))
    for _ in range(3000):
        out = out + 1  # deeper than Python recurses
    found = {id(leaf) for leaf in leaves_of([out])}
    assert found == {id(parameter) for parameter in net.parameters()}
    assert id(unused) not in found


def test_a_step_that_a_grad_scaler_skips_is_no_finding(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import torch
        w = torch.nn.Parameter(torch.ones(2))
        opt = torch.optim.SGD([w], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
        for _ in range(30):
            opt.zero_grad()
            loss = (w * 1e4).square().sum()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        print(torch.isfinite(w).all().item(), scaler.get_scale() < 2.0**120)
        """,
    )
    ran = command("run", "prog.py")
    assert (ran.returncode, ran.stdout) == (0, "True True\n"), ran.stderr


def test_deliberate_infinities_and_ignored_ops_are_no_findings(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import torch, sherlorch
        best = torch.tensor(float("inf"))
        print(best.item())
        with sherlorch.allow(inf=True):
            torch.zeros(1).log().item()
        torch.full((1,), -1.0).sqrt().item()
        """,
    )
    ran = command("run", "--ignore", "sqrt", "prog.py")
    assert (ran.returncode, ran.stdout) == (0, "inf\n"), ran.stderr


def test_the_debugger_opens_at_the_guilty_frame(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import torch
        def attention(scores):
            secret = 42
            weights = scores.log()
            return weights
        attention(torch.zeros(2))
        print("after")
        """,
    )
    words = [sys.executable, "-m", "sherlorch", "run", "--pdb", "--no-report", "prog.py"]

    def debug(commands: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=tmp_path, input=commands, capture_output=True, text=True, timeout=120, check=False
        )

    ran = debug("p secret + 1\nw\nc\n")
    assert "(Pdb) 43" in ran.stderr
    assert "weights = scores.log()" in ran.stderr
    assert ran.stdout.endswith("after\n")
    assert ran.returncode == 1
    ran = debug("q\n")
    assert "after" not in ran.stdout
    assert ran.returncode == 1


def _interrupt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    ready = folder / "ready"
    deadline = time.monotonic() + 120
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    ready.unlink()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def test_ctrl_c_explains_what_the_program_was_working_on(tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import time, torch
        def work():
            state = torch.zeros(2).log()
            open("ready", "w").close()
            time.sleep(60)
        work()
        """,
    )
    ran = _interrupt(tmp_path, "-m", "sherlorch", "run", "--no-report", "prog.py")
    assert ran.returncode == 1, ran.stderr
    assert "state in work() is non-finite" in ran.stderr
    assert "log" in ran.stdout
    assert "KeyboardInterrupt" in ran.stderr


def test_ctrl_c_in_a_clean_program_ends_it_by_the_signal(tmp_path: Path) -> None:
    _write(tmp_path, "import time, torch\nopen('ready', 'w').close()\ntime.sleep(60)\n")
    plain = _interrupt(tmp_path, "prog.py")
    ours = _interrupt(tmp_path, "-m", "sherlorch", "run", "prog.py")
    assert ours.returncode == plain.returncode == -signal.SIGINT
    assert ours.stdout == plain.stdout
    assert ours.stderr == plain.stderr


def test_a_signal_handler_of_the_program_is_its_own(tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import signal, sys, time
        def stop(*_):
            print("stopping")
            sys.exit(5)
        signal.signal(signal.SIGTERM, stop)
        open("ready", "w").close()
        time.sleep(60)
        """,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "sherlorch", "run", "prog.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    while not (tmp_path / "ready").exists():
        time.sleep(0.05)
        assert process.poll() is None
    process.terminate()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (5, "stopping\n")


def test_forked_children_are_left_alone(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import os, torch
        pid = os.fork()
        if pid == 0:
            torch.zeros(1).log().item()
            os._exit(6)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    )
    ran = command("run", "prog.py")
    assert (ran.returncode, ran.stdout) == (0, "6\n"), ran.stderr


def test_a_sink_in_another_thread_stops_the_program_too(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import threading, time, torch
        def work():
            torch.zeros(1).log().item()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        time.sleep(5)
        print("after")
        """,
    )
    ran = command("run", "--output", "out.txt", "prog.py")
    assert (ran.returncode, ran.stdout) == (1, ""), ran.stderr


def test_a_thread_that_dies_is_looked_at_and_the_program_goes_on(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import threading, torch
        def work():
            scores = torch.zeros(1).log()
            raise ValueError("bad scores")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        print("after", threading.excepthook)
        """,
    )
    ran = command("run", "--output", "out.txt", "--no-report", "prog.py")
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.startswith("after ")
    assert "sherlorch: scores in work() is non-finite" in ran.stderr
    assert "ValueError: bad scores" in ran.stderr
    assert "prog.py:4" in (tmp_path / "out.txt").read_text()


def test_files_go_where_they_were_asked_for_also_if_the_program_moves(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import os, tempfile, torch
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
        torch.zeros(1).log().item()
        """,
    )
    for words in (["--output", "out.txt"], ["--report", "mine.json"]):
        ran = command("run", *words, "prog.py")
        assert ran.returncode == 1, ran.stderr
        assert "could not" not in ran.stderr
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"prog.py", "out.txt", "sherlorch-prog.json", "sherlorch-prog.html", "mine.json", "mine.html"}


@pytest.mark.parametrize("how", ["sys.stdout.close()", "sys.stdout = None", "sys.stderr.close()"])
def test_a_program_without_stdout_or_stderr_still_gets_its_files(command: Run, tmp_path: Path, how: str) -> None:
    _write(tmp_path, f"import sys, torch\n{how}\ntorch.zeros(1).log().item()\n")
    ran = command("run", "prog.py")
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert (tmp_path / "sherlorch-prog.html").exists()
    if how == "sys.stdout.close()":
        assert "could not write the diagnosis" in ran.stderr
    else:
        assert "Culprit #1" in ran.stdout


def test_the_stack_in_the_report_is_the_programs_own(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import torch
        def step():
            return torch.zeros(1).log()
        step().item()
        """,
    )
    ran = command("run", "--json", "--no-report", "prog.py")
    stack = json.loads(ran.stdout)["culprits"][0]["stack"]
    assert [(Path(frame["file"]).name, frame["function"]) for frame in stack] == [
        ("prog.py", "<module>"),
        ("prog.py", "step"),
    ]


def test_a_value_without_history_is_a_finding_that_says_so(command: Run, tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
        import torch, sherlorch
        from sherlorch._tracker import ProvenanceTracker
        value = torch.frombuffer(bytearray(b"\\x00\\x00\\xc0\\x7f"), dtype=torch.float32)
        value.item()
        """,
    )
    ran = command("run", "--no-report", "prog.py")
    assert ran.returncode == 1
    assert "the value passed to .item() is non-finite" in ran.stderr


def test_the_report_that_run_keeps_is_the_one_that_python_reads(command: Run, tmp_path: Path) -> None:
    _write(tmp_path, _SINKS["loss"][0])
    command("run", "prog.py")
    report = sherlorch.DiagnosisReport.from_json((tmp_path / "sherlorch-prog.json").read_text())
    assert report.culprits[0].op_name == "log"
    assert os.path.basename(report.culprits[0].location or "") == "prog.py:4"
