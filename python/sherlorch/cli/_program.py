"""Runs somebody's program as `python script.py` or `python -m module` would: __main__, sys.argv, sys.path[0]."""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import pkgutil
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from sherlorch.cli._parser import ProgramWords


class NoProgram(Exception):
    """There is nothing to run under that name; the message is one sentence for the user."""


class Program:
    """One program, found but not run yet.

    Raises:
        NoProgram: There is no such script or module.
    """

    def __init__(self, words: ProgramWords) -> None:
        self._words = words
        self.main: ModuleType | None = None
        if words.is_module:
            _check_module(words.target)
        else:
            _check_script(words.target)

    @property
    def name(self) -> str:
        """A short name, for messages and file names: "train" of "exp/train.py", "package.module"."""
        if self._words.is_module:
            return self._words.target
        return os.path.splitext(os.path.basename(os.path.normpath(self._words.target)))[0]

    @property
    def label(self) -> str:
        """What the user called it."""
        return self._words.target

    def run(self) -> None:
        """Run it in a fresh __main__.

        Raises:
            NoProgram: There is no such module.
            BaseException: What the program itself raised, SystemExit and KeyboardInterrupt too.
        """
        target = self._words.target
        sys.argv = [target, *self._words.args]
        if self._words.is_module:
            _set_path0(os.getcwd())
            spec = _find_module(target)
            sys.argv[0] = spec.origin or target
            self._run_spec(spec)
        elif os.path.isdir(target) or _is_archive(target):
            place = os.path.abspath(target)
            _set_path0(place, always=True)
            importer = pkgutil.get_importer(place)
            inner = importer.find_spec("__main__") if importer is not None else None
            if inner is None:
                raise NoProgram(f"{target!r} has no __main__.py in it; name the script")
            self._run_spec(inner)
        else:
            path = os.path.abspath(target)
            _set_path0(os.path.dirname(os.path.realpath(target)))
            main = self._fresh_main()
            main.__dict__.update(
                __file__=path,
                __cached__=None,
                __loader__=SourceFileLoader("__main__", path),
                __package__=None,
                __spec__=None,
            )
            with io.open_code(path) as file:
                source = file.read()
            exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)

    def _run_spec(self, spec: ModuleSpec) -> None:
        code: CodeType | None = spec.loader.get_code(spec.name) if spec.loader else None  # type: ignore[attr-defined]
        if code is None:
            raise NoProgram(f"the module {spec.name!r} has no Python code to run")
        main = self._fresh_main()
        main.__dict__.update(
            __file__=spec.origin,
            __cached__=spec.cached,
            __loader__=spec.loader,
            __package__=spec.parent,
            __spec__=spec,
        )
        exec(code, main.__dict__)

    def _fresh_main(self) -> ModuleType:
        self.main = ModuleType("__main__")
        self.main.__dict__.update(__builtins__=builtins, __annotations__={})
        # It stays there: threads and exit handlers of the program outlive its last line.
        sys.modules["__main__"] = self.main
        return self.main


def _check_module(name: str) -> None:
    """Look for it as far as that goes without importing the packages above it: that is the program's own work."""
    if name.startswith("."):
        raise NoProgram(f"{name!r} is a relative module name; give the full one")
    # Where it will be looked for: here, and not where this command lies.
    places = [os.getcwd(), *(sys.path if sys.flags.safe_path else sys.path[1:])]
    top = name.partition(".")[0]
    if top not in sys.builtin_module_names and PathFinder.find_spec(top, places) is None:
        raise _no_module(name)


def _no_module(name: str) -> NoProgram:
    return NoProgram(f"there is no module {name!r} on sys.path; check the name and where you are")


def _check_script(path: str) -> None:
    if not os.path.exists(path):
        hint = ""
        if not path.endswith(".py") and "/" not in path:
            hint = f" (to run a module: sherlorch run -m {path})"
        raise NoProgram(f"there is no file {path!r} in {os.getcwd()}; check the name{hint}")
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "__main__.py")):
        raise NoProgram(f"{path!r} is a folder without a __main__.py; name the script in it")
    if not os.access(path, os.R_OK):
        raise NoProgram(f"can't read {path!r}: permission denied; check its permissions")


def _is_archive(path: str) -> bool:
    import zipfile

    return zipfile.is_zipfile(path)


def _set_path0(folder: str, *, always: bool = False) -> None:
    # With -P or PYTHONSAFEPATH Python puts nothing there, and so neither do we.
    if not sys.flags.safe_path:
        sys.path[0:1] = [folder]
    elif always:
        sys.path.insert(0, folder)


def _find_module(name: str) -> ModuleSpec:
    spec = None
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # A package above it that is not there; one that is there and fails to import is the
        # program's own trouble.
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise
    except ValueError as error:
        raise NoProgram(f"can't run the module {name!r}: {error}") from None
    if spec is None:
        raise _no_module(name)
    if spec.submodule_search_locations is not None:
        if name == "__main__" or name.endswith(".__main__"):
            raise NoProgram("can't run a package as a __main__ module")
        inner = importlib.util.find_spec(f"{name}.__main__")
        if inner is None:
            raise NoProgram(f"{name!r} is a package without a __main__ module; name a module in it")
        return inner
    return spec
