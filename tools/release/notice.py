"""Reads NOTICE: the libraries in the release programs and the sources of the data, with their
licenses."""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ENTRY = re.compile(r"(?P<name>\S.*): (?P<licence>[A-Z][\w.+-]*(?: WITH [\w.+-]+)?|blessing|Figures)$")


@dataclasses.dataclass
class Entry:
    name: str
    licence: str  # an SPDX expression, or "Figures" for data
    packages: list  # Debian packages of the library
    files: list  # patterns of files in data/, relative to the root of the tree


def entries(text):
    found = []
    for line in text.splitlines():
        item = line.strip()
        match = ENTRY.match(line)
        if match:
            found.append(Entry(match["name"], match["licence"], packages=[], files=[]))
        elif line.startswith("    ") and found and item.startswith("data/"):
            found[-1].files.append(item)
        elif line.startswith("    ") and found and " " not in item:
            found[-1].packages.append(item)
    return found


def libraries(root=ROOT):
    return [entry for entry in entries((root / "NOTICE").read_text()) if entry.packages]


def data_sources(root=ROOT):
    return [entry for entry in entries((root / "NOTICE").read_text()) if entry.files]
