"""Reads a memory snapshot of PyTorch, the pickle that torch.cuda.memory._dump_snapshot() writes, and returns its peak.

Keys are those of torch/cuda/_memory_viz.py and torch/csrc/cuda/Module.cpp.
"""
import pickle

from .recorders import Refusal

HINT = "give a file that torch.cuda.memory._dump_snapshot() wrote"
# "free" is the action of PyTorch 2.0. Later versions write "free_requested" too, when a stream still uses the memory.
ACTIONS = {"alloc": "alloc", "free": "free", "free_completed": "free", "segment_alloc": "grow", "segment_map": "grow",
           "segment_free": "shrink", "segment_unmap": "shrink", "oom": "oom"}
NO_SITE = "allocated before the recording, or without a call stack"


class PlainValues(pickle.Unpickler):
    """Creates numbers, texts and containers. PyTorch's snapshots name no class or function."""

    def find_class(self, module, name):
        raise Refusal(f"makes the Python object {module}.{name}, other than a number, text, list or dict", HINT)


def size_of(value):
    size = int(value)
    if size >> 63:
        raise Refusal("has a size of more than 63 bits", HINT)
    return size


def site_text(frames):
    """Returns the innermost Python frame of the training program. PyTorch's own frames are skipped."""
    python = [frame for frame in frames if frame["filename"].endswith(".py")]
    if not python:
        return "no Python frame (backward runs in C++)"
    frame = next((one for one in python if "/torch/" not in one["filename"]), python[0])
    return f"{frame['filename'].rpartition('/')[2]}:{frame['line']} {frame['name']}"


class Gpu:
    """One GPU of a snapshot. `live`: (bytes, site) by address, after the last event."""

    def __init__(self, root, number):
        self.sites, self.live = {}, {}
        segments = [one for one in root["segments"] if one.get("device", 0) == number]
        self.reserved = sum(size_of(one["total_size"]) for one in segments)
        for segment in segments:
            address = segment["address"]
            for block in segment["blocks"]:
                if block["state"].startswith("active"):
                    self.live[address] = (size_of(block.get("requested_size") or block["size"]), self.site_of(block))
                address += block["size"]
        # Out-of-memory events have no address.
        self.events = [(ACTIONS[one["action"]], one.get("addr", 0), size_of(one["size"]), self.site_of(one))
                       for one in root["device_traces"][number] if one["action"] in ACTIONS]

    def site_of(self, owner):
        """Call stacks are shared between the events of one site."""
        frames = owner.get("frames")
        if not frames:
            return NO_SITE
        if id(frames) not in self.sites:
            self.sites[id(frames)] = site_text(frames)
        return self.sites[id(frames)]

    def live_before(self):
        """Returns what was allocated before the first event. The site of a free is where memory is freed."""
        live = dict(self.live)
        for action, address, size, _ in reversed(self.events):
            if action == "alloc":
                live.pop(address, None)
            elif action == "free":
                live[address] = (size, NO_SITE)
        return live

    def events_of_start_up(self):
        """Returns the number of events after which start-up has ended; 0 if none of it was recorded."""
        kept, later = dict(self.live), 0
        limit = total(kept) // 20
        for i in range(len(self.events), 0, -1):
            action, address, _, _ = self.events[i - 1]
            if action == "alloc" and address in kept:
                later += kept.pop(address)[0]
                if later > limit:
                    return i
        return 0

    def highest_reserved(self, first):
        now = most = self.reserved
        for action, _, size, _ in reversed(self.events[first:]):
            now += {"grow": -size, "shrink": size}.get(action, 0)
            most = max(most, now)
        return most


def total(live):
    return sum(size for size, _ in live.values())


def highest_allocated(events, now):
    """Returns the number of events until the highest allocated memory, and its bytes. `now`: bytes before them."""
    most, at = now, 0
    for i, (action, _, size, _) in enumerate(events):
        now += {"alloc": size, "free": -size}.get(action, 0)
        if now > most:
            most, at = now, i + 1
    return at, most


def replay(events, live):
    for action, address, size, site in events:
        if action == "alloc":
            live[address] = (size, site)
        elif action == "free":
            live.pop(address, None)


def by_site(live):
    sites = {}
    for size, site in live.values():
        blocks, known = sites.get(site, (0, 0))
        sites[site] = (blocks + 1, known + size)
    return [{"site": site, "blocks": blocks, "bytes": size}
            for site, (blocks, size) in sorted(sites.items(), key=lambda one: (-one[1][1], one[0]))]


def read(file):
    """Returns the peak of the GPU with the most memory, with the fields of SnapshotPeak (evidence/logs/profiler_files.h)."""
    with open(file, "rb") as stream:
        root = PlainValues(stream).load()
    if not isinstance(root, dict) or "segments" not in root or "device_traces" not in root:
        raise Refusal('is not a memory snapshot: it lacks "segments" or "device_traces"', HINT)
    gpu = max((Gpu(root, i) for i in range(len(root["device_traces"]))), key=lambda one: one.reserved, default=None)
    if gpu is None or not gpu.reserved:
        raise Refusal("the snapshot contains no memory of a GPU", "call _dump_snapshot() before the model is deleted")
    if not gpu.events:
        raise Refusal("the snapshot contains no events", "call torch.cuda.memory._record_memory_history() before the steps")
    first, live = gpu.events_of_start_up(), gpu.live_before()
    start_up = highest_allocated(gpu.events[:first], total(live))[1] if first else 0
    replay(gpu.events[:first], live)
    at = first + highest_allocated(gpu.events[first:], total(live))[0]
    replay(gpu.events[first:at], live)
    answer = {"allocated": total(live), "reserved": gpu.highest_reserved(first), "start_up": start_up,
              "missing": ([0] + [size for action, _, size, _ in gpu.events if action == "oom"])[-1],
              "events": len(gpu.events), "live": by_site(live)}
    replay([one for one in gpu.events[at:] if one[0] == "free"], live)
    return {**answer, "kept": total(live)}
