"""Reads a Nsight Systems report written by `nsys export --type sqlite`: kernels and marked steps of one GPU.

Reads the tables CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY and _MEMSET, StringIds, and NVTX_EVENTS for step ranges ("step 7",
"iteration7", "ProfilerStep#7"). If the report covers several GPUs, only the GPU with the lowest number is read, with the
step ranges of its process. Tested with Nsight Systems 2021 to 2025.
"""
import os
import urllib.parse

from .recorders import Refusal

HINT = "export it again: nsys export --type sqlite report.nsys-rep"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
MOST_EVENTS = 1_900_000  # JSON readers of tpsim accept 4 million values
WORDS = {"step", "iteration", "iter", "profilerstep", "globalstep", "trainstep", "trainingstep", "trainiteration", "batch"}


def marks_step(text):
    """Whether the text of an NVTX range is a word for steps, then a number: "step 7", "train_step_7"."""
    head = text.rstrip("0123456789")
    return head != text and "".join(one for one in head if one.isascii() and one.isalpha()).lower() in WORDS


def process_of(combined):
    """Returns the process id in a combined id of NVTX or CUPTI (machine, process and thread)."""
    return f"({combined} >> 24 & 0xffffff)"


class Report:
    """A report as an untrusted database. Only tables are read, because views could run arbitrary queries."""

    def __init__(self, file):
        import sqlite3  # pylint: disable=import-outside-toplevel
        self.database = sqlite3.connect(f"file:{urllib.parse.quote(os.fsencode(file))}?mode=ro&immutable=1", uri=True)
        self.database.text_factory = lambda text: text.decode("utf-8", "replace")
        self.rows("PRAGMA trusted_schema=OFF")
        self.database.set_authorizer(lambda action, first, second, name, view: sqlite3.SQLITE_DENY if view else sqlite3.SQLITE_OK)

    def rows(self, query, *values):
        return self.database.execute(query, values)

    def columns(self, table):
        """Returns the column names of a table; empty if there is none."""
        found = self.rows("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", table).fetchone()[0]
        return {row[1] for row in self.rows(f"PRAGMA table_info({table})")} if found else set()

    def has(self, table, *columns):
        return self.columns(table).issuperset(columns)

    def kernels(self, device, name, first, last):
        """Returns names of kernels with their spans from `first` to before `last`, in ns after `first`."""
        names = dict(self.rows("SELECT id, CAST(value AS TEXT) FROM StringIds"))
        found, count = {}, 0
        for table, column in ((KERNELS, name), ("CUPTI_ACTIVITY_KIND_MEMCPY", "NULL"), ("CUPTI_ACTIVITY_KIND_MEMSET", "NULL")):
            if not self.has(table, "start", "end", "deviceId"):
                continue
            query = f'SELECT {column}, start, "end" FROM {table} WHERE deviceId = ? AND start >= ? AND start < ?'
            for number, begin, end in self.rows(query, device, first, last):
                begin, end, count = int(begin), int(end or 0), count + 1
                if count > MOST_EVENTS:
                    raise Refusal("has more kernels than tpsim can read", "profile fewer steps")
                key = ("copy", True) if column == "NULL" else (names.get(number) or "", False)
                found.setdefault(key, []).extend((begin - first, max(begin, end) - first))
        return [{"name": key[0], "is_copy": key[1], "spans": spans} for key, spans in found.items()]

    def steps(self, process):
        """Returns begin and end of the ranges of a process that mark steps. No process: of all processes."""
        columns = self.columns("NVTX_EVENTS")
        if not columns.issuperset(("start", "end", "text")):
            return []
        text, join = ("coalesce(n.text, s.value)", "LEFT JOIN StringIds s ON s.id = n.textId") if "textId" in columns \
            else ("n.text", "")
        own = f'{process_of("n.globalTid")} = {process}' if process > 0 and "globalTid" in columns else "1"
        return [(int(begin), max(int(begin), int(end))) for begin, end, mark in self.rows(
            f'SELECT n.start, n."end", CAST({text} AS TEXT) FROM NVTX_EVENTS n {join} WHERE n."end" IS NOT NULL AND {own}')
                if marks_step(mark or "")]


def read(file):
    """Returns "steps", begin and end of each marked step, and "kernels" of these steps; all times in ns."""
    report = Report(file)
    columns = report.columns(KERNELS)
    name = "demangledName" if "demangledName" in columns else "shortName"
    how = "profile with nsys profile --trace=cuda,nvtx"
    if not columns.issuperset(("start", "end", "deviceId", name)):
        raise Refusal("is a database without GPU kernels", f"{how}, then nsys export --type sqlite")
    device = report.rows(f"SELECT min(deviceId) FROM {KERNELS}").fetchone()[0]
    if device is None:
        raise Refusal("is a report without GPU kernels", how)
    if report.columns("CUPTI_ACTIVITY_KIND_GRAPH_TRACE") and \
            report.rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE").fetchone()[0]:
        raise Refusal("does not contain the kernels of CUDA graphs", "profile with --cuda-graph-trace=node")
    process = report.rows(f"SELECT {process_of('globalPid')} FROM {KERNELS} WHERE deviceId = ? "
                          "GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1", device).fetchone()[0] if "globalPid" in columns else 0
    steps = report.steps(process or 0)
    first, last = min((begin for begin, _ in steps), default=0), max((end for _, end in steps), default=0)
    return {"steps": [time - first for step in steps for time in step],
            "kernels": report.kernels(device, name, first, last)}
