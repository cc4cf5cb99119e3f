"""Inside a trace, functions that torch.compile has compiled run eagerly, so that every op of them is seen.

That is torch's own switch, `torch.compiler.set_stance("force_eager")`, which also holds for functions compiled before.
The native side turns it, at the begin and the end of each trace (bindings/eager_stance.h). It needs dynamo, whose
import takes seconds; so where dynamo is not imported yet, an import hook waits from the first trace on for the program
to do it.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

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
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not _finder]
        _hand_over()


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


_finder = _DynamoFinder()


def _hand_over() -> None:
    """Give dynamo to the native side, which sets the stance if a trace is there already."""
    from torch._C._dynamo.eval_frame import get_eval_frame_callback
    from torch._dynamo import eval_frame

    _native.set_dynamo(vars(eval_frame), eval_frame.DynamoStance("force_eager"), get_eval_frame_callback)


def prepare() -> None:
    """Hand dynamo over, or wait for it. Called when the first trace begins; more calls do no harm."""
    if _DYNAMO in sys.modules:
        _hand_over()
    elif _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
