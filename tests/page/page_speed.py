#!/usr/bin/env python3
"""Measures how fast a page of `tpsim report` shows its plan, in headless Chromium.

page_speed.py report.html [--runs 5] [--idle 30] [--limit SECONDS]: opens the page `--runs` times
and prints one line per run and the medians:

  first      seconds from opening the page to the first picture of the plan
  found      seconds to the end of the search
  longest    the longest task of the page's thread after the first picture, in milliseconds
  heap       memory of the page's WebAssembly programs in MB, all threads together
  idle       share of a core that the browser uses after the search, in percent

With `--check first=5,longest=200,heap=400,idle=0.5` the exit status is 1 if a median is above its
limit.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

from browser import Browser, BrowserError
from web_test import Page

WATCH = """
window.tpsimTasks = [];
new PerformanceObserver(list => {
  for (const task of list.getEntries()) tpsimTasks.push([task.startTime, task.duration]);
}).observe({ type: "longtask", buffered: true });
"""
HEAP = "(typeof tpsimHeap === 'function' ? tpsimHeap() : Module.HEAPU8.length) / 1e6"
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    """Returns the CPU time of a process and its children that are alive."""
    parents, times = {}, {}
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # the process has ended
        parents[int(folder.name)] = int(fields[1])
        times[int(folder.name)] = (int(fields[11]) + int(fields[12])) / TICKS
    def is_ours(child: int) -> bool:
        while child in parents and child != process:
            child = parents[child]
        return child == process
    return sum(time for child, time in times.items() if is_ours(child))


def visit(chromium: str, page: pathlib.Path, limit: float, idle: float) -> dict:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(chromium, page, profile, prepared=WATCH)
        try:
            tab = Page(browser)
            tab.wait_until("the plan is shown", lambda now: now.get("plan.runs") == "yes", limit)
            found = tab.wait_until("the search ends", lambda now: now.get("searching") == "no",
                                   limit)
            first = browser.value("performance.getEntriesByName('tpsim-first')[0].startTime")
            last = browser.value("performance.getEntriesByName('tpsim-found')[0].startTime")
            time.sleep(5)  # the browser then has ended the worker and drawn the last picture
            tasks = browser.value("tpsimTasks")
            after = [length for start, length in tasks if start >= first]
            heap = browser.value(HEAP)
            used, began = cpu_seconds(browser.process.pid), time.time()
            time.sleep(idle)
            used = cpu_seconds(browser.process.pid) - used
            share = 100 * used / (time.time() - began)
            if browser.errors:
                raise BrowserError(str(browser.errors))
            return {"first": first / 1000, "found": last / 1000, "longest": max(after, default=0),
                    "heap": heap, "idle": share, "plans": int(found["plans"])}
        finally:
            browser.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--idle", type=float, default=30)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--check", default="")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no Chromium here (apt-get install chromium)", file=sys.stderr)
        return 4
    runs = []
    for _ in range(options.runs):
        runs.append(visit(chromium, options.page.resolve(), options.limit, options.idle))
        print("  ".join(f"{name} {value:.2f}" for name, value in runs[-1].items()), flush=True)
    medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    print("median:", "  ".join(f"{name} {value:.2f}" for name, value in medians.items()),
          f"  (load {os.getloadavg()[0]:.1f})")
    limits = dict(part.split("=") for part in options.check.split(",") if part)
    broken = [name for name, most in limits.items() if medians[name] > float(most)]
    for name in broken:
        print(f"{name}: {medians[name]:.2f} is above {limits[name]}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
