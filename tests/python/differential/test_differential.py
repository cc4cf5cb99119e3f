"""Random programs: sherlorch and an oracle that runs each op in plain torch blame the same lines."""

from __future__ import annotations

import os

import pytest

from .generator import generate
from .oracle import Oracle
from .program import Program, Step
from .run import run_many

PROGRAMS = int(os.environ.get("SHERLORCH_DIFFERENTIAL_PROGRAMS", "20000"))
SEED = int(os.environ.get("SHERLORCH_DIFFERENTIAL_SEED", "0"))


@pytest.mark.slow
def test_random_programs() -> None:
    tally = run_many(PROGRAMS, SEED, jobs=min(4, os.cpu_count() or 1), most=5)
    assert not tally.disagreements, "\n\n".join(tally.disagreements) + f"\n{tally}"
    assert tally.programs >= PROGRAMS * 0.99, str(tally)
    assert sum(tally.skipped.values()) <= PROGRAMS * 0.01, str(tally)
    assert tally.blamed >= tally.programs, f"too few faults reach a target: {tally}"


def test_a_seed_is_a_program() -> None:
    assert generate(7).source() == generate(7).source()
    assert generate(7).source() != generate(8).source()


def program(*steps: Step) -> Program:
    return Program([(step,) for step in steps])


def blamed(made: Program, name: str) -> set[int]:
    oracle = Oracle()
    oracle.run(made)
    return oracle.culprits(oracle.env[name])[0]


ZEROS = Step("x = torch.zeros(3)", ("x",))
LOG = Step("x[1].log_()", writes=("x[1]",), reads=("x",), skeletons=("x[1] + 0",))


def test_the_oracle_blames_the_op_that_introduced() -> None:
    double = Step("y = x * 2.0", ("y",), reads=("x",), skeletons=("x + 0",))
    made = program(ZEROS, LOG, double, Step("z = y[2:]", ("z",), reads=("y",)))
    assert blamed(made, "x") == {2}
    assert blamed(made, "y") == {2}
    assert blamed(made, "z") == set()


def test_the_oracle_sees_a_repair_through_a_view() -> None:
    made = program(ZEROS, LOG, Step("v = x[1:]", ("v",), reads=("x",)), Step("v.zero_()", writes=("v",)))
    assert blamed(made, "x") == set()


def test_an_infinity_that_was_asked_for_is_innocent_until_it_changes() -> None:
    fill = Step("x = torch.full([2], -inf)", ("x",), literal=True)
    same = Step("y = x + 1.0", ("y",), reads=("x",), skeletons=("x + 0",))
    other = Step("z = y - y", ("z",), reads=("y",), skeletons=("y + y",))
    made = program(fill, same, other)
    assert blamed(made, "y") == set()
    assert blamed(made, "z") == {3}
