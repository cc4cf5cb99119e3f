"""Inside a trace, functions that torch.compile has compiled run eagerly, so that every op of them is seen.

That is torch's own switch, `torch.compiler.set_stance("force_eager")`, which also holds for
functions compiled before. It needs dynamo, whose import takes seconds; so where dynamo is not
imported yet, an import hook waits for the program to do it and sets the stance then. The hook stays
until dynamo comes, because traces are often short and many; so long the native side counts the traces
(Tracker.start() and stop()), and nothing here is called.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

import torch

from sherlorch import _native

_DYNAMO = "torch._dynamo"


class _NotifyingLoader(importlib.machinery.SourceFileLoader):
    """Loads dynamo as ever, and says so when it is there."""

    def __init__(self, original: importlib.machinery.SourceFileLoader) -> None:
        super().__init__(original.name, original.path)
        self._original = original

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._original
        if module.__spec__ is not None:
            module.__spec__.loader = self._original
        self._original.exec_module(module)
        _state.dynamo_arrived()


class _DynamoFinder(MetaPathFinder):
    """Stands first on sys.meta_path from the first trace until dynamo is imported; knows no other module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _DYNAMO:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _NotifyingLoader(spec.loader)
        return spec


class _State:
    """Process-wide, as the stance is: the first trace that wants it sets it, the last one puts the old one back."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0
        self._stance: Any = None
        self._finder: _DynamoFinder | None = None

    def enter(self) -> bool:
        with self._lock:
            if self._finder is not None:  # another thread has begun to wait in the meantime
                _native.count_waiting(1)
                return True
            self._users += 1
            if self._users == 1:
                if _DYNAMO in sys.modules:
                    self._set()
                else:
                    self._finder = _DynamoFinder()
                    sys.meta_path.insert(0, self._finder)
                    _native.begin_waiting(self._users)
                    self._users = 0
            return self._stance is not None or self._finder is not None

    def leave(self) -> None:
        with self._lock:
            if self._finder is not None:
                _native.count_waiting(-1)
                return
            self._users -= 1
            if self._users > 0 or self._stance is None:
                return
            stance, self._stance = self._stance, None
            if self._is_current(stance):
                stance.__exit__(None, None, None)

    def dynamo_arrived(self) -> None:
        with self._lock:
            self._drop_finder()
            self._users += _native.end_waiting()
            if self._users > 0 and self._stance is None:
                self._set()

    def _set(self) -> None:
        # torch refuses where the trace begins inside of a compiled function.
        with contextlib.suppress(RuntimeError):
            self._stance = torch.compiler.set_stance("force_eager")

    def _drop_finder(self) -> None:
        if self._finder is not None and self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._finder = None

    @staticmethod
    def _is_current(stance: Any) -> bool:
        # If the program has set another stance meanwhile, that one stays.
        frames = sys.modules.get("torch._dynamo.eval_frame")
        return getattr(frames, "_stance", stance.stance) is stance.stance


_state = _State()


def enter() -> bool:
    """From here on, compiled functions run eagerly. Counted: needs as many `leave`.

    Returns:
        False if they stay compiled, because this was called inside of one.
    """
    return _state.enter()


def leave() -> None:
    """Undo one `enter`."""
    _state.leave()
