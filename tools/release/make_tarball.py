#!/usr/bin/env python3
"""Makes tpsim-VERSION-ARCH-linux.tar.gz from a staged prefix (tools/release/stage.sh)."""
import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
import archive  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--arch", choices=["x86_64", "aarch64"], required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder")
    options = parser.parse_args()
    name = f"tpsim-{options.version}-{options.arch}-linux"
    files = archive.files_below(options.prefix, name)
    archive.write(options.output / f"{name}.tar.gz", archive.gzipped(archive.tar_of(files)))


if __name__ == "__main__":
    main()
