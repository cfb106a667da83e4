"""Compiles and loads guard.cpp, which has to be there before PyTorch is imported."""
import ctypes
import functools
import hashlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile


class CaptureError(Exception):
    """A step cannot be captured; the message names the cause and a remedy."""


def compiled(root, version):
    """Compiles the guard once per version of PyTorch."""
    source = pathlib.Path(__file__).with_name("guard.cpp")
    key = hashlib.sha256(source.read_bytes() + version.encode()).hexdigest()[:16]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tpsim"
    library = cache / f"guard-{key}.so"
    if library.exists():
        return library
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        built = pathlib.Path(folder) / "guard.so"
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-w", "-shared", "-fPIC",
                   f"-I{root / 'include'}", str(source), "-o", str(built), f"-L{root / 'lib'}",
                   "-lc10", "-ltorch_cpu"]
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise CaptureError(f"no C++ compiler: install g++ or set CXX ({command[0]} is not found)") from None
        if run.returncode != 0:
            raise CaptureError(f"guard.cpp does not compile with PyTorch {version}:\n{run.stderr[-2000:]}")
        os.replace(built, library)
    return library


@functools.cache
def load_guard():
    spec = importlib.util.find_spec("torch")
    if spec is None:
        raise CaptureError("PyTorch is not installed: pip install torch")
    root = pathlib.Path(spec.origin).parent
    is_cpu_build = not (root / "lib" / "libtorch_cuda.so").exists()
    if is_cpu_build and "torch" in sys.modules:
        raise CaptureError("import tpsim_capture before torch: PyTorch looks for CUDA once")
    version = (root / "version.py").read_text()
    library = compiled(root, version)
    for name in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(root / "lib" / name), mode=ctypes.RTLD_GLOBAL)
    loaded = ctypes.CDLL(str(library))
    loaded.tpsim_current_stream.restype = ctypes.c_long
    loaded.tpsim_set_stream.argtypes = [ctypes.c_long]
    if is_cpu_build:
        loaded.tpsim_register_hooks()
    return loaded
