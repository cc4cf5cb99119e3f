"""Instructions an op of the core's recorder, counted by callgrind: the same on a slow or busy machine.

The ceilings are what g++ 12.2 gave at -O3, and three hundredths more. A change that needs more than that
is a decision: measure it (make bench) and say why in the commit that raises a ceiling. One that needs much less should
lower it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(os.environ.get("SHERLORCH_COUNT_PROBE", ROOT / "build/wheel/tests/counts/count_probe"))

CEILINGS = {"finite": 585, "shadow": 640, "masked": 11_300}  # 569, 622 and 11,116 when they were set

pytestmark = [
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed: apt-get install valgrind"),
    pytest.mark.skipif(not PROBE.exists(), reason=f"{PROBE} is not built: make python-test builds it"),
]


def instructions(kind: str, ops: int) -> int:
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(PROBE), kind, str(ops)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"Collected\s*:\s*(\d+)", ran.stderr)
    assert ran.returncode == 0, ran.stderr
    assert found is not None, ran.stderr
    return int(found.group(1))


@pytest.mark.parametrize("kind", CEILINGS)
def test_an_op_takes_no_more_instructions_than_it_did(kind: str) -> None:
    few, many = 1000, 3000
    an_op = (instructions(kind, many) - instructions(kind, few)) / (many - few)
    assert an_op <= CEILINGS[kind], f"{an_op:.1f} instructions an op"
    assert an_op > CEILINGS[kind] / 2, f"{an_op:.1f} instructions an op: lower the ceiling, or it guards nothing"
