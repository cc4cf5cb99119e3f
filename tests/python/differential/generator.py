"""Random programs: small tensors, many views, writes through every alias, and now and then a fault.

`generate(seed)` gives the same program for the same seed. Every step has run in plain torch while the program grew, so
what is handed out runs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from .oracle import Oracle, addresses, is_values
from .program import Line, Program, Step

SHAPES = ((3,), (4,), (2, 3), (3, 2), (3, 3), (2, 2), (3, 1), (1, 3), (2, 2, 3), (2, 3, 2))
UNARY = [
    "sqrt",
    "log",
    "exp",
    "reciprocal",
    "rsqrt",
    "neg",
    "abs",
    "relu",
    "sigmoid",
    "tanh",
    "square",
    "log1p",
    "expm1",
    "sin",
    "log2",
    "atan",
    "clone",
    "erf",
    "softsign",
    "floor",
]
UNARY_IN_PLACE = [
    "sqrt_",
    "log_",
    "exp_",
    "reciprocal_",
    "rsqrt_",
    "neg_",
    "abs_",
    "relu_",
    "tanh_",
    "square_",
    "log1p_",
    "sigmoid_",
    "floor_",
]
BINARY = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "torch.maximum({a}, {b})", "torch.pow({a}, {b})")
BINARY += ("torch.atan2({a}, {b})", "torch.fmod({a}, {b})", "torch.add({a}, {b}, alpha=2.0)", "torch.hypot({a}, {b})")
BINARY_IN_PLACE = ("add_", "sub_", "mul_", "div_", "pow_", "copysign_")
NUMBERS = ("0.0", "1.0", "2.0", "-1.0", "0.5", "3.0", "1e30")
DIVISORS = ("2.0", "-1.0", "0.5", "1.0", "3.0", "0.0")
REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "logsumexp", "var")
INFINITIES = ("inf", "-inf", "-inf", "inf", "nan")


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    size = max(len(a), len(b))
    left, right = (1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b
    if any(x != y and 1 not in (x, y) for x, y in zip(left, right, strict=True)):
        return None
    return tuple(y if x == 1 else x for x, y in zip(left, right, strict=True))


@dataclass
class Options:
    literals: float = 0.25  # the share of programs with infinities and NaN that were asked for
    uninitialized: float = 0.1  # the share with memory that nobody has written
    clean: float = 0.1  # the share with no fault on purpose
    shortest: int = 5
    longest: int = 15


class Gone(Exception):
    """There is nothing in this program that the op could take."""


@dataclass
class Generator:
    rng: random.Random
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        self.oracle = Oracle()
        self.count = 0
        self.with_literals = self.rng.random() < self.options.literals
        self.with_unwritten = self.rng.random() < self.options.uninitialized
        self.clean = self.rng.random() < self.options.clean

    # What there is to take.

    def new(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def names(self, wanted: Callable[[torch.Tensor], bool]) -> list[str]:
        return [name for name, value in self.oracle.env.items() if is_values(value) and wanted(value)]

    def pick(self, wanted: Callable[[torch.Tensor], bool] = lambda _: True) -> str:
        found = self.names(lambda t: t.numel() > 0 and wanted(t))
        if not found:
            raise Gone
        # The younger, the likelier: chains get long.
        return found[-1 - min(int(self.rng.expovariate(0.4)), len(found) - 1)]

    def target(self, wanted: Callable[[torch.Tensor], bool] = lambda _: True) -> str:
        """Memory to write: no two elements at one address."""
        return self.pick(lambda t: wanted(t) and len(set(addresses(t))) == t.numel())

    def value(self, name: str) -> torch.Tensor:
        value: torch.Tensor = self.oracle.env[name]
        return value

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.value(name).shape)

    def dim(self, name: str) -> int:
        dims = self.value(name).dim()
        if dims == 0:
            raise Gone
        return self.rng.randrange(-dims, dims)

    def like(self, name: str, *, same: bool = False, writes: bool = False) -> str:
        """Another tensor that can be broadcast to this one, or with it."""
        shape, mine = self.shape(name), set(addresses(self.value(name)))

        def fits(t: torch.Tensor) -> bool:
            if t.dtype != self.value(name).dtype:
                return False
            other = tuple(t.shape)
            if same and other != shape:
                return False
            both = broadcast(shape, other)
            if both is None or (writes and both != shape):
                return False
            if not writes:
                return torch.Size(both).numel() <= 24
            if addresses(t) == addresses(self.value(name)):
                return True
            return not mine & set(addresses(t))  # else the result hangs on the order of the loop

        return self.pick(fits)

    def number(self, divisor: bool = False) -> str:
        return self.rng.choice(DIVISORS if divisor else NUMBERS)

    def index(self, name: str) -> str:
        return ", ".join(str(self.rng.randrange(size)) for size in self.shape(name))

    def fill_value(self) -> tuple[str, bool]:
        """A number to fill with."""
        if self.with_literals and self.chance(0.4):
            return self.rng.choice(INFINITIES), True
        return self.number(), False

    def mask(self, shape: tuple[int, ...]) -> str:
        bits = [self.rng.random() < 0.5 for _ in range(torch.Size(shape).numel())]
        return f"torch.tensor({bits}).view({list(shape)})"

    def indices(self, size: int, count: int | None = None, distinct: bool = False) -> str:
        count = count if count is not None else self.rng.randint(1, 3)
        if distinct:
            return f"torch.tensor({self.rng.sample(range(size), min(count, size))})"
        return f"torch.tensor({[self.rng.randrange(size) for _ in range(count)]})"

    # Families of ops. Each gives a line.

    def allocate(self) -> Line:
        name, shape = self.new(), self.rng.choice(SHAPES)
        size = torch.Size(shape).numel()
        which = self.rng.randrange(6)
        if which == 0:
            return (Step(f"{name} = torch.zeros({list(shape)})", (name,)),)
        if which == 1:
            return (Step(f"{name} = torch.ones({list(shape)})", (name,)),)
        if which == 2:
            value, literal = self.fill_value()
            return (Step(f"{name} = torch.full({list(shape)}, {value})", (name,), literal=literal),)
        if which == 3:
            if self.with_unwritten and self.chance(0.7):
                return (Step(f"{name} = torch.empty({list(shape)})", (name,), unwritten=True),)
            return (Step(f"{name} = torch.arange({size}.0).view({list(shape)})", (name,)),)
        numbers = [self.rng.choice((-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0)) for _ in range(size)]
        text, literal = str(numbers), False
        if self.with_literals and self.chance(0.3):
            text = text.replace("3.0", self.rng.choice(INFINITIES)).replace("- inf", "-inf")
            literal = "inf" in text or "nan" in text
        step = Step(
            f"{name} = torch.tensor({text}).view({list(shape)})", (name,), literal=literal, unwritten="nan" in text
        )
        return (step,)

    def view(self) -> Line:
        x = self.pick(lambda t: t.dim() > 0)
        shape, name, d = self.shape(x), self.new(), self.dim(x)
        size, dims = shape[d], len(shape)
        which = self.rng.randrange(16)
        two = False
        if which == 0:
            text = f"{x}.select({d}, {self.rng.randrange(size)})"
        elif which == 1:
            a = self.rng.randrange(size)
            text = f"{x}.narrow({d}, {a}, {self.rng.randint(1, size - a)})"
        elif which == 2:
            text = f"{x}.transpose({d}, {self.dim(x)})"
        elif which == 3:
            text = f"{x}.view(-1)"
        elif which == 4:
            t = self.value(x)
            sizes = [self.rng.randint(1, 3) for _ in range(self.rng.randint(1, 2))]
            strides = [self.rng.randint(1, 3) for _ in sizes]
            room = t.untyped_storage().nbytes() // t.element_size()
            reach = sum((s - 1) * step for s, step in zip(sizes, strides, strict=True))
            if reach >= room:
                raise Gone
            text = f"{x}.as_strided({sizes}, {strides}, {self.rng.randrange(room - reach)})"
        elif which == 5:
            if size < 2:
                raise Gone
            two, text = True, f"{x}.chunk(2, {d})"
        elif which == 6:
            if size < 2:
                raise Gone
            two, text = True, f"{x}.split([1, {size - 1}], {d})"
        elif which == 7:
            if size != 2:
                raise Gone
            two, text = True, f"{x}.unbind({d})"
        elif which == 8:
            if dims < 2:
                raise Gone
            text = f"{x}.diagonal()"
        elif which == 9:
            text = f"{x}.expand({[2, *shape]})"
        elif which == 10:
            text = f"{x}.data"
        elif which == 11:
            text = f"{x}.detach()"
        elif which == 12:
            text = f"{x}[::2]"
        elif which == 13:
            text = f"{x}.unsqueeze({d})"
        elif which == 14:
            text = f"{x}.unfold({d}, {self.rng.randint(1, size)}, 1)"
        else:
            text = f"{x}.view_as({x})"
        if two:
            other = self.new()
            return (Step(f"{name}, {other} = {text}", (name, other), reads=(x,)),)
        return (Step(f"{name} = {text}", (name,), reads=(x,)),)

    def alias(self) -> Line:
        x, name = self.pick(), self.new()
        text = self.rng.choice((f"{x}.data", f"{x}.detach()", f"{x}.view(-1)", f"{x}", f"{x}.t()", f"{x}.squeeze()"))
        return (Step(f"{name} = {text}", (name,), reads=(x,)),)

    def unary(self) -> Line:
        x, name = self.pick(), self.new()
        if self.chance(0.2):
            text = self.rng.choice(
                (
                    f"{x} ** {self.number()}",
                    f"{x} / {self.number(True)}",
                    f"{x} * {self.number()}",
                    f"{x} + {self.number()}",
                    f"1.0 / {x}",
                    f"{x}.clamp(-1.0, 1.0)",
                    f"{x}.clamp(min=0.0)",
                    f"{x}.nan_to_num(0.5)",
                    f"{x} - {self.number()}",
                    f"{x}.double().float()",
                    f"{x}.half().float()",
                )
            )
            return (Step(f"{name} = {text}", (name,), reads=(x,), skeletons=(f"{x} + 0",)),)
        op = self.rng.choice(UNARY)
        text = f"torch.nn.functional.softsign({x})" if op == "softsign" else f"{x}.{op}()"
        return (Step(f"{name} = {text}", (name,), reads=(x,), skeletons=(f"{x} + 0",)),)

    def binary(self) -> Line:
        x, name = self.pick(), self.new()
        y = self.like(x)
        text = self.rng.choice(BINARY).format(a=x, b=y)
        return (Step(f"{name} = {text}", (name,), reads=(x, y), skeletons=(f"{x} + {y}",)),)

    def ternary(self) -> Line:
        x, name = self.pick(), self.new()
        y, z = self.like(x, same=True), self.like(x, same=True)
        text = self.rng.choice(("torch.addcmul({0}, {1}, {2})", "torch.addcdiv({0}, {1}, {2})", "{0}.lerp({1}, {2})"))
        step = Step(f"{name} = {text.format(x, y, z)}", (name,), reads=(x, y, z), skeletons=(f"{x} + {y} + {z}",))
        return (step,)

    def in_place(self) -> Line:
        x = self.target()
        which = self.rng.randrange(7)
        if which == 0:
            op = self.rng.choice(UNARY_IN_PLACE)
            return (Step(f"{x}.{op}()", writes=(x,), reads=(x,), skeletons=(f"{x} + 0",)),)
        if which == 1:
            text = self.rng.choice(
                (
                    f"{x}.add_({self.number()})",
                    f"{x}.mul_({self.number()})",
                    f"{x}.div_({self.number(True)})",
                    f"{x}.clamp_(min=0.0)",
                    f"{x}.pow_({self.number()})",
                    f"{x} += {self.number()}",
                )
            )
            return (Step(text, writes=(x,), reads=(x,), skeletons=(f"{x} + 0",)),)
        if which == 2:  # a part of it
            part = f"{x}[{self.rng.randrange(self.shape(x)[0])}]" if self.shape(x) else f"{x}[()]"
            text = self.rng.choice(("{0}.mul_({1})", "{0}.div_({1})", "{0}.add_({1})", "{0}.log_()", "{0}.sqrt_()"))
            text = text.format(part, self.number(True))
            return (Step(text, writes=(part,), reads=(x,), skeletons=(f"{part} + 0",)),)
        if which == 3:
            y, z = self.like(x, writes=True), self.like(x, writes=True)
            op = self.rng.choice(("addcmul_", "addcdiv_"))
            return (Step(f"{x}.{op}({y}, {z})", writes=(x,), reads=(x, y, z), skeletons=(f"{x} + {y} + {z}",)),)
        if which == 4:
            d = self.dim(x)
            return (Step(f"{x}.cumsum_({d})", writes=(x,), reads=(x,), skeletons=(f"{x}.cumsum({d})",)),)
        y = self.like(x, writes=True)
        op = self.rng.choice(BINARY_IN_PLACE)
        return (Step(f"{x}.{op}({y})", writes=(x,), reads=(x, y), skeletons=(f"{x} + {y}",)),)

    def overwrite(self) -> Line:
        """Writes that do not read what was there, repairs among them."""
        x = self.target()
        which = self.rng.randrange(8)
        if which == 0:
            return (Step(f"{x}.zero_()", writes=(x,)),)
        if which == 1:
            value, literal = self.fill_value()
            return (Step(f"{x}.fill_({value})", writes=(x,), literal=literal),)
        if which == 2:
            return (Step(f"{x}.nan_to_num_(0.5)", writes=(x,), reads=(x,), skeletons=(f"{x} + 0",)),)
        if which == 3:
            value, literal = self.fill_value()
            part = f"{x}[{self.index(x)}]" if self.shape(x) else f"{x}[()]"
            return (Step(f"{part} = {value}", writes=(part,), literal=literal),)
        if which == 4 and self.shape(x):
            value, literal = self.fill_value()
            part = f"{x}[{self.rng.randrange(self.shape(x)[0])}:]"
            return (Step(f"{part} = {value}", writes=(part,), literal=literal),)
        y = self.like(x, writes=True)
        if which == 5:
            return (Step(f"{x}[...] = {y}", writes=(x,), reads=(y,), skeletons=(f"{y} + 0",)),)
        return (Step(f"{x}.copy_({y})", writes=(x,), reads=(y,), skeletons=(f"{y} + 0",)),)

    def out(self) -> Line:
        z = self.target()
        x = self.like(z, same=True, writes=True)
        if self.chance(0.4):
            op = self.rng.choice(["sqrt", "log", "exp", "reciprocal", "neg", "abs", "tanh"])
            return (Step(f"torch.{op}({x}, out={z})", writes=(z,), reads=(x,), skeletons=(f"{x} + 0",)),)
        y = self.like(z, writes=True)
        op = self.rng.choice(["add", "sub", "mul", "div", "maximum"])
        return (Step(f"torch.{op}({x}, {y}, out={z})", writes=(z,), reads=(x, y), skeletons=(f"{x} + {y}",)),)

    def masked(self) -> Line:
        which, name = self.rng.randrange(7), self.new()
        if which == 0:
            x = self.pick()
            y = self.like(x)
            m = self.mask(self.shape(x))
            text = f"torch.where({m}, {x}, {y})"
            return (Step(f"{name} = {text}", (name,), (), (x, y), (text,)),)
        if which == 1:
            x = self.pick(lambda t: t.dim() > 0)
            text = f"torch.masked_select({x}, {self.mask(self.shape(x))})"
            return (Step(f"{name} = {text}", (name,), (), (x,), (text,)),)
        if which == 2:
            x = self.pick(lambda t: t.dim() > 0)
            text = f"{x}[{self.mask(self.shape(x))}]"
            return (Step(f"{name} = {text}", (name,), (), (x,), (text,)),)
        if which == 3:
            x = self.pick()
            m, (value, literal) = self.mask(self.shape(x)), self.fill_value()
            skeleton = f"{x}.masked_fill({m}, 0.0)"
            return (Step(f"{name} = {x}.masked_fill({m}, {value})", (name,), (), (x,), (skeleton,), literal=literal),)
        x = self.target(lambda t: t.dim() > 0)
        m, (value, literal) = self.mask(self.shape(x)), self.fill_value()
        skeleton = f"{x}.masked_fill({m}, 0.0)"
        if which == 4:
            text = f"{x}.masked_fill_({m}, {value})"
        elif which == 5:
            text = f"{x}[{m}] = {value}"
        else:
            y = self.like(x, same=True, writes=True)
            text = f"{x}[{m}] = {y}[{m}]"
            return (Step(text, writes=(x,), reads=(x, y), skeletons=(f"torch.where({m}, {y}, {x})",)),)
        return (Step(text, writes=(x,), reads=(x,), skeletons=(skeleton,), literal=literal),)

    def indexing(self) -> Line:
        x, name = self.pick(lambda t: t.dim() > 0), self.new()
        d = self.dim(x)
        size = self.shape(x)[d]
        shape = [*self.shape(x)]
        which = self.rng.randrange(9)
        if which == 0:
            text = f"{x}.index_select({d}, {self.indices(size)})"
        elif which == 1:
            shape[d] = self.rng.randint(1, 3)
            index = self.indices(size, torch.Size(shape).numel())
            text = f"{x}.gather({d}, {index}.view({shape}))"
        elif which == 2:
            text = f"{x}[{self.indices(shape[0])}]"
        elif which == 3:
            text = f"{x}.flip({d})"
        elif which == 4:
            text = f"{x}.roll({self.rng.randint(1, 2)}, {d})"
        elif which == 5:
            text = f"{x}.take({self.indices(self.value(x).numel())})"
        elif which == 6:
            text = f"{x}.repeat({[2] + [1] * (len(shape) - 1)})"
        elif which == 7:
            text = f"{x}.tril()" if len(shape) > 1 else f"{x}.repeat_interleave(2)"
        else:
            if len(shape) < 2:
                raise Gone
            index = self.indices(shape[0], 2)
            text = f"{x}[{index}, {self.indices(shape[1], 2)}]"
        return (Step(f"{name} = {text}", (name,), (), (x,), (text,)),)

    def index_write(self) -> Line:
        x = self.target(lambda t: t.dim() > 0)
        shape = self.shape(x)
        which = self.rng.randrange(6)
        d = self.dim(x)
        if which == 0:
            index, (value, literal) = self.indices(shape[0], distinct=True), self.fill_value()
            skeleton = f"{x}.index_fill(0, {index}, 0.0)"
            text = f"{x}[{index}] = {value}"
            return (Step(text, writes=(x,), reads=(x,), skeletons=(skeleton,), literal=literal),)
        if which == 1:
            index, (value, literal) = self.indices(shape[d], distinct=True), self.fill_value()
            skeleton = f"{x}.index_fill({d}, {index}, 0.0)"
            text = f"{x}.index_fill_({d}, {index}, {value})"
            return (Step(text, writes=(x,), reads=(x,), skeletons=(skeleton,), literal=literal),)
        y = self.like(x, same=True, writes=True)
        if addresses(self.value(y)) == addresses(self.value(x)):
            raise Gone
        if which == 2:
            index = f"torch.tensor({self.rng.sample(range(shape[0]), shape[0])})"
            text = f"{x}.index_put_(({index},), {y})"
            return (Step(text, writes=(x,), reads=(x, y), skeletons=(f"{x}.index_put(({index},), {y})",)),)
        if which == 3:
            index = self.indices(shape[0], shape[0])
            text = f"{x}.index_put_(({index},), {y}, accumulate=True)"
            skeleton = f"{x}.index_put(({index},), {y}, accumulate=True)"
            return (Step(text, writes=(x,), reads=(x, y), skeletons=(skeleton,)),)
        if which == 4:
            index = self.indices(shape[d], shape[d])
            text = f"{x}.index_add_({d}, {index}, {y})"
            return (Step(text, writes=(x,), reads=(x, y), skeletons=(f"{x}.index_add({d}, {index}, {y})",)),)
        index = f"torch.tensor({self.rng.sample(range(shape[d]), shape[d])})"
        text = f"{x}.index_copy_({d}, {index}, {y})"
        return (Step(text, writes=(x,), reads=(x, y), skeletons=(f"{x}.index_copy({d}, {index}, {y})",)),)

    def join(self) -> Line:
        x, name = self.pick(lambda t: t.dim() > 0 and t.numel() <= 12), self.new()
        y = self.like(x, same=True)
        d = self.dim(x)
        op = self.rng.choice(("cat", "stack"))
        text = f"torch.{op}([{x}, {y}], {d})"
        return (Step(f"{name} = {text}", (name,), (), (x, y), (text,)),)

    def reduce(self) -> Line:
        x, name = self.pick(), self.new()
        if self.chance(0.2) or not self.shape(x):
            text = f"{x}.{self.rng.choice(('sum', 'mean', 'max', 'prod', 'norm'))}()"
            return (Step(f"{name} = {text}", (name,), reads=(x,), skeletons=(f"{x}.sum()",)),)
        d = self.dim(x)
        which = self.rng.randrange(5)
        if which == 0:
            text, skeleton = f"{x}.{self.rng.choice(('cumsum', 'cumprod'))}({d})", f"{x}.cumsum({d})"
        elif which == 1:
            op = self.rng.choice(("softmax", "softmax", "log_softmax"))
            text, skeleton = f"{x}.{op}({d})", f"{x}.sum({d}, keepdim=True).expand_as({x})"
        elif which == 2:
            other = self.new("i")
            text = f"{name}, {other} = {x}.{self.rng.choice(('max', 'min', 'median'))}({d})"
            return (Step(text, (name, other), reads=(x,), skeletons=(f"{x}.sum({d})",)),)
        elif which == 3 and self.chance(0.4):
            other = self.new("i")
            skeleton = f"{x}.sum({d}, keepdim=True).expand_as({x})"
            return (Step(f"{name}, {other} = {x}.sort({d})", (name, other), reads=(x,), skeletons=(skeleton,)),)
        else:
            keep = self.rng.choice(("", ", keepdim=True"))
            text, skeleton = f"{x}.{self.rng.choice(REDUCTIONS)}({d}{keep})", f"{x}.sum({d}{keep})"
        return (Step(f"{name} = {text}", (name,), reads=(x,), skeletons=(skeleton,)),)

    def product(self) -> Line:
        x, name = self.pick(lambda t: 0 < t.dim() < 3), self.new()
        last = self.shape(x)[-1]
        y = self.pick(lambda t: 0 < t.dim() < 3 and t.shape[-2 if t.dim() > 1 else -1] == last)
        text = f"{x} @ {y}"
        p, q = f"torch.ones({list(self.shape(x))}).double()", f"torch.ones({list(self.shape(y))}).double()"
        return (Step(f"{name} = {text}", (name,), reads=(x, y), skeletons=(f"{x} @ {q} + {p} @ {y}",)),)

    def forget(self) -> Line:
        names = self.names(lambda _: True)
        if len(names) < 4:
            raise Gone
        name = self.rng.choice(names)
        return (Step(f"del {name}", drops=(name,)),)

    def fault(self) -> Line:
        """One element of something turns NaN, Inf or -Inf, on a line of its own."""
        x = self.target(lambda t: t.dtype == torch.float32)
        at = self.index(x)
        part = f"{x}[{at}]" if self.shape(x) else f"{x}[()]"
        which, name = self.rng.randrange(7), self.new()
        read = Step(f"{name} = {part} / 0.0", (name,), (), (x,), (f"{part} + 0",))
        if which == 0:
            put = Step(f"{part} = {name}", writes=(part,), reads=(name,), skeletons=(f"{name} + 0",))
            return (read, put)
        if which == 1:
            return (Step(f"{part}.div_(0.0)", writes=(part,), reads=(x,), skeletons=(f"{part} + 0",)),)
        if which == 2:
            zero = Step(f"{part} = 0.0", writes=(part,))
            return (zero, Step(f"{part}.log_()", writes=(part,), reads=(x,), skeletons=(f"{part} + 0",)))
        if which == 3:
            minus = Step(f"{part} = -1.0", writes=(part,))
            return (minus, Step(f"{part}.sqrt_()", writes=(part,), reads=(x,), skeletons=(f"{part} + 0",)))
        if which == 4:
            big = Step(f"{part} = 3e38", writes=(part,))
            return (big, Step(f"{part}.mul_(10.0)", writes=(part,), reads=(x,), skeletons=(f"{part} + 0",)))
        if which == 5:
            bits = self.rng.choice([0x7FC00000, 0x7F800000, -0x800000])
            return (Step(f"{part}.view(torch.int32).fill_({bits})", writes=(part,)),)
        zero = Step(f"{part} = 0.0", writes=(part,))
        return (zero, Step(f"{name} = {x}.log()", (name,), (), (x,), (f"{x} + 0",)))

    def line(self) -> Line:
        families: list[tuple[Callable[[], Line], float]] = [
            (self.allocate, 1.5),
            (self.view, 3),
            (self.alias, 1),
            (self.unary, 2.5),
            (self.binary, 2.5),
            (self.ternary, 0.5),
            (self.in_place, 2.5),
            (self.overwrite, 1.5),
            (self.out, 0.7),
            (self.masked, 1.5),
            (self.indexing, 2),
            (self.index_write, 1),
            (self.join, 0.7),
            (self.reduce, 1.5),
            (self.product, 0.7),
            (self.forget, 0.5),
            (self.fault, 0 if self.clean else 1.6),
        ]
        family = self.rng.choices([f for f, _ in families], [w for _, w in families])[0]
        return family()

    def program(self) -> Program:
        lines: list[Line] = []
        inputs: list[Line] = []
        wanted = self.rng.randint(self.options.shortest, self.options.longest)
        if self.chance(0.5):  # something that was there before the trace
            name, shape = self.new("a"), self.rng.choice(SHAPES)
            size = torch.Size(shape).numel()
            step = Step(f"{name} = torch.arange({size}.0).view({list(shape)}) - 1.0", (name,))
            self.oracle.step(step, 0)
            inputs.append((step,))
        for _ in range(4 * wanted):
            if len(lines) >= wanted:
                break
            try:
                line = self.allocate() if not self.names(lambda _: True) else self.line()
            except Gone:
                continue
            try:
                for step in line:
                    self.oracle.step(step, len(lines) + 1)
            except (RuntimeError, IndexError):
                # Something may have happened before it raised: from the start.
                self.oracle = Oracle()
                self.oracle.run(Program(lines, inputs=inputs))
                continue
            lines.append(line)
        return Program(lines, self.with_unwritten, inputs=inputs)


def generate(seed: int, options: Options | None = None) -> Program:
    rng = random.Random(seed)
    generator = Generator(rng, options or Options())
    torch.use_deterministic_algorithms(generator.with_unwritten)
    try:
        program = generator.program()
    finally:
        torch.use_deterministic_algorithms(False)
    program.seed = seed
    return program
