"""Integers have values.

Fake tensors know shapes only, but scripts read token ids, masks and routing tables. Tensors of
integers and booleans, and what is computed from them alone, are also computed for real on the CPU.
Indices chosen by unknown numbers (topk, sort, argmax) are balanced: every choice occurs equally
often. A number that is read but unknown is 1.0, and is listed; other reads of unknown data raise
CaptureError.
"""
import math
import traceback

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from .guard import CaptureError

aten = torch.ops.aten
LARGEST = 1 << 26  # elements that are computed for real
SMALL = 1 << 12    # of floating-point constants
RANDOM = {"rand", "randn", "rand_like", "randn_like", "normal_", "uniform_", "bernoulli", "bernoulli_",
          "multinomial", "randint_like", "random_", "native_dropout", "exponential_"}
UNWRITTEN = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
CHOICES = {aten.topk.default, aten.sort.default, aten.sort.stable, aten.argmax.default,
           aten.argsort.default, aten.argsort.stable, aten.max.dim}


def value_of(tensor):
    return getattr(tensor, "_tpsim_value", None)


def tensors_in(tree):
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def is_whole(tensor):
    return not (tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def is_functional(func):
    """Whether results have memory of their own."""
    return not func._schema.is_mutable and all(one.alias_info is None for one in func._schema.returns)


def users_line():
    """The innermost line outside PyTorch and this package."""
    for frame in reversed(traceback.extract_stack()):
        if "/torch/" not in frame.filename and "tpsim_capture" not in frame.filename:
            return f"{frame.filename}:{frame.lineno}"
    return "unknown line"


def balanced(shape, choices):
    """Indices [.., k] below `choices`: row r has r k, r k + 1, ... modulo `choices`."""
    with _disable_current_modes():
        return (torch.arange(math.prod(shape)) % max(choices, 1)).reshape(shape)


class Values:
    def __init__(self, fake_mode):
        self.fake_mode = fake_mode
        self.assumed = {}  # line -> what was read there

    def assume(self, what):
        self.assumed.setdefault(users_line(), what)

    def fake_of(self, real, device=None):
        fake = self.fake_mode.from_tensor(real, static_shapes=True)
        if device is not None and device != fake.device:
            with self.fake_mode:
                fake = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device=device)
        if is_whole(real) and real.numel() <= LARGEST:
            fake._tpsim_value = real
        return fake

    def read(self, tensor):
        """The number in a tensor of one element."""
        value = value_of(tensor)
        if value is not None:
            with _disable_current_modes():
                return value.item()
        if is_whole(tensor):
            if tensor.dtype in (torch.bool, torch.uint8):  # flags of all ranks are bytes
                self.assume("a truth value of unknown numbers is read: false")
                return False
            raise CaptureError(f"{users_line()}: an integer is read that depends on the data")
        self.assume("a floating-point number is read: 1.0")
        return 1.0

    def real_result(self, func, flat, spec):
        """The result on real tensors, or nothing if an operand is unknown."""
        name = func.overloadpacket.__name__
        tensors = tensors_in(flat)
        if name in RANDOM or name in UNWRITTEN or name == "lift_fresh":
            return None
        values = [value_of(tensor) for tensor in tensors]
        if any(value is None for value in values):
            return None
        real = [value_of(leaf) if isinstance(leaf, torch.Tensor) else
                torch.device("cpu") if isinstance(leaf, torch.device) else leaf for leaf in flat]
        args, kwargs = tree_unflatten(real, spec)
        if not tensors:
            if kwargs.get("dtype", None) in (torch.float16, torch.bfloat16):
                return None
            kwargs = {**kwargs, "device": torch.device("cpu"), "pin_memory": False}
            sizes = [arg for arg in args if isinstance(arg, (list, tuple))]
            count = math.prod(sizes[0]) if sizes else 1
            if count > SMALL and kwargs.get("dtype", torch.float32) not in (torch.int64, torch.int32, torch.bool):
                return None
            if count > LARGEST:
                return None
        with _disable_current_modes():
            try:
                return func(*args, **kwargs)
            except RuntimeError:  # the CPU lacks the op for integers
                wider = tree_map(lambda x: x.double() if isinstance(x, torch.Tensor) else x, (args, kwargs))
                return func(*wider[0], **wider[1]).to(tensors[0].dtype)

    def run(self, func, args, kwargs):
        """Calls the op on fake tensors, and on values where all operands are known."""
        flat, spec = tree_flatten((args, kwargs))
        for at, leaf in enumerate(flat):
            if isinstance(leaf, torch.Tensor) and not isinstance(leaf, torch._subclasses.FakeTensor):
                flat[at] = self.fake_of(leaf)
        args, kwargs = tree_unflatten(flat, spec)
        if func is aten._local_scalar_dense.default:
            return self.read(args[0])
        if func is aten.is_nonzero.default:
            return bool(self.read(args[0]))
        if func is aten.equal.default:
            known = [value_of(arg) for arg in args]
            if all(value is not None for value in known):
                return torch.equal(*known)
            self.assume("two unknown tensors are compared: equal")
            return True
        if func is aten.record_stream.default:
            return None
        if func.overloadpacket.__name__ == "random_" and is_whole(args[0]):  # seeds of samplers
            with _disable_current_modes():
                args[0]._tpsim_value = torch.zeros(args[0].shape, dtype=args[0].dtype).random_(*args[1:])
            return args[0]
        if func.overloadpacket.__name__ == "_pin_memory":
            return args[0]
        if func.overloadpacket.__name__ == "is_pinned":
            return False
        real = self.real_result(func, flat, spec)
        if real is not None and is_functional(func):
            tensors = tensors_in(flat)
            on = kwargs.get("device") or (tensors[0].device if tensors else torch.device("cpu"))
            return tree_map(lambda one: self.fake_of(one, on) if isinstance(one, torch.Tensor) else one, real)
        try:
            with self.fake_mode:
                out = func(*args, **kwargs)
        except torch._subclasses.fake_tensor.DynamicOutputShapeException:
            raise CaptureError(f"{users_line()}: the size of {func} depends on the data") from None
        if func in CHOICES:
            self.choose(func, args, out)
        self.attach(func, flat, out, real)
        return out

    def choose(self, func, args, out):
        if value_of(args[0]) is not None:
            return
        dim = -1
        if func is aten.topk.default:
            dim = args[2] if len(args) > 2 else -1
        elif func is not aten.sort.stable and len(args) > 1 and isinstance(args[1], int):
            dim = args[1]
        choices = args[0].shape[dim] if args[0].dim() else 1
        for one in out if isinstance(out, (tuple, list)) else (out,):
            if is_whole(one) and one.numel() <= LARGEST:
                dim_last = one.dim() == 0 or dim in (-1, one.dim() - 1) or one.dim() < args[0].dim()
                shape = one.shape if dim_last else one.transpose(dim, -1).shape
                chosen = balanced(tuple(shape), choices)
                with _disable_current_modes():
                    one._tpsim_value = chosen if dim_last else chosen.transpose(dim, -1)

    @staticmethod
    def attach(func, flat, out, real):
        outs, reals = tree_flatten(out)[0], tree_flatten(real)[0] if real is not None else []
        written = [leaf for leaf in flat if isinstance(leaf, torch.Tensor)] if func._schema.is_mutable else []
        if real is None:
            for tensor in written[:1]:
                if value_of(tensor) is not None and func.overloadpacket.__name__.endswith("_"):
                    del tensor._tpsim_value
            return
        for fake, value in zip(outs, reals):
            if isinstance(fake, torch.Tensor) and isinstance(value, torch.Tensor):
                if value.numel() <= (LARGEST if is_whole(value) else LARGEST // 16):
                    fake._tpsim_value = value
