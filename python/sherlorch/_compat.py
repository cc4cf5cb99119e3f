"""What must be known before the native module may be loaded: which torch is here, and which one it was built against.

An extension that links libtorch works with one minor version of torch and crashes the process with
another, so the check reads version numbers from files and loads nothing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_FALLBACK_VERSION = "1.0.0"


def _build_info() -> dict[str, str]:
    """What the build wrote into `_build_info.py` (strings by name); empty in a tree that was never built."""
    try:
        from sherlorch import _build_info as info
    except ImportError:
        return {}
    return {name: value for name, value in vars(info).items() if isinstance(value, str)}


def version() -> str:
    """The version of this package."""
    return _build_info().get("version", _FALLBACK_VERSION)


def built_torch_version() -> str | None:
    """The torch that the native module was built against, e.g. "2.13.0+cpu"; None where it was never built."""
    return _build_info().get("torch_version")


def cmake_prefix_path() -> str:
    """The folder below which CMake's `find_package(sherlorch)` finds the C++ API of this installation."""
    return str(_PACKAGE)


def installed_torch_version() -> str | None:
    """The version of the torch that `import torch` gives here, without importing it; None if there is none."""
    loaded = getattr(sys.modules.get("torch"), "__version__", None)
    if loaded is not None:
        return str(loaded)
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    try:
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return match.group(1) if match else None


def _minor(torch_version: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\d+", torch_version)[:2])


def _rebuild_command() -> str:
    """The command that builds this installation anew, from where it came from."""
    from importlib import metadata

    source = "--no-binary sherlorch sherlorch"
    try:
        direct_url = metadata.distribution("sherlorch").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        direct_url = None
    if direct_url:
        import json

        url = json.loads(direct_url).get("url", "")
        source = url.removeprefix("file://") if url.startswith("file://") else f"'sherlorch @ {url}'"
    return f"{sys.executable} -m pip install --no-cache-dir --force-reinstall --no-deps {source}"


def problem() -> str | None:
    """One sentence on why the native module can't be loaded here, with the command that mends it; None if it can."""
    here = installed_torch_version()
    built = built_torch_version()
    if here is None:
        wanted = f"torch=={re.sub(r'[+].*', '', built)}" if built else "torch"
        return (
            f"sherlorch {version()} needs PyTorch{f' (it was built against torch {built})' if built else ''}, and "
            f"there is no torch in this environment; install it with: {sys.executable} -m pip install {wanted}"
        )
    if built is None:
        return (
            f"sherlorch {version()} at {_PACKAGE} has no native module: it was not built, or not for this Python; "
            f"build it against torch {here} by running this in its source tree: {sys.executable} -m pip install ."
        )
    if _minor(here) != _minor(built):
        return (
            f"sherlorch {version()} was built against torch {built}, but this environment has torch {here}, and a "
            f"native extension works with one minor version of torch only; rebuild it with: {_rebuild_command()}"
        )
    return None


def require_matching_torch() -> None:
    """Check the versions.

    Raises:
        ImportError: There is no torch, no native module, or the module was built against another
            minor version of torch.
    """
    text = problem()
    if text is not None:
        raise ImportError(text, name="sherlorch")


def load_native() -> None:
    """Load torch and the native module.

    Raises:
        ImportError: They don't fit each other, or the module does not load; the message says what to do.
    """
    require_matching_torch()
    import torch  # noqa: F401  (its libraries first)

    try:
        from sherlorch import _native  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"the native module of sherlorch {version()} does not load with torch {installed_torch_version()} "
            f"({error}); rebuild it with: {_rebuild_command()}",
            name="sherlorch",
        ) from error


def is_own_command() -> bool:
    """True if this process is `sherlorch ...` or `python -m sherlorch ...`."""
    words = sys.orig_argv
    if sys.argv[:1] == ["-m"]:  # so it is while runpy imports the package of `python -m`
        return any(words[i : i + 2] == ["-m", "sherlorch"] for i in range(len(words))) or "-msherlorch" in words
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    return name in ("sherlorch", "sherlorch.exe", "sherlorch-script.py")
