"""Cells of a notebook: the file name that Python has for one says nothing to who wrote it."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def cell_labels(files: Iterable[str]) -> dict[str, str]:
    """What to call the files that are code of cells of the running notebook or IPython shell: `In[3]`.

    Cost: nothing where IPython is not loaded.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    if name_of is None:
        return {}
    named = ((file, name_of(file)) for file in files)
    return {file: str(name[1]) for file, name in named if name}
