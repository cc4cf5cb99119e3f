"""The places where a program's values come out, watched while it runs and put back as they were after.

Nothing of the user's is touched: torch's own entry points are, and torch's global optimizer hooks.
What is watched: the tensor on which backward is called, gradients once they are accumulated,
parameters once an optimizer has written them, and values passed to .item() or float(). Cost: a scan
of each, at memory speed, and a walk over the autograd graph for its leaves.
"""

from __future__ import annotations

import cmath
import functools
import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

# check(what, tensor, leaf): `what` has a {} for what to call the leaf, where there is one.
Check = Callable[[str, torch.Tensor, torch.Tensor | None], None]


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for item in value:
            if isinstance(item, torch.Tensor):
                yield item


def leaves_of(roots: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The leaf tensors into which backward from these roots accumulates gradients."""
    leaves: list[torch.Tensor] = []
    seen: set[Any] = set()
    stack: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
    leaves += [root for root in roots if root.is_leaf and root.requires_grad]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        following = node.next_functions
        if not following:
            leaf = getattr(node, "variable", None)
            if leaf is not None:
                leaves.append(leaf)
        stack.extend(edge[0] for edge in following)
    return leaves


def leaf_name(tensor: torch.Tensor) -> str:
    """What to call a parameter: by its qualified name in the outermost module that holds it, else by its shape.

    Cost: a walk over all objects of the process; only for a tensor that is going to be reported.
    """
    names: list[str] = [
        name
        for module in gc.get_objects()
        if issubclass(type(module), torch.nn.Module)  # isinstance would run code of lazy objects
        for name, parameter in module.named_parameters()
        if parameter is tensor
    ]
    if names:
        return f"parameter {max(names, key=len)}"
    kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "tensor"
    return f"a {kind} of shape {tuple(tensor.shape)}"


class Sinks:
    """A context manager: inside, `check(what, tensor)` is called for each value that reaches a sink.

    `check` may raise to stop the program there.
    """

    def __init__(self, check: Check, is_bad: Callable[[torch.Tensor], bool]) -> None:
        self._check = check
        self._is_bad = is_bad
        self._undo = ExitStack()
        # A scaled loss overflows now and then by design: the scaler sees it and skips that step.
        self.scaled = False

    def __enter__(self) -> Sinks:
        self._replace(torch.autograd, "backward", self._backward)
        self._replace(torch.Tensor, "item", self._number("passed to .item()"))
        self._replace(torch.Tensor, "__float__", self._number("passed to float()"))
        self._replace(torch.amp.GradScaler, "scale", self._scale)
        for handle in (
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ):
            self._undo.callback(handle.remove)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._undo.close()

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        own = name in vars(owner)
        replacement = make(original)
        setattr(owner, name, replacement)

        def restore() -> None:
            if vars(owner).get(name) is not replacement:
                return  # the program has put something else there
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)

        self._undo.callback(restore)

    def _report(self, what: str, tensor: torch.Tensor) -> None:
        if self._is_bad(tensor):
            self._check(what, tensor, None)

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            roots = list(_tensors(tensors))
            if not self.scaled:
                for root in roots:
                    self._report("the tensor on which backward was called", root)
            inputs = kwargs.get("inputs")
            leaves = list(_tensors(inputs)) if inputs is not None else leaves_of(roots)
            result = original(tensors, *args, **kwargs)
            if not self.scaled:
                self._check_gradients(leaves, "after backward")
            return result

        return backward

    def _number(self, how: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def number(tensor: torch.Tensor) -> Any:
                value = original(tensor)
                if isinstance(value, (float, complex)) and not cmath.isfinite(value):
                    self._report(f"the value {how}", tensor)
                return value

            return number

        return make

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def scale(scaler: Any, outputs: Any) -> Any:
            if scaler.is_enabled():
                self.scaled = True
                for output in _tensors(outputs):
                    self._report("the loss given to GradScaler.scale", output)
            return original(scaler, outputs)

        return scale

    def _check_gradients(self, leaves: Iterable[torch.Tensor], when: str) -> None:
        for leaf in leaves:
            gradient = leaf.grad
            if gradient is not None and self._is_bad(gradient):
                self._check(f"the gradient of {{}} {when}", gradient, leaf)

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        # A fused optimizer is called with the overflow and told of it.
        if getattr(optimizer, "found_inf", None) is None:
            name = type(optimizer).__name__
            self._check_gradients(_parameters(optimizer), f"before {name}.step")

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for parameter in _parameters(optimizer):
            if self._is_bad(parameter):
                self._check(f"{{}} after {type(optimizer).__name__}.step", parameter, parameter)


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]
