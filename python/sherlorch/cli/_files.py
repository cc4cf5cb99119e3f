"""Whether files can be written, asked before the work. Imports no torch."""

from __future__ import annotations

import os
from pathlib import Path


class UnusableOutput(Exception):
    """A file that was asked for can't be written; the message is one sentence for the user."""


def check_writable(path: str, *, force: bool, option: str) -> None:
    """Find out before the work whether a file can be written after it.

    Raises:
        UnusableOutput: It exists and may not be overwritten, or its folder is missing or closed.
    """
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise UnusableOutput(f"{option} {path} is a folder; name a file")
    if target.is_file() and not force:
        raise UnusableOutput(f"{option} {path} exists already; pass --force to overwrite it")
    if not folder.is_dir():
        raise UnusableOutput(f"{option} {path} lies in a folder that does not exist; make {folder}")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise UnusableOutput(f"{option} {path} can't be written: permission denied; choose another")


def seen_from(folder: str, path: str) -> str:
    """A path that was given in `folder`; the program may have gone to another one since, or deleted it."""
    try:
        moved = os.getcwd() != folder
    except FileNotFoundError:
        moved = True
    return os.path.join(folder, path) if moved else path


def free_name(folder: str, stem: str) -> Path:
    """`STEM.json` in that folder, numbered if that or its page is there already."""
    number = 1
    while True:
        path = Path(seen_from(folder, f"{stem}.json" if number == 1 else f"{stem}-{number}.json"))
        if not path.exists() and not path.with_suffix(".html").exists():
            return path
        number += 1
