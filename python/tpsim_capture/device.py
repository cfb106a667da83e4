"""CUDA devices without a GPU and without memory.

PyTorch's fake tensors compute shapes only, but autograd asks the device's guard, and scripts ask
torch.cuda. pretend() loads a guard without action and replaces the functions of torch.cuda that
need a driver. Streams are real torch.Stream objects whose numbers the guard counts.
"""
import collections
import contextlib
import types

from .guard import load_guard

load_guard()

import torch  # noqa: E402
import torch._dynamo  # noqa: E402  asks for CUDA when it is imported: before pretend()

# Compute capability and memory in GiB of GPUs by name.
GPUS = {"v100": ((7, 0), 32), "a100": ((8, 0), 80), "l40s": ((8, 9), 48), "rtx-4090": ((8, 9), 24),
        "h100": ((9, 0), 80), "h200": ((9, 0), 141), "b200": ((10, 0), 180)}


def cuda(device=None):
    device = torch.device("cuda") if device is None else torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    return torch.device("cuda", device.index or 0)


class Stream(torch.Stream):
    """A stream whose waits are recorded."""

    recorder = None

    def __new__(cls, device=None, priority=0, stream_id=None, **_):
        if stream_id is None:
            return super().__new__(cls, device=cuda(device))
        return super().__new__(cls, stream_id=stream_id, device_index=0, device_type=1)

    cuda_stream = property(lambda self: self.stream_id)

    def wait_event(self, event):
        if Stream.recorder and event.mark is not None:
            Stream.recorder.waits(self.stream_id, event.mark)

    def wait_stream(self, other):
        self.wait_event(other.record_event())

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self):
        if Stream.recorder:
            Stream.recorder.host_waits(Stream.recorder.marks(self.stream_id))

    def query(self):
        return True

    def __enter__(self):
        self.entered = torch.cuda.stream(self)
        return self.entered.__enter__()

    def __exit__(self, *error):
        return self.entered.__exit__(*error)


class Event:
    def __init__(self, enable_timing=False, blocking=False, interprocess=False, **_):
        self.mark = None

    def record(self, stream=None):
        if Stream.recorder:
            self.mark = Stream.recorder.marks(stream.stream_id if stream is not None else load_guard().tpsim_current_stream())

    def wait(self, stream=None):
        (stream or current_stream()).wait_event(self)

    def synchronize(self):
        if Stream.recorder and self.mark is not None:
            Stream.recorder.host_waits(self.mark)

    def query(self):
        return True

    def elapsed_time(self, _):
        return 1.0


def current_stream(device=None):
    return Stream(device, stream_id=load_guard().tpsim_current_stream())


@contextlib.contextmanager
def on_stream(stream):
    before = load_guard().tpsim_current_stream()
    if stream is not None:
        load_guard().tpsim_set_stream(stream.stream_id)
    try:
        yield stream
    finally:
        load_guard().tpsim_set_stream(before)


def synchronize(device=None):
    if Stream.recorder:
        Stream.recorder.host_waits(None)


def rng_state(device=None):
    with torch.utils._python_dispatch._disable_current_modes():
        return torch.zeros(16, dtype=torch.uint8)


def returns(value):
    """A new function each time: Dynamo looks functions up."""
    return lambda *_, **__: value


def pretend(gpu, devices):
    """Makes this process believe in `devices` GPUs of the kind `gpu`."""
    load_guard().tpsim_set_devices(devices)
    capability, memory = GPUS[gpu]
    total = memory << 30
    properties = types.SimpleNamespace(
        name=f"NVIDIA {gpu.upper()}", major=capability[0], minor=capability[1], total_memory=total,
        multi_processor_count=132 if capability[0] >= 9 else 108, warp_size=32, is_integrated=False,
        max_threads_per_multi_processor=2048, gcnArchName="", regs_per_multiprocessor=65536,
        shared_memory_per_block_optin=232448, L2_cache_size=50 << 20)
    replaced = {
        "is_available": lambda: True, "is_initialized": lambda: True, "_is_compiled": lambda: True,
        "_lazy_init": returns(None), "init": returns(None), "device_count": lambda: devices,
        "current_device": lambda: 0, "set_device": returns(None), "synchronize": synchronize,
        "get_device_name": lambda *a: properties.name, "get_device_capability": lambda *a: capability,
        "get_device_properties": lambda *a: properties, "is_bf16_supported": lambda *a, **k: capability[0] >= 8,
        "empty_cache": returns(None), "ipc_collect": returns(None), "reset_peak_memory_stats": returns(None),
        "memory_allocated": returns(0), "max_memory_allocated": returns(0), "memory_reserved": returns(0),
        "max_memory_reserved": returns(0), "memory_stats": lambda *a: collections.defaultdict(int),
        "mem_get_info": lambda *a: (total, total), "manual_seed": returns(None), "manual_seed_all": returns(None),
        "seed_all": returns(None), "get_rng_state": rng_state, "set_rng_state": returns(None),
        "get_rng_state_all": lambda: [rng_state()], "set_rng_state_all": returns(None),
        "get_arch_list": lambda: [f"sm_{capability[0]}{capability[1]}"], "Stream": Stream, "Event": Event,
        "current_stream": current_stream, "default_stream": lambda d=None: Stream(d, stream_id=0),
        "stream": on_stream, "set_stream": lambda s: load_guard().tpsim_set_stream(s.stream_id),
        "is_current_stream_capturing": lambda: False, "set_per_process_memory_fraction": returns(None),
        "can_device_access_peer": lambda *a: True, "utilization": returns(0),
        "_exchange_device": returns(0), "_maybe_exchange_device": returns(0),
        "_set_stream_by_id": lambda stream_id, *a: load_guard().tpsim_set_stream(stream_id),
    }
    for name, value in replaced.items():
        if hasattr(torch.cuda, name) or name in ("Stream", "Event"):
            setattr(torch.cuda, name, value)
    torch.cuda.default_generators = tuple(torch.Generator() for _ in range(devices))
    torch.cuda.device = type("device", (contextlib.nullcontext,), {})
    torch.cuda.nvtx = types.SimpleNamespace(range_push=returns(0), range_pop=returns(0), mark=returns(None),
                                            range=lambda *a, **k: contextlib.nullcontext())
    for name in ("random", "memory", "streams"):  # other names of the same functions
        module = getattr(torch.cuda, name, None)
        for key, value in replaced.items():
            if module is not None and hasattr(module, key):
                setattr(module, key, value)
    interface = torch._dynamo.device_interface.CudaInterface  # has the same functions
    for key, value in replaced.items():
        if key in vars(interface):
            setattr(interface, key, value if isinstance(value, type) else staticmethod(value))
    torch.version.cuda = torch.version.cuda or "12.8"
    torch.accelerator.current_accelerator = lambda *a, **k: torch.device("cuda")
