#!/usr/bin/env python3
"""Checks comments and docs for wording that readers must decode.

Usage: tools/lint_language.py [--summary] [PATH...]

Reports two patterns, as PATH:LINE: RULE: TEXT, in the files that git lists (below PATH):
  opening   a comment block or Python docstring that starts with What, Of, Those, So many, Where or Whose
  is-no     "is no" before a noun; "there is no X" and "is no longer" are fine
--summary prints counts by folder instead. Exit code 1 if there is a finding or an unused exception.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLASHES = {".h", ".cc", ".cu", ".cuh"}
HASHES = {".py", ".sh", ".cmake", ".yml", ".yaml", ".toml"}
# Data files, and files of other projects that tests read, are not checked.
SKIPPED = re.compile(r"^(data/|tests/.*/(configs|launch_scripts)/|tools/lint_language\.py$)")
OPENING = re.compile(r"(What|Of|Those|So many|Where|Whose)\b")
IS_NO = re.compile(r"(?<!here )\bis no (?!longer\b|more\b|less\b|later\b|worse\b|better\b|[a-z]+er than\b)\w+")
# Accepted findings: (path, part of the text), at most 20, each with its reason.
EXCEPTIONS = []


def comment_of(path, line):
    """Returns the text of a line that is only a comment, else None."""
    marker = "//" if path.suffix in SLASHES else "#" if path.suffix in HASHES or path.name == "CMakeLists.txt" else None
    text = line.strip()
    return text.lstrip(marker + "!<").strip() if marker and text.startswith(marker) else None


def findings(path):
    """Yields (line number, rule, text) of a file."""
    before, lines = None, (ROOT / path).read_text(errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        comment = comment_of(path, line)
        docstring = path.suffix == ".py" and re.match(r'\s*"""(?=\w)', line)
        opening = line.strip()[3:] if docstring else comment if not before else None
        if opening and OPENING.match(opening):
            yield number, "opening", line.strip()
        # Joins the end of the previous line, since a sentence may break after "There".
        text = line if number == 1 else lines[number - 2].rstrip()[-6:] + " " + line.strip(" /#")
        if IS_NO.search(text):
            yield number, "is-no", line.strip()
        before = comment


def main():
    arguments = [a for a in sys.argv[1:] if a != "--summary"]
    listed = subprocess.run(["git", "ls-files", "--", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    kinds = SLASHES | HASHES | {".md", ".txt"}
    paths = [pathlib.Path(name) for name in listed.stdout.splitlines() if not SKIPPED.match(name)]
    found, used = [], set()
    for path in (p for p in paths if p.suffix in kinds and (ROOT / p).is_file()):
        for number, rule, text in findings(path):
            excused = [e for e in EXCEPTIONS if str(path) == e[0] and e[1] in text]
            used.update(excused)
            if not excused:
                found.append((path, number, rule, text))
    if "--summary" in sys.argv:
        counts = collections.Counter((path.parts[0], rule) for path, _, rule, _ in found)
        for (folder, rule), count in sorted(counts.items()):
            print(f"{count:5}  {rule:8} {folder}")
    else:
        for path, number, rule, text in found:
            print(f"{path}:{number}: {rule}: {text}")
    unused = [] if arguments else [e for e in EXCEPTIONS if e not in used]
    for path, text in unused:
        print(f"tools/lint_language.py: unused exception: {path}: {text}")
    print(f"{len(found)} findings, {len(EXCEPTIONS)} exceptions", file=sys.stderr)
    return 1 if found or unused or len(EXCEPTIONS) > 20 else 0


if __name__ == "__main__":
    sys.exit(main())
