"""One step of the user's script, from the end of one optimizer step to the end of the next."""
import contextlib
import importlib.metadata
import importlib.util
import itertools
import json
import os
import sys
import tempfile
import types

from . import device  # before torch
from .guard import CaptureError

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from .attention import replace_attention  # noqa: E402
from .collectives import Collectives  # noqa: E402
from .compiled import record_compiled  # noqa: E402
from .recorder import Recorder  # noqa: E402

LIBRARIES = ("transformers", "accelerate", "peft", "trl", "torchtitan", "deepspeed", "litgpt")
FORMAT = "tpsim captured step"


class StepRecorded(BaseException):
    """Ends the script after the step. Not an Exception, so that no handler of the script stops it."""


class Session:
    def __init__(self, gpu="h100", world=1, rank=0, gpus_per_node=8, step=2):
        if gpu not in device.GPUS:
            raise CaptureError(f"unknown GPU '{gpu}' (known: {', '.join(device.GPUS)})")
        self.gpu, self.world, self.rank, self.wanted, self.steps = gpu, world, rank, step, 0
        self.gpus_per_node = min(gpus_per_node, world)
        self.recorder = Recorder()
        self.collectives = self.recorder.collectives = Collectives(self.recorder)

    def install(self):
        device.pretend(self.gpu, self.gpus_per_node)
        device.Stream.recorder = self.recorder
        replace_attention(device.GPUS[self.gpu][0])
        self.hook_modules()
        self.hook_optimizers()
        self.hook_storages()
        self.hook_backward()
        self.hook_processes()
        record_compiled(self.recorder)
        load_data_here()
        torch._subclasses.FakeTensor.__format__ = format_number
        if importlib.util.find_spec("transformers"):
            random_weights()

    def hook_modules(self):
        hooks, recorder = torch.nn.modules.module, self.recorder

        def enter(module, *_):  # compiled code has no calls of modules
            if not torch.compiler.is_compiling():
                recorder.enter_module(module)

        def leave(*_):
            if not torch.compiler.is_compiling():
                recorder.leave_module()

        hooks.register_module_forward_pre_hook(enter)
        hooks.register_module_forward_hook(leave, always_call=True)

    def hook_optimizers(self):
        from torch.optim import optimizer as own
        # Module.to() swaps fake parameters, and refuses those that a weak reference has seen.
        torch.utils.weakref = types.SimpleNamespace(getweakrefs=lambda _: [])
        own._foreach_supported_types.append(torch._subclasses.FakeTensor)
        own.register_optimizer_step_pre_hook(self.before_update)
        own.register_optimizer_step_post_hook(self.after_update)

    def before_update(self, optimizer, *_):
        self.recorder.optimizer_depth += 1
        for group in optimizer.param_groups:
            self.recorder.kind(group["params"], "parameter")
            self.recorder.kind([p.grad for p in group["params"] if p.grad is not None], "gradient")

    def after_update(self, optimizer, *_):
        self.recorder.optimizer_depth -= 1
        for state in optimizer.state.values():
            self.recorder.kind([one for one in state.values() if isinstance(one, torch.Tensor)], "optimizer")
        if self.recorder.optimizer_depth:
            return
        self.steps += 1
        if self.steps == self.wanted:
            self.recorder.stop()
            raise StepRecorded
        if self.steps == self.wanted - 1:
            self.recorder.start()

    def hook_storages(self):
        plain, recorder = torch.UntypedStorage.resize_, self.recorder

        def resize_(storage, size):
            before = storage.nbytes()
            result = plain(storage, size)
            if storage.device.type in ("meta", "cuda") and before != storage.nbytes():
                recorder.resized(storage, before)
            return result

        torch.UntypedStorage.resize_ = resize_

    def hook_backward(self):
        plain, collectives = torch.autograd._engine_run_backward, self.collectives

        def run_backward(*args, **kwargs):
            with torch.autograd.set_multithreading_enabled(False):
                result = plain(*args, **kwargs)
            collectives.wait_for_all()
            return result

        torch.autograd._engine_run_backward = run_backward
        torch.autograd.graph._engine_run_backward = run_backward

    def hook_processes(self):
        os.environ.update(RANK=str(self.rank), LOCAL_RANK=str(self.rank % self.gpus_per_node),
                          WORLD_SIZE=str(self.world), LOCAL_WORLD_SIZE=str(self.gpus_per_node),
                          MASTER_ADDR="localhost", MASTER_PORT="29500")
        self.collectives.install()

        from torch.testing._internal.distributed.fake_pg import FakeStore
        plain_init = dist.init_process_group

        def init_process_group(*_, **__):
            if not dist.is_initialized():
                plain_init("fake", store=FakeStore(), rank=self.rank, world_size=self.world)

        dist.init_process_group = dist.distributed_c10d.init_process_group = init_process_group
        dist.device_mesh.init_process_group = init_process_group
        plain_new, c10d = dist.new_group, dist.distributed_c10d

        def new_group(ranks=None, timeout=None, backend=None, **kwargs):
            kwargs = {k: v for k, v in kwargs.items() if k != "pg_options" and k != "device_id"}
            return plain_new(ranks=ranks, backend="fake", **kwargs)

        dist.new_group = c10d.new_group = new_group
        dist._verify_params_across_processes = lambda *_: None  # reads data
        torch.distributed.utils._verify_param_shape_across_processes = lambda *_: None
        torch.nn.parallel.distributed._verify_param_shape_across_processes = lambda *_, **__: None
        torch.nn.parallel.distributed._sync_module_states = lambda **_: None
        hook_reducer()

    @contextlib.contextmanager
    def running(self):
        """Runs the body on fake tensors until the step is recorded."""
        with self.recorder.fake_mode, self.recorder:
            with contextlib.suppress(StepRecorded):
                yield

    def result(self):
        recorder = self.recorder
        if not recorder.events:
            raise CaptureError(
                f"the script ended after {self.steps} optimizer steps, before step {self.wanted} (--step N chooses one)")
        versions = {"torch": torch.__version__}
        versions |= {name: importlib.metadata.version(name) for name in LIBRARIES if name in sys.modules}
        return {"format": FORMAT, "version": 1, "gpu": self.gpu, "world": self.world, "rank": self.rank,
                "software": versions, "assumed": recorder.values.assumed, "modules": list(recorder.modules),
                "storages": recorder.storages, "live_at_start": recorder.at_start,
                "groups": list(recorder.groups), "kernels": list(recorder.kernels), "events": with_sorted_frees(recorder.events)}

    def save(self, path):
        text = json.dumps(self.result(), separators=(",", ":"))
        folder = os.path.dirname(os.path.abspath(path))
        handle, temporary = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w") as file:
            file.write(text.replace('["', '\n["').replace('{"op"', '\n{"op"') + "\n")
        os.replace(temporary, path)


