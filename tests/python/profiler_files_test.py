"""Memory snapshots of PyTorch and reports of Nsight Systems, read by tpsim_recipes alone and by the program.

Argument: the folder with the package. Run by ctest with TPSIM_PROGRAM set.
"""
import copy
import gzip
import os
import pathlib
import pickle
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))

from tpsim_recipes import memory_snapshot, nsys_report  # pylint: disable=wrong-import-position
from tpsim_recipes.recorders import Refusal  # pylint: disable=wrong-import-position

PROGRAM = os.path.realpath(os.environ["TPSIM_PROGRAM"])
GIB = 1 << 30
TABLES = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
    shortName INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, bytes INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
    textId INTEGER);
"""
NAMES = ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "void flash::flash_fwd_kernel<Traits>(params)",
         "void rms_norm_kernel<float>", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(Args)",
         "ncclDevKernel_AllGather_RING_LL(Args)", "iteration 9")


class Folder(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)

    def written(self, contents, name="file"):
        path = self.folder / name
        path.write_bytes(contents)
        return path

    def run_program(self, *words, **options):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, **options)
        return done.returncode, done.stdout, done.stderr

    def plan(self):
        path = self.folder / "plan.json"
        code, _, error = self.run_program("simulate", "--model", "bloom-560m", "--global-batch", 8, "--allow-oom", "--save", path)
        self.assertEqual(code, 0, error)
        return path


def site_in(file, function):
    return [{"filename": "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", "line": 114, "name": "forward"},
            {"filename": file, "line": 10, "name": function}]


def event(action, at, size, site=()):
    return {"action": action, "addr": at * GIB, "size": size * GIB, "stream": 0, "time_us": 0, "frames": site}


def two_steps():
    """4 GiB of weights, then two steps that allocate and free 3 GiB of activations; the second also has 1 GiB of logits."""
    build, forward, loss = site_in("/work/model.py", "build"), site_in("/work/model.py", "forward"), site_in("/work/loss.py", "loss")
    blocks = [{"size": 4 * GIB, "requested_size": 4 * GIB, "state": "active_allocated", "frames": build},
              {"size": 6 * GIB, "requested_size": 0, "state": "inactive", "frames": []}]
    events = [event("alloc", 4, 3, forward), event("free_requested", 4, 3, loss), event("free_completed", 4, 3, loss),
              event("segment_alloc", 8, 2), event("alloc", 4, 3, forward), event("alloc", 8, 1, loss),
              event("free", 8, 1, loss), event("free_completed", 4, 3, loss)]
    return {"segments": [{"device": 0, "address": 0, "total_size": 10 * GIB, "stream": 0, "blocks": blocks}],
            "device_traces": [events]}


class Snapshots(Folder):
    def read(self, snapshot, protocol=4):
        return memory_snapshot.read(self.written(pickle.dumps(snapshot, protocol)))

    def check_two_steps(self, peak):
        self.assertEqual((peak["allocated"], peak["reserved"], peak["kept"], peak["missing"]), (8 * GIB, 10 * GIB, 4 * GIB, 0))
        self.assertEqual([(one["site"], one["bytes"] // GIB, one["blocks"]) for one in peak["live"]],
                         [("model.py:10 build", 4, 1), ("model.py:10 forward", 3, 1), ("loss.py:10 loss", 1, 1)])

    def test_the_peak_of_a_snapshot_is_what_was_allocated_at_once(self):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            self.check_two_steps(self.read(two_steps(), protocol))

    def test_memory_that_was_freed_but_not_allocated_in_the_recording_counts_before(self):
        snapshot = two_steps()
        del snapshot["device_traces"][0][0]
        self.check_two_steps(self.read(snapshot))
        del snapshot["device_traces"][0][:5]
        peak = self.read(snapshot)
        self.assertEqual((peak["allocated"], [one["blocks"] for one in peak["live"]]), (8 * GIB, [2, 1]))

    def test_a_model_that_exists_unsharded_at_start_up_is_not_the_peak_of_the_steps(self):
        snapshot = two_steps()
        build = snapshot["segments"][0]["blocks"][0]["frames"]
        snapshot["device_traces"][0][:0] = [event("alloc", 20, 16, build), event("free", 20, 16, build), event("alloc", 0, 4, build)]
        peak = self.read(snapshot)
        self.assertEqual(peak["start_up"], 16 * GIB)
        self.check_two_steps(peak)
        self.assertEqual(self.read(two_steps())["start_up"], 0)

    def test_a_request_that_ran_out_of_memory_is_reported(self):
        snapshot = two_steps()
        snapshot["device_traces"][0].append({"action": "oom", "device_free": 7, "size": 5 * GIB, "stream": 0})
        self.assertEqual(self.read(snapshot)["missing"], 5 * GIB)

    def test_the_gpu_with_the_most_memory_is_read(self):
        snapshot = two_steps()
        snapshot["segments"][0]["device"] = 1
        snapshot["device_traces"].insert(0, [])
        self.check_two_steps(self.read(snapshot))

    def test_files_that_are_not_snapshots_of_a_gpu_are_refused(self):
        lacking = two_steps()
        lacking["segments"] = []
        silent = two_steps()
        silent["device_traces"] = [[]]
        for snapshot, wanted in (([], "is not a memory snapshot"), (lacking, "no memory of a GPU"), (silent, "no events")):
            with self.assertRaisesRegex(Refusal, wanted):
                self.read(snapshot)

    def test_a_pickle_that_names_a_function_is_refused_and_not_run(self):
        mark = self.folder / "ran"

        class Runs:
            def __reduce__(self):
                return os.mkdir, (str(mark),)

        plan = self.plan()
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            hostile = self.written(pickle.dumps({**two_steps(), "more": Runs()}, protocol), "hostile.pickle")
            with self.assertRaisesRegex(Refusal, "makes the Python object posix.mkdir"):
                memory_snapshot.read(hostile)
        code, _, error = self.run_program("explain", plan, "--memory", "--snapshot", hostile)
        self.assertEqual((code, error.count("posix.mkdir")), (2, 1), error)
        self.assertFalse(mark.exists())

    def test_damaged_snapshots_are_one_clear_error_of_the_program(self):
        plan = self.plan()
        whole = pickle.dumps(two_steps(), 4)
        wrong = two_steps()
        wrong["device_traces"][0][0]["size"] = "large"
        huge = copy.deepcopy(two_steps())
        huge["segments"][0]["total_size"] = 1 << 80
        for contents in (b"", b"{}", whole[:200], pickle.dumps(wrong), pickle.dumps(huge)):
            path = self.written(contents, "rank0.pickle")
            code, _, error = self.run_program("explain", plan, "--memory", "--snapshot", path)
            self.assertEqual(code, 2, error)
            self.assertIn("rank0.pickle", error)

    def test_the_program_reads_what_it_writes(self):
        plan, path = self.plan(), self.folder / "stage.pickle"
        code, text, error = self.run_program("explain", plan, "--memory", "--save-snapshot", path)
        self.assertEqual(code, 0, error)
        peak = memory_snapshot.read(path)
        self.assertEqual(peak["reserved"], pickle.loads(path.read_bytes())["segments"][0]["total_size"])
        packed = self.written(gzip.compress(path.read_bytes()), "stage.pickle.gz")
        code, text, error = self.run_program("explain", plan, "--memory", "--snapshot", packed)
        self.assertEqual(code, 0, error)
        self.assertIn(f"{peak['events']:,} events", text)


def process(pid):
    return 1 << 56 | pid << 24


def row(table, *values):
    return f"INSERT INTO {table} VALUES ({', '.join(map(str, values))});"


def step(at_us, device, pid):
    """One step of 100 us: 40 us of GEMMs, 20 us of attention, 10 us of norms, 5 us of copies, and 20 us of collectives, half of
    them overlapped with GEMMs. The remaining 15 us are idle.
    """
    kernels = [(0, 40, 1), (40, 20, 2), (60, 10, 3), (30, 10, 4), (70, 10, 5)]
    return "".join(row("CUPTI_ACTIVITY_KIND_KERNEL", 1000 * (at_us + begin), 1000 * (at_us + begin + length), device, 1, 7, 1,
                       process(pid), name, name) for begin, length, name in kernels) + \
        row("CUPTI_ACTIVITY_KIND_MEMCPY", 1000 * (at_us + 80), 1000 * (at_us + 85), device, 4096)


def mark(text, at_us, pid):
    return row("NVTX_EVENTS", 1000 * at_us, 1000 * (at_us + 100), 59, repr(text), process(pid) + 17, "NULL")


NAMED = TABLES + "".join(row("StringIds", i + 1, repr(name)) for i, name in enumerate(NAMES))
TWO_STEPS = NAMED + step(1000, 0, 40) + step(1100, 0, 40) + step(1000, 1, 41) + mark("step 8", 1000, 40) + \
    mark("step 9", 1100, 40) + mark("step 8", 900, 41) + mark("forward", 1000, 40)


class Reports(Folder):
    def database(self, commands):
        path = self.folder / "it.sqlite"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as database:
            database.executescript(commands)
        database.close()
        return path

    def refused(self, commands):
        with self.assertRaises(Refusal) as raised:
            nsys_report.read(self.database(commands))
        return f"{raised.exception} {raised.exception.hint}"

    def test_kernels_and_marked_steps_of_the_first_gpu_are_read(self):
        contents = nsys_report.read(self.database(TWO_STEPS))
        self.assertEqual(contents["steps"], [0, 100_000, 100_000, 200_000])
        spans = {one["name"]: one["spans"] for one in contents["kernels"]}
        self.assertEqual(spans[NAMES[0]], [0, 40_000, 100_000, 140_000])
        self.assertEqual(spans["copy"], [80_000, 85_000, 180_000, 185_000])
        self.assertEqual(set(spans), {"copy", *NAMES[:5]})

    def test_the_program_sums_a_report_like_a_trace_of_torch_profiler(self):
        plan, path = self.plan(), self.database(TWO_STEPS)
        answers = [self.run_program("check-log", path, plan)]
        packed = self.written(gzip.compress(path.read_bytes()), "it.sqlite.gz")
        answers.append(self.run_program("check-log", packed, plan))
        for code, text, error in answers:
            self.assertIn(code, (0, 1), error)
            self.assertIn("(2 steps)", text)
            measured = [line.split()[-3] for line in text.splitlines() if line.startswith(
                ("  GEMMs", "  other kernels", "  exposed", "  no kernel"))]
            self.assertEqual(measured, ["60.00", "15.00", "10.00", "15.00"])
            self.assertEqual(text, answers[0][1])

    def test_step_marks_may_have_several_names_directly_or_in_a_table_of_texts(self):
        for text in ("ProfilerStep#3", "Iteration: 3", "train_step_3", "batch3"):
            self.assertTrue(nsys_report.marks_step(text), text)
            contents = nsys_report.read(self.database(NAMED + step(1000, 2, 40) + mark(text, 1000, 40)))
            self.assertEqual(len(contents["steps"]), 2)
        for text in ("forward", "3", "step", "layer 3", ""):
            self.assertFalse(nsys_report.marks_step(text), text)
        by_id = row("NVTX_EVENTS", 1000000, 1100000, 59, "NULL", process(40), 6)
        self.assertEqual(len(nsys_report.read(self.database(NAMED + step(1000, 0, 40) + by_id))["steps"]), 2)

    def test_other_databases_and_incomplete_reports_are_one_clear_error(self):
        self.assertIn("without GPU kernels", self.refused("CREATE TABLE a (b);"))
        self.assertIn("without GPU kernels", self.refused(NAMED))
        graphs = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1);"
        self.assertIn("--cuda-graph-trace=node", self.refused(TWO_STEPS + graphs))
        unmarked = self.database(NAMED + step(1000, 0, 40) + mark("forward", 1000, 40))
        code, _, error = self.run_program("check-log", unmarked, self.plan())
        self.assertEqual((code, error.count("without step marks"), error.count("nvtx.range_push")), (2, 1, 1), error)

    def test_views_are_not_run(self):
        endless = ("WITH RECURSIVE x(start, end, deviceId, demangledName) AS (SELECT 1, 2, 0, 1 UNION ALL "
                   "SELECT start + 1, end + 1, 0, 1 FROM x) SELECT * FROM x;")
        self.assertIn("without GPU kernels", self.refused(
            NAMED + "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS " + endless))
        path = self.database(TWO_STEPS + "DROP TABLE StringIds; CREATE VIEW StringIds AS SELECT 1 AS id, 'x' AS value;")
        with self.assertRaisesRegex(sqlite3.DatabaseError, "not authorized|prohibited"):
            nsys_report.read(path)

    def test_damaged_reports_are_errors(self):
        whole = self.database(TWO_STEPS).read_bytes()
        damaged = [whole[:cut] for cut in range(100, len(whole), 512)]
        damaged += [whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1:] for at in range(100, len(whole), 97)]
        texts = {b"".join([whole[:at], b"text", whole[at + 4:]]) for at in range(1000, len(whole), 601)}
        for contents in [*damaged, *texts]:
            try:
                found = nsys_report.read(self.written(contents, "it.sqlite"))
            except (Refusal, sqlite3.Error, ValueError, TypeError, OverflowError):
                continue
            self.assertTrue(all(type(time) is int for one in found["kernels"] for time in one["spans"]))
        plan = self.plan()
        for contents in damaged[:3]:
            code, _, error = self.run_program("check-log", self.written(contents, "it.sqlite"), plan)
            self.assertEqual((code, error.count("it.sqlite")), (2, 1), error)


class Programs(Folder):
    def test_a_machine_without_python3_is_named_as_the_reason(self):
        plan, nowhere = self.plan(), {**os.environ, "PATH": str(self.folder)}
        with sqlite3.connect(self.folder / "it.sqlite") as database:
            database.executescript(TWO_STEPS)
        database.close()
        snapshot = self.written(pickle.dumps(two_steps()), "rank0.pickle")
        for words in (("check-log", self.folder / "it.sqlite", plan), ("explain", plan, "--memory", "--snapshot", snapshot)):
            code, _, error = self.run_program(*words, env=nowhere)
            self.assertEqual(code, 4, error)
            self.assertIn("python3 is missing", error)


if __name__ == "__main__":
    unittest.main()
