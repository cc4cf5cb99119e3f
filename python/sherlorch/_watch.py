"""Names for modules: what `tracker.watch(model)` registers, and the names of models that nobody watches.

The module that runs an op is found natively, so a watched model costs nothing per module call. One
forward pre-hook on the root walks the tree of submodules (about 0.1 microseconds each) and
registers the names anew if it has changed.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from sherlorch import _native
from sherlorch._trap import completes, keeps_traps_waiting

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle


def qualified_names(model: torch.nn.Module, name: str) -> list[tuple[torch.nn.Module, str]]:
    """Each module below `model` with its qualified name; the first name in named_modules() wins for shared ones."""
    entries = []
    for path, module in model.named_modules():
        plain = _plain(path)
        entries.append((module, f"{name}.{plain}" if plain else name))
    return entries


def _plain(path: str) -> str:
    # torch.compile(model) wraps the model in one more module, whose name for it nobody wrote.
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


def _shape_of(model: torch.nn.Module) -> list[object]:
    """Something that differs if a submodule is added, removed, renamed or replaced."""
    seen: list[object] = []
    stack: list[torch.nn.Module | None] = [model]
    while stack:
        module = stack.pop()
        seen.append(id(module))
        if module is not None and module._modules:
            seen.extend(module._modules.keys())
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

    def __init__(self, model: torch.nn.Module, name: str, rename: Callable[[], None], *, compiled: bool) -> None:
        self.name = name
        self._model = weakref.ref(model)
        self._shape = _shape_of(model)
        _roots.add(self)
        self._rename = rename
        hook = _idle_hook if compiled else _NameHook(self)
        self._handle: RemovableHandle | None = None
        # TorchScript allows no hooks from outside; nor can its modules be replaced.
        if not isinstance(model, torch.jit.ScriptModule):
            self._handle = model.register_forward_pre_hook(hook)

    @completes
    def refresh(self, module: torch.nn.Module) -> None:
        """Register the names anew if the model's tree of modules has changed. Never raises."""
        try:
            if module is not self._model():
                return
            shape = _shape_of(module)
            if shape != self._shape:
                self._shape = shape
                self._rename()
        except Exception:
            # The user's forward must run, whatever we fail to name.
            logging.getLogger("sherlorch").warning(
                "could not name the modules of %r anew after it had changed", self.name, exc_info=True
            )

    def modules(self) -> list[tuple[torch.nn.Module, str]]:
        """Its modules now, with their names; none if the model is gone."""
        model = self._model()
        return [] if model is None else qualified_names(model, self.name)

    def tensors(self) -> list[tuple[torch.Tensor, str, bool]] | None:
        """Its parameters and buffers now, with their names, and whether it is a buffer; None if the model is gone."""
        model = self._model()
        if model is None:
            return None
        prefix = self.name
        return [
            *((tensor, f"{prefix}.{_plain(path)}", False) for path, tensor in model.named_parameters()),
            *((tensor, f"{prefix}.{_plain(path)}", True) for path, tensor in model.named_buffers()),
        ]

    def watches(self, module: torch.nn.Module) -> bool:
        """True if this is the model."""
        return self._model() is module

    def gradients(self) -> list[tuple[torch.Tensor, str]]:
        """The gradients that its parameters have now, as the user would write them."""
        model = self._model()
        parameters = () if model is None else model.named_parameters()
        return [
            (parameter.grad, f"{self.name}.{_plain(path)}.grad")
            for path, parameter in parameters
            if parameter.grad is not None
        ]

    def release(self) -> None:
        """Take the hook off the model."""
        if self._handle is not None:
            self._handle.remove()
        _roots.discard(self)


# The models that are watched now, for parts of them that appear while they run.
_roots: weakref.WeakSet[Watched] = weakref.WeakSet()


def name_all(native: _native.Tracker, watched: Sequence[Watched]) -> None:
    """Register the names of the modules of all watched models with the native tracker."""
    entries = [entry for model in watched for entry in model.modules()]
    for module, _ in entries:
        _forget_when_gone(module)
    native.name_modules(entries)


def name_tensors(native: _native.Tracker, watched: Sequence[Watched]) -> None:
    """Register the names of their parameters and buffers as they are now. What is gone keeps the names that it had."""
    for number, model in enumerate(watched):
        tensors = model.tensors()
        if tensors is not None:
            native.name_tensors(number, tensors)


def name_gradients(native: _native.Tracker, watched: Iterable[Watched]) -> None:
    """Register the names of the gradients that there are now."""
    native.name_gradients([entry for model in watched for entry in model.gradients()])


# The native side knows a module by its address, so it is told when the module there is gone.
_living: dict[int, weakref.ref[torch.nn.Module]] = {}


def _forget_when_gone(module: torch.nn.Module) -> None:
    address = id(module)
    known = _living.get(address)
    if known is not None and known() is module:
        return

    def gone(reference: weakref.ref[torch.nn.Module]) -> None:
        if _living.get(address) is reference:
            del _living[address]
        _native.forget_module(address)

    _living[address] = weakref.ref(module, gone)


@keeps_traps_waiting
def name_unwatched(root: torch.nn.Module) -> None:
    """Name the tree below a module in which an unnamed one runs, by the class of its root if nobody watches that.

    Called natively, once a module.
    """
    watched = (each.name for each in list(_roots) if each.watches(root))
    for module, name in qualified_names(root, next(watched, type(root).__name__)):
        _forget_when_gone(module)
        _native.name_module(module, name, False)


@keeps_traps_waiting
def thread_name() -> str:
    """What Python calls this thread; empty for one that Python did not start. Called natively, once a thread."""
    # Not current_thread(), which would make up a thread object for one that has none.
    thread = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
    return "" if thread is None else str(thread.name)


def install() -> None:
    """Tell the native side whose frames are not the user's, and how to name what nobody watches."""
    folders = [os.path.dirname(os.path.abspath(file)) + os.sep for file in (torch.__file__, __file__, os.__file__)]
    _native.set_library_folders(folders[0], folders[1], folders[2:])
    _native.set_root_namer(name_unwatched)
    _native.set_thread_namer(thread_name)


install()
