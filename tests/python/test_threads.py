"""Ops of any thread are seen, nothing deadlocks, and threads do not mix their histories."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import sherlorch
import torch


def _work(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    good = torch.ones(8) * number
    bad = torch.zeros(8)
    for step in range(50):
        good = good + 1
        bad = torch.log(bad * 0) if step % 10 == 0 else bad + 1
    weight = torch.zeros(4, requires_grad=True)
    torch.sqrt(weight).sum().backward()
    assert weight.grad is not None
    return bad, weight.grad


def test_threads_record_side_by_side_and_each_finds_its_own_culprit() -> None:
    with sherlorch.trace() as tracker, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(_work, range(32)))
    for bad, grad in results:
        (culprit,) = tracker.diagnose(bad).culprits
        assert culprit.op_name == "log"
        (culprit,) = tracker.diagnose(grad).culprits
        assert culprit.op_name == "SqrtBackward0"
        assert culprit.phase == "backward"


def test_asking_while_others_record_does_not_hang() -> None:
    stop = threading.Event()
    with sherlorch.trace() as tracker:
        bad = torch.log(torch.zeros(4))

        def noise() -> None:
            while not stop.is_set():
                _work(1)

        threads = [threading.Thread(target=noise, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(50):
                assert tracker.diagnose(bad).culprits[0].op_name == "log"
                assert tracker.has_issue(bad)
                tracker._get_node(bad)
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
        assert not any(thread.is_alive() for thread in threads)


def test_a_named_thread_is_named_in_the_report() -> None:
    box: list[torch.Tensor] = []
    with sherlorch.trace() as tracker:
        thread = threading.Thread(target=lambda: box.append(torch.log(torch.zeros(2))), name="loader")
        thread.start()
        thread.join()
    assert "on thread loader" in str(tracker.diagnose(box[0]))


def test_a_fork_inside_a_trace_works_in_parent_and_child() -> None:
    with sherlorch.trace() as tracker:
        bad = torch.log(torch.zeros(2))
        pid = os.fork()
        if pid == 0:  # the child: both record and ask, then leave without pytest
            try:
                worse = bad + 1
                code = 0 if tracker.diagnose(worse).culprits[0].op_name == "log" else 3
            except BaseException:
                code = 4
            os._exit(code)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert tracker.diagnose(bad + 1).culprits[0].op_name == "log"


def test_two_trackers_at_once_each_see_everything() -> None:
    with sherlorch.trace() as outer:
        before = torch.log(torch.zeros(2))
        with sherlorch.trace() as inner:
            inside = before + 1
            fresh = torch.sqrt(-torch.ones(2))
        after = inside * 2
    assert outer.diagnose(after).culprits[0].op_name == "log"
    assert inner.diagnose(fresh).culprits[0].op_name == "sqrt"
    (culprit,) = inner.diagnose(inside).culprits
    assert culprit.op_name == "add"  # to the inner trace, what came before it is an input
    assert culprit.origin == "input"
