"""Captures programs with the installed PyTorch. Skipped where there is none."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PACKAGES, PROGRAM = sys.argv[1], sys.argv[2]

LINEAR = """
import torch
layer = torch.nn.Linear(64, 64, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    layer(torch.ones(8, 64, device="cuda")).sum().backward()
    optimizer.step()
"""
COMPILED = """
import torch
class Body(torch.nn.Sequential):
    def forward(self, x):
        return super().forward(x)
body = Body(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 64)).cuda()
on_cpu = torch.compile(torch.nn.functional.gelu)(torch.ones(64))
ADD
optimizer = torch.optim.SGD(body.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.ones(512, 64, device="cuda")).sum().backward()
    optimizer.step()
"""
BUCKETS = """
import torch
import torch.distributed as dist
dist.init_process_group("nccl")
model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048, bias=False) for _ in range(4))).cuda()
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(8, 2048, device="cuda")).sum().backward()
    optimizer.step()
"""
SCALED = """
import sys
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("nccl")
torch.set_default_device("cuda")
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU()) for _ in range(6)))
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(2):
    for _ in range(int(sys.argv[1])):
        loss = model(torch.ones(8192, 4096)).sum()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
RANDOM_AGAIN = """
import torch
layer = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
@torch.compile
def run(x):
    inner = lambda y: torch.nn.functional.dropout(layer(y).sin(), 0.1)
    return torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False).sum()
for _ in range(2):
    run(torch.ones(64, 64, device="cuda", requires_grad=True)).backward()
    optimizer.step()
"""
GATHERED = """
import torch
import torch.distributed as dist
dist.init_process_group("nccl")
x = torch.nn.Parameter(torch.ones(64, device="cuda"))
optimizer = torch.optim.SGD([x], lr=0.1)
for _ in range(2):
    counts = [torch.zeros(1, dtype=torch.int64, device="cuda") for _ in range(4)]
    dist.all_gather(counts, torch.full((1,), 3, device="cuda"))
    assert sum(int(one) for one in counts) == 12
    overflow = x.isnan().any().byte()
    dist.all_reduce(overflow, op=dist.ReduceOp.MAX)
    assert overflow.item() == 0
    x.sum().backward()
    optimizer.step()
"""
STREAMS = """
import torch
a = torch.nn.Parameter(torch.ones(1 << 20, device="cuda"))
optimizer = torch.optim.SGD([a], lr=0.1)
side = torch.cuda.Stream()
for _ in range(2):
    with torch.cuda.stream(side):
        b = a.detach() * 2
    torch.cuda.current_stream().wait_stream(side)
    (a * b).sum().backward()
    optimizer.step()
"""
ROUTED = """
import torch
x = torch.nn.Parameter(torch.ones(64, 16, device="cuda"))
optimizer = torch.optim.SGD([x], lr=0.1)
for _ in range(2):
    _, chosen = torch.topk(x, 2, dim=-1)
    rows = [(chosen == expert).nonzero().shape[0] for expert in range(16)]
    assert rows == [8] * 16, rows
    assert int(chosen.numel()) == 128
    x.sum().backward()
    optimizer.step()
"""
DATA_DEPENDENT = """
import torch
x = torch.ones(64, device="cuda")
x[x > 0.5]
"""


