#!/usr/bin/env python3
"""Packs the program for browsers into one HTML page.

pack_page.py page.html program.js program.wasm data-folder out.html

The script, the program and the catalogue (models, clusters, profiles, stacks, campaigns) are
compressed, by zopfli where it is installed, and stored in the page as base-85 text: five characters
for four bytes. The alphabet is that of base64.b85encode, except for the character "<", which could
end a script. `tpsim report` adds the plan.
"""
import base64
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile


def compressed(data: bytes) -> bytes:
    zopfli = shutil.which("zopfli")
    if zopfli is None:
        return gzip.compress(data, 9, mtime=0)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return subprocess.run([zopfli, "-c", file.name], check=True, stdout=subprocess.PIPE).stdout


def packed(data: bytes) -> str:
    return base64.b85encode(compressed(data)).decode().replace("<", ",")


def catalogue_of(folder: pathlib.Path) -> bytes:
    files = {}
    for kind in ("models", "clusters", "profiles", "stacks", "campaigns"):
        for path in sorted((folder / kind).glob("*.json")):
            files[f"{kind}/{path.name}"] = json.dumps(json.loads(path.read_text()),
                                                      separators=(",", ":"))
    return json.dumps(files).encode()


def main() -> None:
    page, script, program, data, out = map(pathlib.Path, sys.argv[1:])
    text = page.read_text()
    parts = {"SCRIPT": script.read_bytes(), "PROGRAM": program.read_bytes(),
             "CATALOGUE": catalogue_of(data)}
    for name, part in parts.items():
        assert f"@{name}@" in text, name
        text = text.replace(f"@{name}@", packed(part))
    out.write_text(text)


if __name__ == "__main__":
    main()