def with_sorted_frees(events):
    """Sorts frees that follow one another: autograd drops what it saved in the order of addresses."""
    ordered = []
    for is_free, run in itertools.groupby(events, key=lambda event: event[0] == "free"):
        ordered.extend(sorted(run) if is_free else run)
    return ordered


def format_number(tensor, spec):
    return format(tensor.item(), spec) if tensor.dim() == 0 else object.__format__(tensor, spec)


def load_data_here():
    """Worker processes would not know the fake tensors."""
    loader = torch.utils.data.DataLoader
    plain = loader.__init__

    def __init__(self, *args, **kwargs):
        if len(args) > 5:
            args = (*args[:5], 0, *args[6:])
        kwargs.pop("num_workers", None)
        for worker in ("prefetch_factor", "persistent_workers", "pin_memory", "multiprocessing_context"):
            kwargs.pop(worker, None)
        plain(self, *args, **kwargs)

    loader.__init__ = __init__


class SilentLogger:
    """The reducer's logger asks for a timer of CUDA."""

    def __getattr__(self, _):
        return lambda *_: None


def hook_reducer():
    """DistributedDataParallel's own all-reduce reads its result from a future that fake groups leave empty."""
    data_parallel = torch.nn.parallel.DistributedDataParallel
    plain = data_parallel.forward

    def reduce(_, bucket):
        dist.all_reduce(bucket.buffer(), async_op=True)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    def forward(self, *args, **kwargs):
        if not self._comm_hooks:
            self.logger = SilentLogger()
            self.register_comm_hook(None, reduce)
        return plain(self, *args, **kwargs)

    data_parallel.forward = torch._dynamo.disable(forward, recursive=False)
    plain_init, assign = data_parallel._ddp_init_helper, dist._compute_bucket_assignment_by_size

    # A run makes one bucket, and others after its first backward, in the order in which gradients were ready. Here
    # they are in the reverse order of the parameters from the start.
    def init(self, parameters, *args, **kwargs):
        limits = [self.bucket_bytes_cap]
        if getattr(self, "bucket_bytes_cap_default", True):
            limits.insert(0, dist._DEFAULT_FIRST_BUCKET_BYTES)

        def assign_reversed(parameters, _, sparse=()):
            order = list(range(len(parameters)))[::-1]
            buckets, sizes = assign(parameters[::-1], limits, sparse[::-1], order)
            return buckets[::-1], sizes[::-1]

        dist._compute_bucket_assignment_by_size = assign_reversed
        plain_init(self, parameters, *args, **kwargs)

    data_parallel._ddp_init_helper = init
    dist.Reducer._rebuild_buckets = lambda _: False


def random_weights():
    """Models of transformers get their shapes from config.json. No weights are read."""
    from transformers import AutoConfig, modeling_utils

    def from_pretrained(cls, name, *_, config=None, dtype=None, torch_dtype=None, attn_implementation=None, **__):
        config = config or AutoConfig.from_pretrained(name)
        dtype = dtype or torch_dtype
        if dtype in (None, "auto"):
            dtype = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None) if dtype else None
        options = {"attn_implementation": attn_implementation} if attn_implementation else {}
        if dtype is not None:
            options["torch_dtype"] = dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(dtype).removeprefix("torch."))
        return cls._from_config(config, **options).eval()

    from transformers.utils import import_utils
    import_utils.is_fake_tensor = lambda _: False  # masks as in a run, not as in an export
    modeling_utils.PreTrainedModel.from_pretrained = classmethod(from_pretrained)
    modeling_utils.PreTrainedModel.initialize_weights = lambda self, *_, **__: None
