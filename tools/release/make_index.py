#!/usr/bin/env python3
"""Makes a package index of the wheels in a folder, which pip and uv read (PEP 503).

Usage: tools/release/make_index.py FOLDER

Writes FOLDER/simple/tpsim/index.html with relative links and checksums. Serve FOLDER over HTTP, and
give the address of `simple` to pip or uvx as --index-url.
"""

import hashlib
import pathlib
import sys

PAGE = """<!DOCTYPE html>
<html><head><meta name="pypi:repository-version" content="1.0"><title>tpsim</title></head><body>
{}
</body></html>
"""


def main():
    folder = pathlib.Path(sys.argv[1])
    wheels = sorted(folder.glob("tpsim-*.whl"))
    if not wheels:
        sys.exit(f"tools/release/make_index.py: {folder} contains no wheel; make_wheel.py creates them")
    links = [f'<a href="../../{wheel.name}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}" '
             f'data-requires-python="&gt;=3.8">{wheel.name}</a><br>' for wheel in wheels]
    pages = {"simple/tpsim/index.html": "\n".join(links), "simple/index.html": '<a href="tpsim/">tpsim</a>'}
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(PAGE.format(text))


if __name__ == "__main__":
    main()