class Captures(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def capture(self, text, *options, args=()):
        (self.folder / "train.py").write_text(text)
        run = subprocess.run(
            [sys.executable, "-m", "tpsim_capture", *options, "--out", str(self.folder / "step.json"),
             str(self.folder / "train.py"), *args], capture_output=True, text=True, check=False,
            env=dict(os.environ, PYTHONPATH=PACKAGES))
        return run

    def step(self, text, *options, args=()):
        run = self.capture(text, *options, args=args)
        self.assertEqual(run.returncode, 0, run.stderr[-2000:])
        return json.loads((self.folder / "step.json").read_text())

    def test_a_step_has_the_ops_of_forward_backward_and_update(self):
        step = self.step(LINEAR)
        ops = [(event[2], step["kernels"][event[1]]["op"]) for event in step["events"] if event[0] == "kernel"]
        self.assertIn(("forward", "aten.addmm.default"), ops)
        self.assertIn(("backward", "aten.mm.default"), ops)
        self.assertTrue(any(phase == "optimizer" for phase, _ in ops))
        weights = sum(step["storages"][one][0] for one in step["live_at_start"] if step["storages"][one][1] == "parameter")
        self.assertEqual(weights, 4 * (64 * 64 + 64))

    def predicted(self, *options):
        run = subprocess.run([PROGRAM, "simulate", "--program", str(self.folder / "step.json"), "--cluster", "dgx-h100",
                              "--json", *options], capture_output=True, text=True, check=True)
        return json.loads(run.stdout)

    def test_the_program_predicts_it(self):
        self.step(LINEAR)
        self.assertGreater(self.predicted()["step_s"], 0)

    def test_ranks_and_accumulation_need_no_new_capture(self):
        self.step(SCALED, "--world", "8", args=["1"])
        scaled = [self.predicted("--ranks", "32"), self.predicted("--accumulation", "3")]
        self.step(SCALED, "--world", "32", args=["1"])
        captured = [self.predicted()]
        self.step(SCALED, "--world", "8", args=["3"])
        captured.append(self.predicted())
        for one, other in zip(scaled, captured):
            self.assertAlmostEqual(one["step_s"] / other["step_s"], 1, delta=0.02)
            self.assertAlmostEqual(one["peak_gib"] / other["peak_gib"], 1, delta=0.01)
            self.assertEqual(one["collectives"][0]["count"], other["collectives"][0]["count"])

    def test_compiled_regions_are_inductors_kernels(self):
        """GELU and LayerNorm are one kernel, and what backward needs of GELU is computed again."""
        eager = self.step(COMPILED.replace("ADD", "model = body"))
        for add in ("model = torch.compile(body)", "model = body; model.compile()",
                    "@torch.compile\ndef model(x):\n    return body(x)"):
            step = self.step(COMPILED.replace("ADD", add))
            ops = [step["kernels"][event[1]]["op"] for event in step["events"] if event[0] == "kernel"]
            fused = [op for op in ops if op.startswith("inductor.")]
            self.assertEqual(sum("gelu" in op and "backward" not in op for op in fused), 1, ops)
            self.assertFalse(any("gelu" in op or "layer_norm" in op for op in ops if op not in fused), ops)
            self.assertEqual(sum(".mm." in op or ".addmm." in op for op in ops), 5)
            self.assertLess(self.saved(step), self.saved(eager))

    @staticmethod
    def saved(step):
        """Bytes that the forward pass leaves for backward."""
        live = set()
        for event in step["events"]:
            if event[0] == "kernel" and event[2] == "backward":
                break
            if event[0] in ("allocate", "free"):
                (live.add if event[0] == "allocate" else live.discard)(event[1])
        return sum(step["storages"][one][0] for one in live)

    def test_buckets_are_reduced_while_backward_runs(self):
        step = self.step(BUCKETS, "--world", "8")
        sizes = [event[6] for event in step["events"] if event[0] == "collective"]
        self.assertEqual(sizes, [4 * 2048 * 2048, 8 * 2048 * 2048, 4 * 2048 * 2048])

    def test_compiled_checkpoints_run_forward_again(self):
        step = self.step(RANDOM_AGAIN)
        gemms = [event[2] for event in step["events"] if event[0] == "kernel" and "mm." in step["kernels"][event[1]]["op"]]
        self.assertEqual(gemms.count("forward"), 1)
        self.assertGreater(gemms.count("backward"), 2)

    def test_all_ranks_gather_the_numbers_of_one(self):
        self.step(GATHERED, "--world", "4")

    def test_streams_and_waits_are_recorded(self):
        step = self.step(STREAMS)
        streams = {event[3] for event in step["events"] if event[0] == "kernel"}
        self.assertEqual(len(streams), 2)
        marks = [event for event in step["events"] if event[0] == "mark"]
        waits = [event for event in step["events"] if event[0] == "wait"]
        self.assertEqual([mark[2] for mark in marks], [wait[2] for wait in waits])
        self.assertEqual(waits[0][1], 0)

    def test_routers_are_balanced(self):
        self.step(ROUTED)

    def test_what_cannot_be_captured_is_named_with_its_line(self):
        run = self.capture(DATA_DEPENDENT)
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, r"error: .*train.py:4: the size of aten")
        run = self.capture(LINEAR, "--step", "7")
        self.assertEqual(run.returncode, 2)
        self.assertIn("after 2 optimizer steps, before step 7", run.stderr)


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        print("skipped: PyTorch is not installed")
        sys.exit(0)
    del sys.argv[1:]
    unittest.main()
