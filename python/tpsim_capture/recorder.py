"""Records kernels, collectives, waits, allocations and frees of a process on fake tensors."""
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from .guard import CaptureError, load_guard
from .values import UNWRITTEN, Values, tensors_in

PLAIN = {torch.Tensor, torch.nn.Parameter, FakeTensor}
# Ops that launch nothing although they return new tensors.
WITHOUT_KERNELS = UNWRITTEN | {"_local_scalar_dense", "lift_fresh", "detach", "record_stream", "is_nonzero", "equal",
                               "set_", "resize_"}

# Ops that run another with a state of the random numbers -> place of that op in their arguments.
RANDOM_OPS = {"run_dtensor_rng_op": 2, "run_and_save_rng_state": 0, "run_with_rng_state": 1}


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def layout(tensor):
    """[shape, dtype], and strides if the tensor is not contiguous."""
    described = [list(tensor.shape), name_of(tensor.dtype)]
    if not tensor.is_contiguous():
        described.append(list(tensor.stride()))
    return described


def written(func, args, kwargs):
    """Tensors that an op without results changes."""
    named = dict(zip((argument.name for argument in func._schema.arguments), args)) | kwargs
    changed = [named.get(argument.name) for argument in func._schema.arguments
               if argument.alias_info is not None and argument.alias_info.is_write]
    return tensors_in(changed)


class Interned(list):
    """Distinct rows in the order of their first use."""

    def __init__(self):
        self.places = {}

    def place(self, row):
        key = repr(row)
        if key not in self.places:
            self.places[key] = len(self)
            self.append(row)
        return self.places[key]


# Tensors of torch.tensor(..., device="cuda") begin on the CPU, as on a machine without a GPU.
FakeTensorMode.avoid_device_init = property(lambda _: True)


