#!/usr/bin/env python3
"""Runs clang-tidy over core/, skipping each source that was clean with the same text, headers and checks before.

Usage: tidy.py CLANG_TIDY BUILD_DIR. BUILD_DIR holds the generated sources and gets the cache.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^\s*#\s*include\s*"((?:core|sherlorch)/[^"]+)"', re.MULTILINE)


def reachable(source: Path) -> set[Path]:
    """The source and every header of this project that it includes, directly or not."""
    found: set[Path] = set()
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in found or not path.exists():
            continue
        found.add(path)
        names = INCLUDE.findall(path.read_text(encoding="utf-8"))
        waiting += [ROOT / name if name.startswith("core/") else ROOT / "include" / name for name in names]
    return found


def fingerprint(source: Path, tool: str) -> str:
    """Changes whenever the verdict on the source could."""
    digest = hashlib.sha256(tool.encode())
    for path in [ROOT / ".clang-tidy", *sorted(reachable(source))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main() -> int:
    """Returns 1 where clang-tidy found something."""
    tool, build = sys.argv[1], Path(sys.argv[2])
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    cache = build / "tidy"
    cache.mkdir(parents=True, exist_ok=True)

    # Not those of compile_commands.json, which knows only the joined sources of the unity build.
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow"]
    flags += [f"-I{folder}" for folder in (ROOT, ROOT / "include", build / "generated")]

    def check(source: Path) -> str:
        stamp = cache / fingerprint(source, version)
        if stamp.exists():
            return ""
        command = [tool, "--quiet", str(source), "--", *flags]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            stamp.touch()
            return ""
        return result.stdout or result.stderr

    sources = [path for path in sorted(ROOT.glob("core/**/*.cpp")) if not path.name.endswith("_test.cpp")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(check, sources) if text]
    for text in complaints:
        print(text)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
