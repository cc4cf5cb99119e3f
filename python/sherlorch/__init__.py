"""sherlorch names the operation that first put a NaN or an infinity into a PyTorch computation.

    import sherlorch

    with sherlorch.trace() as tracker:
        loss = criterion(model(x), y)
        loss.backward()

    if tracker.has_issue(loss):
        print(tracker.diagnose(loss))

What stands in `__all__` is the public interface; every module whose name starts with an underscore
is private.

Importing the package checks that the torch in use is the one that it was built against, and raises
ImportError if it is not. Where torch is already imported, the native module is loaded at once (a
few milliseconds); where it is not, both are loaded when first needed, so that `sherlorch --help`
and the pytest plugin do not pay for torch.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sherlorch import _compat
from sherlorch._errors import NonFiniteError, UntrackedTensorError

if TYPE_CHECKING:
    from sherlorch._nodes import Culprit, OpNode
    from sherlorch._report import DiagnosisReport
    from sherlorch._tracker import ProvenanceTracker, trace, trap
    from sherlorch._trap import allow

__all__ = [
    "Culprit",
    "DiagnosisReport",
    "NonFiniteError",
    "OpNode",
    "ProvenanceTracker",
    "UntrackedTensorError",
    "allow",
    "cmake_prefix_path",
    "load_ipython_extension",
    "trace",
    "trap",
]

__version__: str = _compat.version()

#: Give this to CMake as `CMAKE_PREFIX_PATH` (beside torch's own) so that `find_package(sherlorch)`
#: finds the C++ API.
cmake_prefix_path: str = _compat.cmake_prefix_path()

_HOMES = {
    "Culprit": "_nodes",
    "DiagnosisReport": "_report",
    "OpNode": "_nodes",
    "ProvenanceTracker": "_tracker",
    "allow": "_trap",
    "trace": "_tracker",
    "trap": "_tracker",
}


def load_ipython_extension(ipython: Any) -> None:
    """Register the `%%sherlorch` cell magic; called by `%load_ext sherlorch`."""
    from sherlorch.integrations.notebook import load_ipython_extension as load

    load(ipython)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'sherlorch' has no attribute {name!r}")
    _compat.load_native()
    value = getattr(import_module(f"sherlorch.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# The command line says itself what is wrong, without a traceback (and `sherlorch doctor` must run
# in a broken environment).
if not _compat.is_own_command():
    _compat.require_matching_torch()
    if "torch" in sys.modules:
        for _name in _HOMES:
            __getattr__(_name)
        del _name
