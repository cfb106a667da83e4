"""tools/release/make_wheel.py: wheels are reproducible, complete, and work when unpacked.

Run by ctest with the arguments PROGRAM PACKAGE VERSION.
"""

import base64
import csv
import email
import functools
import hashlib
import http.server
import io
import os
import pathlib
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM, PACKAGE, VERSION = sys.argv[1:4]
ARCH = platform.machine()


def make(folder, program=PROGRAM, package=PACKAGE, arch=ARCH, version=VERSION, **environment):
    words = [ROOT / "tools" / "release" / "make_wheel.py", "--program", program, "--package", package,
             "--arch", arch, "--version", version, "--output", folder]
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, **environment})


def made(folder, **options):
    done = make(folder, **options)
    assert done.returncode == 0, done.stderr
    (path,) = pathlib.Path(folder).glob("*.whl")
    return path


def elf(machine, is_static):
    """Returns a minimal ELF file: the header, and a segment for the loader unless it is static."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    head[18:20] = machine.to_bytes(2, "little")
    head[32] = 64  # offset of the segments
    head[54], head[56] = 56, 1
    return bytes(head) + (1 if is_static else 3).to_bytes(4, "little") + bytes(52)


class Wheel(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_the_same_bytes_twice(self):
        first, second = made(self.folder / "1"), made(self.folder / "2")
        self.assertEqual((first.name, first.read_bytes()), (second.name, second.read_bytes()))
        dated = made(self.folder / "3", SOURCE_DATE_EPOCH="1700000000")
        with zipfile.ZipFile(dated) as wheel:
            self.assertEqual({info.date_time[0] for info in wheel.infolist()}, {2023})

    def test_what_it_holds(self):
        path = made(self.folder)
        info = f"tpsim-{VERSION}.dist-info"
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            self.assertEqual(names[-1], f"{info}/RECORD")
            self.assertEqual(len(names), len(set(names)))
            for name in [f"tpsim-{VERSION}.data/scripts/tpsim", "tpsim/__init__.py", "tpsim/py.typed",
                         "tpsim/_options.py", "tpsim/_reports.py", "tpsim/_calls.pyi", f"{info}/licenses/LICENSE"]:
                self.assertIn(name, names)
            for one in wheel.infolist():
                mode = stat.S_IMODE(one.external_attr >> 16)
                self.assertEqual(mode, 0o755 if "/scripts/" in one.filename else 0o644, one.filename)
            rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(names[-1]).decode()))}
            self.assertEqual(set(rows), set(names))
            for name in names[:-1]:
                content = wheel.read(name)
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                self.assertEqual(rows[name], [f"sha256={digest}", str(len(content))])
            metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
            tags = email.message_from_bytes(wheel.read(f"{info}/WHEEL"))
        self.assertEqual((metadata["Name"], metadata["Version"]), ("tpsim", VERSION))
        self.assertEqual(metadata["License-Expression"], "Apache-2.0")
        self.assertIsNone(metadata["Requires-Dist"])
        self.assertIn("# ", metadata.get_payload())
        self.assertEqual(tags["Root-Is-Purelib"], "false")
        self.assertEqual(path.name, f"tpsim-{VERSION}-py3-none-"
                         + ".".join(tag.split("-")[2] for tag in tags.get_all("Tag")) + ".whl")

    def test_tags_say_where_a_program_runs(self):
        wanted = {
            ("x86_64", True): "manylinux_2_5_x86_64.manylinux1_x86_64.musllinux_1_1_x86_64",
            ("aarch64", True): "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
            ("x86_64", False): "linux_x86_64",
        }
        for (arch, is_static), tags in wanted.items():
            program = self.folder / f"{arch}-{is_static}"
            program.write_bytes(elf(62 if arch == "x86_64" else 183, is_static))
            path = made(self.folder / f"of {program.name}", program=program, arch=arch)
            self.assertEqual(path.name, f"tpsim-{VERSION}-py3-none-{tags}.whl")

    def test_what_does_not_belong_together_is_refused(self):
        other = "aarch64" if ARCH == "x86_64" else "x86_64"
        for options, part in [({"arch": other}, f"is for {ARCH}, not for {other}"),
                              ({"version": "9.9"}, "is not of version 9.9"),
                              ({"program": __file__}, "is not a 64-bit"),
                              ({"program": "nowhere"}, "nowhere: No such file"),
                              ({"package": ROOT / "python" / "tpsim"}, "has no _options.py")]:
            done = make(self.folder, **options)
            self.assertEqual(done.returncode, 1, options)
            self.assertIn(part, done.stderr)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_it_works_once_unpacked(self):
        """Unpacks like an installer: the package into site-packages, the program into bin."""
        site = self.folder / "lib" / "python3" / "site-packages"
        with zipfile.ZipFile(made(self.folder / "wheel")) as wheel:
            wheel.extractall(site)
        scripts = site / f"tpsim-{VERSION}.data" / "scripts"
        shutil.move(scripts, self.folder / "bin")
        program = self.folder / "bin" / "tpsim"
        program.chmod(0o755)
        environment = {"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", "import tpsim; from tpsim import _program\n"
             "print(_program.find_program(), tpsim.plan('bloom-176b', gpus=384).best.gpus)"],
            env=environment, capture_output=True, text=True, cwd="/")
        self.assertEqual((done.stdout, done.stderr), (f"{program} 384\n", ""))

    def test_pip_and_uvx_install_from_an_index(self):
        made(self.folder)
        script = ROOT / "tools" / "release" / "make_index.py"
        subprocess.run([sys.executable, script, self.folder], check=True)
        page = (self.folder / "simple" / "tpsim" / "index.html").read_bytes()
        subprocess.run([sys.executable, script, self.folder], check=True)
        self.assertEqual((self.folder / "simple" / "tpsim" / "index.html").read_bytes(), page)
        handler = functools.partial(Quiet, directory=self.folder)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            index = f"http://127.0.0.1:{server.server_address[1]}/simple"
            self.install_from(index)
            server.shutdown()

    def install_from(self, index):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "UV_CACHE_DIR": str(self.folder / "uv")}
        place = self.folder / "venv"
        if subprocess.run([sys.executable, "-m", "venv", place], capture_output=True).returncode != 0:
            self.skipTest("this Python makes no virtual environments (python3-venv)")
        run = functools.partial(subprocess.run, capture_output=True, text=True, env=environment, cwd=self.folder)
        done = run([place / "bin" / "pip", "install", "--isolated", "--no-cache-dir", "--index-url", index, "tpsim"])
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ([place / "bin" / "tpsim", "--version"],
                      [place / "bin" / "python", "-c", "import tpsim; print('tpsim', tpsim.__version__)"]):
            self.assertIn(f"tpsim {VERSION}", run(words).stdout)
        uvx = shutil.which("uvx")
        if uvx is None:
            self.skipTest("pip installs from the index; uvx is not installed")
        done = run([uvx, "--python", sys.executable, "--index-url", index, "tpsim", "--version"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"tpsim {VERSION}", done.stdout)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
