"""Names for modules: what `tracker.watch(model)` registers, and how it notices that the model was changed.

The module that runs an op is found natively, so a watched model costs nothing per module call. One
forward pre-hook on the root walks the tree of submodules (about 0.1 microseconds each) and
registers the names anew if it has changed.
"""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING, Any

import torch

from sherlorch._trap import completes

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from sherlorch import _native


def qualified_names(model: torch.nn.Module, name: str) -> list[tuple[torch.nn.Module, str]]:
    """Each module below `model` with its qualified name; the first name in named_modules() wins for shared ones."""
    entries = []
    for path, module in model.named_modules():
        # torch.compile(model) wraps the model in one more module, whose name for it nobody wrote.
        parts = [part for part in path.split(".") if part and part != "_orig_mod"]
        entries.append((module, ".".join([name, *parts])))
    return entries


def _shape_of(model: torch.nn.Module) -> list[object]:
    """Something that differs if a submodule is added, removed, renamed or replaced."""
    seen: list[object] = []
    stack: list[torch.nn.Module | None] = [model]
    while stack:
        module = stack.pop()
        seen.append(id(module))
        if module is not None and module._modules:
            seen.extend(module._modules)
            stack.extend(module._modules.values())
    return seen


class _LeftBehind:
    """The hook of a deep copy of a watched model: takes itself off when the copy is first called."""

    def __call__(self, module: torch.nn.Module, args: Any) -> None:
        for key, hook in list(module._forward_pre_hooks.items()):
            if hook is self:
                del module._forward_pre_hooks[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled_hook()


def _pickled_hook() -> tuple[Any, ...]:
    # A pickle of a watched model must load where sherlorch is not installed, so the hook goes into
    # it as a builtin that takes (module, args) and gives the args back: the `get` of an empty
    # dictionary.
    return getattr, ({}, "get")


class _NameHook:
    """The forward pre-hook on a watched root."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def __call__(self, module: torch.nn.Module, args: Any) -> None:
        self._watched.refresh(module)

    def __deepcopy__(self, memo: dict[int, Any]) -> _LeftBehind:
        return _LeftBehind()

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled_hook()


def _idle_hook(module: torch.nn.Module, args: Any) -> None:
    """The hook where the compiler may trace through it: nothing that could break the graph."""


class Watched:
    """One watched model: holds it weakly, and its hook until `release`."""

    def __init__(self, native: _native.Tracker, model: torch.nn.Module, name: str, *, compiled: bool) -> None:
        self._native = native
        self._name = name
        self._model = weakref.ref(model)
        self._shape = _shape_of(model)
        native.name_modules(qualified_names(model, name))
        hook = _idle_hook if compiled else _NameHook(self)
        self._handle: RemovableHandle = model.register_forward_pre_hook(hook)

    @completes
    def refresh(self, module: torch.nn.Module) -> None:
        """Register the names anew if the model's tree of modules has changed. Never raises."""
        try:
            if module is not self._model():
                return
            shape = _shape_of(module)
            if shape != self._shape:
                self._shape = shape
                self._native.name_modules(qualified_names(module, self._name))
        except Exception:
            # The user's forward must run, whatever we fail to name.
            logging.getLogger("sherlorch").warning(
                "could not name the modules of %r anew after it had changed",
                self._name,
                exc_info=True,
            )

    def release(self) -> None:
        """Take the hook off the model."""
        self._handle.remove()
