"""torch.compile without Triton and without a GPU.

Dynamo, AOTAutograd and Inductor run as they do for a GPU, up to the source of the kernels and of the
Python program that allocates buffers and launches them. That program runs on fake tensors. Its
launches of Triton kernels are recorded; its GEMMs and other library calls are ops as in eager mode.
"""
import re
import types
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

NO_TRITON = re.compile(r"^\s*(import triton\b.*|from triton\b.*|from torch\._inductor\.runtime\.triton_\w+ import .*)$", re.M)
WRITTEN, READ = ("in_out_ptr", "out_ptr"), ("in_out_ptr", "in_ptr")


class Kernel:
    """A fused kernel. Names of its parameters tell which operands it reads and writes."""

    recorder = None

    def __init__(self, name, source):
        signature = re.search(rf"def {re.escape(name)}\(([^)]*)\)", source)
        self.op = "inductor." + re.sub(r"_\d+$", "", name)
        self.parameters = [one.split(":")[0].strip() for one in signature.group(1).split(",")]
        moved = re.search(r"'kernel_num_gb': ([0-9.e+-]+)", source)
        self.bytes = round(1e9 * float(moved.group(1))) if moved else None

    def run(self, *args, **_):
        named = list(zip(self.parameters, args))
        ins, outs = ([arg for name, arg in named if name.startswith(kinds) and isinstance(arg, torch.Tensor)]
                     for kinds in (READ, WRITTEN))
        self.recorder.record_fused(self.op, ins, outs, self.bytes)


def load(graph):
    """Returns the module that Inductor generates for a graph."""
    code = graph.codegen()[0]
    module = types.ModuleType("compiled")
    module.__dict__.update(graph.constants, __file__="compiled", start_graph=lambda: None, end_graph=lambda *_: None)
    text = getattr(code, "value", code)
    exec(compile(NO_TRITON.sub("", text), "compiled", "exec"), module.__dict__)  # noqa: S102
    return module


def reinterpret(tensor, size, stride, offset=0):
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


def without_modes(function):
    def run(*args, **kwargs):
        with _disable_current_modes():
            return function(*args, **kwargs)

    return run


class OnCpu(TorchDispatchMode):
    """Inductor folds constants on their device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        args, kwargs = tree_map(lambda x: torch.device("cpu") if isinstance(x, torch.device) else x, (args, kwargs or {}))
        return func(*args, **kwargs)


def record_compiled(recorder):
    """Makes torch.compile record its kernels."""
    import torch._functorch.config
    import torch._inductor.fx_passes.joint_graph as joint_graph
    import torch._inductor.fx_passes.pad_mm as padding
    import torch._inductor.scheduler as scheduler
    from torch._dynamo import convert_frame
    from torch._inductor import config, graph
    from torch._inductor.async_compile import AsyncCompile

    Kernel.recorder = recorder
    convert_frame._compile = without_modes(convert_frame._compile)
    scheduler.has_triton = lambda *_: True
    torch.utils._triton.triton_hash_with_backend = lambda: ""
    AsyncCompile.triton = lambda _, name, source, **__: Kernel(name, source)
    AsyncCompile.wait = lambda *_: None
    AsyncCompile.wakeup = lambda: None
    AsyncCompile.cpp = AsyncCompile.cpp_pybinding = lambda *_, **__: lambda *_: None  # no time of the GPU
    graph.GraphLowering.compile_to_module = load
    plain_fold = joint_graph.UniformValueConstantFolder.run

    def fold(folder, *args, **kwargs):
        with OnCpu():
            return plain_fold(folder, *args, **kwargs)

    joint_graph.UniformValueConstantFolder.run = fold
    padding.get_cached_should_pad = lambda _: True  # a run times both
    config.profile_bandwidth = True  # adds bytes to the sources
    config.force_disable_caches = True
    config.compile_threads = 1
    torch._functorch.config.graphsafe_rng_functionalization = False  # needs generators of CUDA
    for message in ("Accessing the data pointer of FakeTensor", "Using `torch.compile\\(module\\)` when there are global hooks",
                    "dynamo_pgo force disabled"):
        warnings.filterwarnings("ignore", message=message)
    guards = torch._C._dynamo.guards

    def empty(device):
        return lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device=device)

    guards._empty_strided_cuda, guards._empty_strided_cpu = empty("cuda"), empty("cpu")
    guards._reinterpret_tensor = reinterpret
    guards.assert_size_stride = guards.assert_alignment = lambda *_: None
    torch._C._cuda_getCurrentRawStream = lambda _: 0
