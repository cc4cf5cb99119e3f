"""What `ignore=[...]` lets pass. Imports neither torch nor the native module."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from sherlorch._nodes import OpNode


@dataclass(frozen=True)
class _Rule:
    """One entry of `ignore`, taken apart."""

    kind: str  # "op", "module" or "file"
    pattern: str
    line: int | None = None

    def matches(self, node: OpNode) -> bool:
        if self.kind == "op":
            full = str(node.extra.get("operator_name", ""))
            names = (node.op_name, full, full.partition(".")[0])
            return any(fnmatch.fnmatchcase(name, self.pattern) for name in names if name)
        if self.kind == "module":
            return fnmatch.fnmatchcase(node.module_path or "", self.pattern)
        file, _, line = (node.location or "").rpartition(":")
        if not file or (self.line is not None and str(self.line) != line):
            return False
        return any(
            fnmatch.fnmatchcase(name, self.pattern) for name in (file, os.path.basename(file), os.path.relpath(file))
        )


class Suppressions:
    """What `ignore=[...]` lets pass.

    An entry is an operator ("aten::log", "log", "aten::_foreach_*"), a module ("module:encoder.*")
    or a file ("file:*/legacy/*.py", "file:train.py:27"); `*`, `?` and `[...]` match as in file
    names.

    Raises:
        TypeError: `ignore` is one string, or an entry is not a string.
        ValueError: An entry is empty or begins with an unknown word and a colon.
    """

    def __init__(self, ignore: Iterable[str] = ()) -> None:
        if isinstance(ignore, str):
            raise TypeError(f"ignore={ignore!r} is one string; pass a list: ignore=[{ignore!r}]")
        self.rules = tuple(_parse(entry) for entry in ignore)

    def cover(self, node: OpNode) -> bool:
        """True if an entry matches this op."""
        return any(rule.matches(node) for rule in self.rules)


def _parse(entry: object) -> _Rule:
    if not isinstance(entry, str):
        raise TypeError(
            f"ignore has an entry {entry!r} of type {type(entry).__name__}; entries are strings like "
            "'aten::log', 'module:encoder.*' or 'file:*/legacy/*.py'"
        )
    prefix = re.match(r"(\w+):(?!:)", entry)
    kind, pattern = (prefix.group(1), entry[prefix.end() :]) if prefix else ("op", entry)
    if kind not in ("op", "module", "file") or not pattern:
        raise ValueError(
            f"ignore has an entry {entry!r} that names nothing; write an operator like 'aten::log', "
            "'module:' and a pattern, or 'file:' and a pattern"
        )
    line = re.fullmatch(r"(.+):(\d+)", pattern) if kind == "file" else None
    if line:
        return _Rule(kind, line.group(1), int(line.group(2)))
    return _Rule(kind, pattern)
