#!/usr/bin/env python3
"""Makes the wheel of a program and its Python package. The same files give the same bytes.

Usage: tools/release/make_wheel.py --program FILE --package FOLDER --arch x86_64|aarch64 --version V
--output FOLDER
                                   [--notices FOLDER]

--program   tpsim; for a static program the tags of the wheel permit any Linux
--package   the built package, such as build/static/python/tpsim; its files are the same for every
architecture
--notices   folder with the license texts of the libraries in the program

Files are dated SOURCE_DATE_EPOCH, or 1980. Needs Python 3.11.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import stat
import struct
import sys
import time
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GENERATED = ["_options.py", "_reports.py", "_calls.pyi"]
MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine of ELF
# A static program depends only on the kernel, so the tags are those of the oldest systems with
# wheels.
ANY_LINUX = {
    "x86_64": ["manylinux_2_5_x86_64", "manylinux1_x86_64", "musllinux_1_1_x86_64"],
    "aarch64": ["manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"],
}
OLDEST_DATE = (1980, 1, 1, 0, 0, 0)  # earliest date of the zip format


def fail(message):
    sys.exit(f"tools/release/make_wheel.py: {message}")


def read(path):
    try:
        return path.read_bytes()
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def platform_tags(program, path, arch):
    """Returns the platform tags of the systems that an ELF program of this architecture runs on."""
    if program[:6] != b"\x7fELF\x02\x01":
        fail(f"{path} is not a 64-bit little-endian ELF program")
    (machine,) = struct.unpack_from("<H", program, 18)
    if machine != MACHINES[arch]:
        known = {value: name for name, value in MACHINES.items()}
        fail(f"{path} is for {known.get(machine, f'machine {machine}')}, not for {arch}")
    (headers,), (size, count) = struct.unpack_from("<Q", program, 32), struct.unpack_from("<HH", program, 54)
    kinds = [struct.unpack_from("<I", program, headers + i * size)[0] for i in range(count)]
    needs_a_loader = 3 in kinds  # PT_INTERP: a dynamic program
    return [f"linux_{arch}"] if needs_a_loader else ANY_LINUX[arch]


def package_files(folder, version):
    """Returns the files of the package by their name in the wheel: those of python/tpsim and
    generated ones."""
    names = [path.name for path in (ROOT / "python" / "tpsim").iterdir() if path.suffix in (".py", ".typed")] + GENERATED
    for name in GENERATED:
        if not (folder / name).is_file():
            fail(f"{folder} has no {name}: name the package that a build completed, "
                 "as build/release/python/tpsim")
    files = {f"tpsim/{name}": read(folder / name) for name in names}
    if f"\nVERSION = {version!r}\n" not in files["tpsim/_options.py"].decode():
        fail(f"{folder}/_options.py is not of version {version}")
    return files


def metadata_text(project, version, licences):
    """Returns the text of METADATA, from pyproject.toml."""
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}",
             f"Summary: {project['description']}", f"Author: {project['authors'][0]['name']}",
             f"License-Expression: {project['license']}"]
    lines += [f"License-File: {name}" for name in licences]
    lines.append(f"Keywords: {','.join(project['keywords'])}")
    lines += [f"Classifier: {one}" for one in project["classifiers"]]
    lines += [f"Requires-Python: {project['requires-python']}", "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + read(ROOT / project["readme"]).decode()


def record_text(files, name):
    rows = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}")
    return "\n".join([*rows, f"{name},,"]) + "\n"


def date():
    given = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not given.isdigit():
        fail(f"SOURCE_DATE_EPOCH is '{given}', not seconds since 1970")
    return max(time.gmtime(int(given))[:6], OLDEST_DATE)


def write_zip(path, files, programs):
    partial = path.with_name(path.name + ".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, date())
            info.create_system = 3  # Unix file modes
            info.external_attr = (stat.S_IFREG | (0o755 if name in programs else 0o644)) << 16
            wheel.writestr(info, content, zipfile.ZIP_DEFLATED, 9)
    partial.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--package", type=pathlib.Path, required=True)
    parser.add_argument("--arch", choices=MACHINES, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--notices", type=pathlib.Path)
    given = parser.parse_args()

    project = tomllib.loads(read(ROOT / "pyproject.toml").decode())["project"]
    program = read(given.program)
    tags = platform_tags(program, given.program, given.arch)
    licences = {name: ROOT / name for name in sorted(project["license-files"]) if (ROOT / name).is_file()}
    if given.notices:
        licences.update({f"licenses/{path.name}": path for path in sorted(given.notices.iterdir())})
    name = f"{project['name']}-{given.version}"
    script = f"{name}.data/scripts/tpsim"
    files = dict(sorted({**package_files(given.package, given.version), script: program}.items()))
    info = {
        "METADATA": metadata_text(project, given.version, licences).encode(),
        "WHEEL": "\n".join(["Wheel-Version: 1.0", "Generator: tpsim", "Root-Is-Purelib: false",
                            *(f"Tag: py3-none-{tag}" for tag in tags)]).encode() + b"\n",
        **{f"licenses/{licence}": read(path) for licence, path in licences.items()},
    }
    files.update({f"{name}.dist-info/{key}": content for key, content in sorted(info.items())})
    record = f"{name}.dist-info/RECORD"  # last, as the format recommends
    files[record] = record_text(files, record).encode()
    given.output.mkdir(parents=True, exist_ok=True)
    path = given.output / f"{name}-py3-none-{'.'.join(tags)}.whl"
    write_zip(path, files, {script})
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