class Recorder(TorchDispatchMode):
    """Storages are followed from the start; other events are kept while `is_recording`."""

    supports_higher_order_operators = True
    ignore_compile_internals = classmethod(lambda cls: True)

    def __init__(self):
        super().__init__()
        self.fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.values = Values(self.fake_mode)
        self.is_recording = False
        self.optimizer_depth = 0
        self.kernels, self.modules, self.groups, self.events = Interned(), Interned(), Interned(), []
        self.live = {}        # storage -> (number, weak reference)
        self.storages = []    # [bytes, kind, module]
        self.stack = [""]     # names of the modules that run
        self.names = weakref.WeakKeyDictionary()
        self.module_of_node = {}
        self.mark_count = 0

    # Modules.
    def enter_module(self, module, *_):
        if module not in self.names:
            for name, inner in module.named_modules(remove_duplicate=False):
                self.names.setdefault(inner, name)
        self.stack.append(self.names[module])
        if self.is_recording:
            self.events.append(["call", self.modules.place(self.names[module])])

    def leave_module(self, *_):
        if len(self.stack) > 1:
            self.stack.pop()

    def phase(self):
        if self.optimizer_depth:
            return "optimizer"
        return "backward" if torch._C._current_graph_task_id() != -1 else "forward"

    def module(self, phase):
        if phase == "backward":
            node = torch._C._current_autograd_node()
            if node is not None:
                return self.module_of_node.get(node._sequence_nr(), self.stack[-1])
        return self.stack[-1]

    # Memory.
    def note_storage(self, tensor):
        if tensor.device.type != "cuda":
            return None
        storage = tensor.untyped_storage()
        key = storage._cdata
        entry = self.live.get(key)
        if entry is not None:
            return entry[0]
        if storage.nbytes() == 0:
            return None
        return self.allocate(storage, key)

    def allocate(self, storage, key):
        phase = self.phase()
        number = len(self.storages)
        self.storages.append([storage.nbytes(), "", self.modules.place(self.module(phase))])
        self.live[key] = number, weakref.ref(storage, lambda _: self.free(key))
        if self.is_recording:
            self.events.append(["allocate", number])
        return number

    def free(self, key):
        entry = self.live.pop(key, None)
        if entry is not None and self.is_recording:
            self.events.append(["free", entry[0]])

    def resized(self, storage, bytes_before):
        key = storage._cdata
        if bytes_before and key in self.live:
            self.free(key)
        if storage.nbytes():
            self.allocate(storage, key)

    def kind(self, tensors, kind):
        """Says what live storages hold: parameter, gradient, optimizer."""
        for tensor in tensors:
            local = getattr(tensor, "_local_tensor", tensor)
            if local is None or not isinstance(local, torch.Tensor):
                continue
            number = self.note_storage(local)
            if number is not None:
                self.storages[number][1] = kind

    # Streams.
    def marks(self, stream):
        self.mark_count += 1
        if self.is_recording:
            self.events.append(["mark", stream, self.mark_count])
        return self.mark_count

    def waits(self, stream, mark):
        if self.is_recording:
            self.events.append(["wait", stream, mark])

    def host_waits(self, mark):
        if self.is_recording:
            self.events.append(["host_wait", mark])

    # Ops.
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(kind not in PLAIN for kind in types):
            return NotImplemented
        if isinstance(func, torch._ops.HigherOrderOperator):
            if func.name() not in RANDOM_OPS:
                raise CaptureError(f"{func.name()} is not captured")
            at = RANDOM_OPS[func.name()]
            with self:
                out = args[at](*args[at + 1:], **kwargs)
            return (torch.cuda.get_rng_state(), out) if func.name() == "run_and_save_rng_state" else out
        namespace = func.namespace
        if namespace in ("c10d", "_c10d_functional"):
            return self.collectives.run(func, args, kwargs)
        if namespace == "profiler":
            return func(*args, **kwargs)
        out = self.values.run(func, args, kwargs)
        outs, ins = tensors_in(out), tensors_in((args, kwargs))
        phase = self.phase()
        if phase == "forward" and torch.is_grad_enabled():
            self.module_of_node[torch.autograd._get_sequence_nr() - 1] = self.stack[-1]
        before = len(self.storages)
        for tensor in outs:
            self.note_storage(tensor)
        if not self.is_recording:
            return out
        outs = outs or written(func, args, kwargs)
        if not self.launches(func, ins, outs, before):
            return out
        self.record_kernel(func, args, kwargs, ins, outs, phase)
        return out

    def launches(self, func, ins, outs, before):
        if func.overloadpacket.__name__ in WITHOUT_KERNELS:
            return False
        if not any(tensor.device.type == "cuda" for tensor in ins + outs):
            return False
        if all(tensor.numel() == 0 for tensor in outs):
            return False
        if func._schema.is_mutable or len(self.storages) > before:
            return True
        # New storage with the number of another that was freed within the op is new too.
        own = {tensor.untyped_storage()._cdata for tensor in ins}
        return any(tensor.untyped_storage()._cdata not in own for tensor in outs)

    def record_kernel(self, func, args, kwargs, ins, outs, phase):
        results = [kwargs.get(argument.name) for argument in func._schema.arguments if argument.is_out]
        ins = [tensor for tensor in ins if not any(tensor is one for one in results)]
        row = {"op": str(func), "in": [layout(t) for t in ins], "out": [layout(t) for t in outs]}
        scalars = [arg for arg in args if isinstance(arg, (bool, int, float))]
        if scalars and "attention" in row["op"]:
            row["scalars"] = scalars
        if any(t.device.type != "cuda" for t in ins + outs if t.dim()):
            row["to"] = outs[0].device.type
        self.events.append(["kernel", self.kernels.place(row), phase,
                            load_guard().tpsim_current_stream(), self.modules.place(self.module(phase))])

    def record_fused(self, op, ins, outs, moved):
        """A kernel that a compiler made; `moved`: bytes that it reads and writes."""
        if not self.is_recording:
            return
        row = {"op": op, "in": [layout(t) for t in ins], "out": [layout(t) for t in outs]}
        if moved is not None:
            row["bytes"] = moved
        phase = self.phase()
        self.events.append(["kernel", self.kernels.place(row), phase,
                            load_guard().tpsim_current_stream(), self.modules.place(self.module(phase))])

    def start(self):
        """Begins a step. Memory that is allocated now is live before the step."""
        self.kernels, self.events = Interned(), []
        self.at_start = sorted(entry[0] for entry in self.live.values())
        self.is_recording = True

    def stop(self):
        self.is_recording = False
