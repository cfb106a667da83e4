"""Process groups without peers. Collectives are recorded with their group, bytes and stream.

NCCL runs a collective on a stream of its group, after the work that its caller's stream has, and
the caller's stream waits when the work's wait() is called.
"""
import torch
import torch.distributed as dist
from torch.utils._python_dispatch import _disable_current_modes

from .guard import load_guard
from .recorder import name_of
from .values import tensors_in, value_of

FIRST_STREAM = 1000  # numbers of the groups' streams
# Ops on one array: its largest form is the whole array of the group.
WHOLE = ("_allgather_base_", "_reduce_scatter_base_", "alltoall_base_", "all_gather_into_tensor",
         "reduce_scatter_tensor", "all_to_all_single")
ASYNC = ("allreduce", "broadcast", "allgather", "_allgather_base", "reduce_scatter", "_reduce_scatter_base",
         "alltoall", "alltoall_base", "reduce", "barrier", "send", "recv", "gather", "scatter",
         "allreduce_coalesced", "allgather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced",
         "allgather_coalesced")


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def gather_values(sent, outs):
    """All ranks have the numbers of this one."""
    known = [value_of(tensor) for tensor in sent]
    if len(known) != 1 or known[0] is None:
        return
    for tensor in outs:
        copies = tensor.numel() // max(known[0].numel(), 1)
        with _disable_current_modes():
            tensor._tpsim_value = known[0].flatten().repeat(copies).reshape(tensor.shape)


class Collectives:
    def __init__(self, recorder):
        self.recorder = recorder
        self.streams, self.pending, self.of_tensor = {}, {}, {}
        self.last_mark = None
        self.open_marks = []

    def install(self):
        group_class = torch._C._distributed_c10d.ProcessGroup
        work_class = torch._C._distributed_c10d.Work
        own = self

        def wait(work, *args):
            own.wait_for(own.pending.pop(id(work), (None, None))[0])
            return True

        for name in ASYNC:
            plain = getattr(group_class, name, None)
            if plain is None:
                continue

            def call(group, *args, _plain=plain, **kwargs):
                own.last_mark = None
                work = _plain(group, *args, **kwargs)
                if own.last_mark is not None and work is not None:
                    own.pending[id(work)] = (own.last_mark, work)
                return work

            setattr(group_class, name, call)
        work_class.wait = wait

    def group_of(self, args, kwargs):
        for arg in [*args, *kwargs.values()]:
            if isinstance(arg, torch.ScriptObject):
                try:
                    return dist.ProcessGroup.unbox(arg)
                except (RuntimeError, TypeError):
                    continue
            if isinstance(arg, str):
                try:
                    return dist.distributed_c10d._resolve_process_group(arg)
                except (RuntimeError, KeyError, ValueError):
                    continue
            if isinstance(arg, dist.ProcessGroup):
                return arg
        return None

    def wait_for(self, mark):
        if mark is not None:
            if mark in self.open_marks:
                self.open_marks.remove(mark)
            self.recorder.waits(load_guard().tpsim_current_stream(), mark)

    def wait_for_all(self):
        """DistributedDataParallel's reducer waits in C++, when backward ends."""
        for mark in list(self.open_marks):
            self.wait_for(mark)

    def run(self, func, args, kwargs):
        recorder = self.recorder
        name = func.overloadpacket.__name__
        if name == "wait_tensor":
            self.wait_for(self.of_tensor.pop(args[0].untyped_storage()._cdata, None))
            return args[0]
        with recorder.fake_mode:
            out = func(*args, **kwargs)
        leaves, outs = tensors_in((args, kwargs)), tensors_in(out)
        if "gather" in name:
            is_functional = func.namespace == "_c10d_functional"  # (input, ..), else (output, input, ..)
            gather_values(tensors_in(args[0 if is_functional else 1]), outs or tensors_in(args[0]))
        for tensor in outs:
            recorder.note_storage(tensor)
        on_gpu = [t for t in leaves + outs if t.device.type == "cuda"]
        if not recorder.is_recording or not on_gpu:
            return out
        group = self.group_of(args, kwargs)
        ranks = dist.get_process_group_ranks(group) if group is not None else []
        largest = [max(leaves + outs, key=lambda t: bytes_of([t]))] if name in WHOLE else leaves or outs
        stream = self.streams.setdefault(tuple(ranks), FIRST_STREAM + len(self.streams))
        ready = recorder.marks(load_guard().tpsim_current_stream())
        recorder.waits(stream, ready)
        phase = recorder.phase()
        recorder.events.append(["collective", name.strip("_"), phase, stream,
                                recorder.modules.place(recorder.module(phase)), recorder.groups.place(ranks),
                                bytes_of(largest), name_of(largest[0].dtype)])
        done = recorder.marks(stream)
        self.open_marks.append(done)
        self.last_mark = done
        if func.namespace == "_c10d_functional":
            for tensor in outs:
                self.of_tensor[tensor.untyped_storage()._cdata] = done
        return out
