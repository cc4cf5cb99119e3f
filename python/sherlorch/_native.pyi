"""The native module: thin bindings over libsherlorch. Private; the public API is in the package itself."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

torch_version: str

class UntrackedTensor(KeyError): ...

class Diagnosis:
    """A finished diagnosis: plain data, nothing in it keeps a tensor or a module alive."""

    def to_dict(self) -> dict[str, Any]: ...  # the parsed form of to_json()
    def to_text(self, *, color: bool = False, width: int = 100, show_source: bool = True) -> str: ...
    def to_json(self, *, indent: int = 2) -> str: ...
    def to_dot(self) -> str: ...
    def to_html(self) -> str: ...
    @staticmethod
    def from_json(text: str) -> Diagnosis: ...
    def elements(self, seq: int) -> list[tuple[int, int]] | None:
        """Half-open runs of row-major linear indices that are bad in the output of that step; None if not kept."""

class Tracker:
    """A window on the process-wide recorder. Thread-safe."""

    def __init__(
        self,
        *,
        capture_stack: bool = True,
        check_dtypes: Sequence[torch.dtype] | None = None,
        scan_everything: bool = False,
        module_paths: bool = True,
    ) -> None: ...
    def start(self) -> None: ...  # counted: start() twice needs stop() twice
    def stop(self) -> None: ...
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
        """The last op seen to write or view these bytes, as a step dict (like those in Diagnosis.to_dict()), or None."""
    def name_modules(self, entries: Sequence[tuple[torch.nn.Module, str]]) -> None: ...
    def unname_modules(self) -> None:
        """Forget the names, and give no module path to ops from here on."""
    def blind_spots(self) -> list[dict[str, Any]]: ...
    def timeline(self, limit: int) -> list[dict[str, Any]]:
        """The last ops in the flight recorder, oldest first."""
    def to_chrome_trace(self) -> str: ...
    def set_trap(self, callback: Callable[[Diagnosis], None] | None) -> None:
        """Call back on the main thread, right after the op that introduced a non-finite value by accident has returned
        (through Py_AddPendingCall); an exception from the callback is raised on the user's line."""

def has_issue(tensor: torch.Tensor) -> bool: ...
def write_file(path: str, content: str, overwrite: bool) -> None: ...  # whole or not at all; raises OSError
