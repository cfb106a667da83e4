#!/usr/bin/env python3
"""Copies the license texts of the linked libraries from Debian's packages into a folder.

Usage: tools/release/licences.py FOLDER
"""
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
import notice  # noqa: E402


def main():
    folder = pathlib.Path(sys.argv[1])
    for library in notice.libraries():
        for package in library.packages:
            source = pathlib.Path("/usr/share/doc") / package / "copyright"
            if not source.exists():
                sys.exit(f"tools/release/licences.py: no {source}; tools/install_packages.sh installs {package}")
            shutil.copyfile(source, folder / package)
            (folder / package).chmod(0o644)


if __name__ == "__main__":
    main()
