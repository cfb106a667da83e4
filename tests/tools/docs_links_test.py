#!/usr/bin/env python3
"""Links in markdown pages and pages named in sources
exist. Decisions are named by topic, not by number."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = {".h", ".cc", ".cu", ".cuh", ".py", ".sh", ".cmake", ".md"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
DECISION_FILE = re.compile(r"docs/decisions/[\w-]+(?:\.md)?")
NUMBERED = re.compile(r"\b[dD]ecisions? \[?\d+")


def anchors(page):
    """Returns the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def faults(root, names):
    """Yields "FILE: FAULT" for every dead link, anchor and decision page in the named files below root."""
    for name in names:
        path = root / name
        if path.suffix not in SOURCES or not path.is_file() or path == pathlib.Path(__file__).resolve():
            continue
        text = path.read_text(errors="replace")
        for target in LINK.findall(text) if path.suffix == ".md" else ():
            page, _, anchor = target.partition("#")
            place = path.parent / page if page else path
            if target.startswith(("http://", "https://", "mailto:")):
                continue
            if not place.exists():
                yield f"{name}: there is no {target}"
            elif anchor and place.suffix == ".md" and anchor not in anchors(place):
                yield f"{name}: {page or name} has no heading #{anchor}"
        for page in DECISION_FILE.findall(text):
            if not (root / page).is_file():
                yield f"{name}: there is no {page}"
        for number in NUMBERED.findall(text):
            yield f"{name}: name the page of '{number}'"


class Links(unittest.TestCase):
    def test_pages_exist(self):
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
        if listed.returncode != 0:
            self.skipTest("no git repository")
        self.assertEqual(list(faults(ROOT, listed.stdout.splitlines())), [])

    def test_faults_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.md").write_text("# One two\n[b](b.md) [c](c.md#x) [own](#one-two) [none](#three) decision 7\n")
            (root / "c.md").write_text("# Y\n")
            (root / "d.cc").write_text("// docs/decisions/gone.md\n")
            self.assertEqual(list(faults(root, ["a.md", "c.md", "d.cc"])), [
                "a.md: there is no b.md", "a.md: c.md has no heading #x", "a.md: a.md has no heading #three",
                "a.md: name the page of 'decision 7'", "d.cc: there is no docs/decisions/gone.md"])


if __name__ == "__main__":
    sys.exit(unittest.main())
