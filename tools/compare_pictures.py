#!/usr/bin/env python3
"""Compares the pictures of two folders: compare_pictures.py now stored name...

PNG files are equal if their pixels are equal, whatever their compression. Exits with 1 if a picture
differs or is missing.
"""
import pathlib
import sys
import zlib


def content(file: pathlib.Path) -> bytes:
    """Returns the size and the pixels of a PNG, or the bytes of another file."""
    data = file.read_bytes()
    if file.suffix != ".png":
        return data
    at, head, packed = 8, b"", b""
    while at < len(data):
        size, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        part = data[at + 8:at + 8 + size]
        head += part if kind == b"IHDR" else b""
        packed += part if kind == b"IDAT" else b""
        at += size + 12
    return head + zlib.decompress(packed)


def main() -> int:
    now, stored = map(pathlib.Path, sys.argv[1:3])
    differ = [name for name in sys.argv[3:]
              if not (stored / name).exists() or content(now / name) != content(stored / name)]
    for name in differ:
        print(f"{stored / name} is not what the program draws: run tools/screenshots.sh",
              file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
