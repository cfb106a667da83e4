#!/usr/bin/env python3
"""Compares the pictures of two folders: compare_pictures.py now stored name...

PNG files are equal if no channel of a pixel differs by more than one level: processors round the
last bit of cosines differently. Other files are equal if their bytes are. Exits with 1 if a picture
differs or is missing.
"""
import pathlib
import sys
import zlib

CHANNELS = 3  # as tpsim writes pictures


def content(file: pathlib.Path) -> tuple[bytes, bytes]:
    """Returns the head and the filtered rows of a PNG."""
    data = file.read_bytes()
    at, head, packed = 8, b"", b""
    while at < len(data):
        size, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        part = data[at + 8:at + 8 + size]
        head += part if kind == b"IHDR" else b""
        packed += part if kind == b"IDAT" else b""
        at += size + 12
    return head, zlib.decompress(packed)


def nearest(left: int, above: int, corner: int) -> int:
    """Returns the neighbour that PNG's fourth filter predicts from."""
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))


def pixels(head: bytes, filtered: bytes) -> bytearray:
    """Undoes the filters of the rows (PNG specification, section 9)."""
    stride = int.from_bytes(head[:4], "big") * CHANNELS
    above, result = bytes(CHANNELS + stride), bytearray()
    for start in range(0, len(filtered), stride + 1):
        kind, row = filtered[start], bytearray(CHANNELS) + filtered[start + 1:start + 1 + stride]
        for i in range(CHANNELS, len(row) if kind else 0):
            left, up, corner = row[i - CHANNELS], above[i], above[i - CHANNELS]
            guess = (0, left, up, (left + up) // 2, nearest(left, up, corner) if kind == 4 else 0)[kind]
            row[i] = (row[i] + guess) & 255
        above = row
        result += row[CHANNELS:]
    return result


def equal(now: pathlib.Path, stored: pathlib.Path) -> bool:
    is_same = now.read_bytes() == stored.read_bytes()
    if is_same or now.suffix != ".png":
        return is_same
    mine, other = content(now), content(stored)
    return mine[0] == other[0] and all(abs(a - b) <= 1 for a, b in zip(pixels(*mine), pixels(*other)))


def main() -> int:
    now, stored = map(pathlib.Path, sys.argv[1:3])
    differ = [name for name in sys.argv[3:]
              if not (stored / name).exists() or not equal(now / name, stored / name)]
    for name in differ:
        print(f"{stored / name} is not what the program draws: run tools/screenshots.sh",
              file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
