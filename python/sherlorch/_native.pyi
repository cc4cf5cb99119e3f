"""The native module: thin bindings over libsherlorch. Private; the public API is in the package itself."""

from collections.abc import Callable, Sequence
from typing import Any, overload

import torch

torch_version: str

class UntrackedTensor(KeyError): ...

class Diagnosis:
    """A finished diagnosis: plain data, nothing in it keeps a tensor or a module alive."""

    @property
    def ok(self) -> bool: ...  # no culprits
    @property
    def total_ops(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...  # the parsed form of to_json()
    def to_text(self, *, color: bool = False, width: int = 100, show_source: bool = True) -> str: ...
    def to_json(self, *, indent: int = 2) -> str: ...
    def to_dot(self) -> str: ...
    def to_prov_json(self) -> str: ...
    def to_html(self, *, last_ops: int = 100_000, file_labels: dict[str, str] = ...) -> str:
        """last_ops: how many of the flight recorder's ops go onto it, at most.
        file_labels: What to call files whose names say nothing."""
    def verdict(self) -> str: ...
    @staticmethod
    def from_json(text: str) -> Diagnosis: ...
    def elements(self, seq: int) -> list[tuple[int, int]] | None:
        """Half-open runs of row-major linear indices that are bad in the output of that step; None if not kept."""

class Tracker:
    """A window on the process-wide recorder. Thread-safe. Without arguments: as a user's without any."""

    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(
        self,
        capture_stack: bool,
        check_dtypes: Sequence[torch.dtype] | None,
        scan_everything: bool,
        module_paths: bool,
        sample: float,
        keep_operands: bool,
        eager: bool,
        /,
    ) -> None: ...
    def start(self) -> int:
        """Counted. 0: it has been started before. 1: it has begun to record. 2: the same, and compiled functions stay
        compiled though they should not."""
    def stop(self) -> bool:
        """True if it records no more, False if it has been started more often than stopped."""
    @property
    def active(self) -> bool: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def reset(self) -> None: ...
    @property
    def op_count(self) -> int: ...
    def diagnose(self, tensor: torch.Tensor, index: Sequence[int] | None = None) -> Diagnosis:
        """Raises UntrackedTensor (its message says why) when the trace never saw the tensor."""
    def node_of(self, tensor: torch.Tensor) -> dict[str, Any] | None:
        """The last op seen to write or view these bytes, as a step dict (as in Diagnosis.to_dict()), or None."""
    def bystanders(self, tensor: torch.Tensor, limit: int) -> list[dict[str, Any]]:
        """Steps that made something non-finite which does not reach the tensor, oldest first."""
    def name_modules(self, entries: Sequence[tuple[torch.nn.Module, str]]) -> None: ...
    def name_tensors(self, model: int, entries: Sequence[tuple[torch.Tensor, str, bool]]) -> None:
        """All parameters (False) and buffers (True) that a model has now. They hold from when they were first so."""
    def name_gradients(self, entries: Sequence[tuple[torch.Tensor, str]]) -> None:
        """Names of gradients as they are now. Replaces those given before."""
    def unname_modules(self) -> None:
        """Give no module path to ops from here on, until name_modules()."""
    def add_blind_spot(self, kind: str, count: int, text: str) -> None: ...
    def blind_spots(self) -> list[dict[str, Any]]: ...
    def timeline(self, limit: int) -> list[dict[str, Any]]:
        """The last ops in the flight recorder, oldest first."""
    def to_chrome_trace(self) -> str: ...
    def set_trap(self, callback: Callable[[Diagnosis], None] | None) -> None:
        """Call back on the main thread, right after the op that introduced a non-finite value by accident has returned
        (through Py_AddPendingCall); an exception from the callback is raised on the user's line."""

def set_eager_prepare(prepare: Callable[[], None]) -> None:
    """What is called when the first trace begins; it calls set_dynamo(), or sees to it that this happens."""

def set_dynamo(globals: dict[str, Any], eager: object, active_callback: Callable[[], object]) -> None:
    """From here on the first trace sets `_stance` in these globals, of torch._dynamo.eval_frame, to `eager`, and the
    last one puts the old one back; not where `active_callback` says that something is being compiled."""

def has_issue(tensor: torch.Tensor) -> bool: ...
def write_file(path: str, content: str, overwrite: bool) -> None: ...  # whole or not at all; raises OSError
def set_library_folders(torch: str, own: str, others: Sequence[str]) -> None:
    """Prefixes of the files whose frames are not the user's."""

def set_root_namer(namer: Callable[[torch.nn.Module], object] | None) -> None:
    """Called once for the outermost of the running modules when an unnamed one runs an op."""

def set_thread_namer(namer: Callable[[], str] | None) -> None:
    """Called at the first op of each thread but the main one, for what Python calls that thread."""

def name_module(module: torch.nn.Module, name: str, replace: bool) -> None: ...
def forget_module(address: int) -> None:
    """The module at this address is gone."""

def recorder_facts() -> dict[str, int]: ...
def inject_failures(count: int) -> None:
    """The next ops fail inside of the recorder: for tests."""
