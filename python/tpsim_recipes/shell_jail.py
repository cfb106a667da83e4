"""Runs a shell script once, among stubs, in a file system of its own. Writes of the script are thrown away."""
import contextlib
import glob
import os
import pathlib
import pkgutil
import shutil
import signal
import stat
import time

from . import isolation

BASE = "/.tpsim"
UPPER = BASE + "-upper"
PR_SET_DUMPABLE = 4
CPU_SECONDS, WALL_SECONDS, IDLE_SECONDS = 5, 10, 2
MOST_PROCESSES, MOST_MEMORY = 200, 1 << 30
MOST_FILES, MOST_FILE_BYTES, MOST_TRACE_BYTES = 200, 1 << 20, 8 << 20
TOOLS = ["/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
         "/etc/alternatives", "/etc/ld.so.cache"]
NUMBER = 799999  # the output of programs in a run in which unknown values are numbers: on three lines
ENDS_WAIT = 799998  # the output of programs for which a script waits in a loop
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
BASH = os.path.realpath(shutil.which("bash", path=PATH) or "/bin/bash")


# Programs that a script must not start for real. Commands that do not exist reach the same stub.
NAMES = """
    accelerate apptainer apt apt-get aws bsub clear cmake conda curl date deepspeed df dnf docker docker-compose dpkg enroot
    flux free gcc gcloud git gsutil helm horovodrun hostname ibstat ibv_devinfo ifconfig ip jsrun kubectl lscpu lspci lsof make
    mamba micromamba mktemp ml module mpiexec mpirun nerdctl netstat ninja node nproc npm nsys numactl nvcc nvidia-smi openssl
    pdsh perl pip pip3 podman poetry python python2 python3 qsub ray rocm-smi rsync ruby salloc sbatch scancel scontrol scp screen
    sh dash zsh ksh shuf sinfo singularity sleep squeue srun ss ssh sudo systemctl tmux torchrun tput uuidgen uv wget whoami yum
""".split()


# Read now, since a jail does not show this package.
STUB, PRELUDE = (pkgutil.get_data(__package__, name).decode() for name in ("stub.sh", "prelude.sh"))


def filled_in(text, **values):
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def enter(visible, folder):
    """Enters a file system with the tools of this machine, read-only, and a writable overlay of the folder `visible`. `folder`
    below it is writable whoever owns it.
    """
    root = "/tmp"  # a tmpfs is mounted over it, in this namespace only
    isolation.mount("none", "/", None, isolation.MS_REC | isolation.MS_PRIVATE)
    links = {place: os.readlink(place) for place in TOOLS if os.path.islink(place)}
    devices = [f"/dev/{name}" for name in ("null", "zero", "full", "urandom", "random")]
    opened = {place: os.open(place, os.O_PATH) for place in [*TOOLS, *devices] if os.path.exists(place) and place not in links}
    lower = os.open(visible, os.O_PATH) if os.path.isdir(visible) else None
    isolation.mount("tmpfs", root, "tmpfs", 2 | 4, "size=256m,nr_inodes=64k,mode=755")
    for place, descriptor in opened.items():
        isolation.bind(descriptor, place, root)
    for place, target in links.items():
        os.symlink(target, root + place)
    for name in ("fd", "stdin", "stdout", "stderr"):
        os.symlink("/proc/self/fd" + ("" if name == "fd" else f"/{('stdin', 'stdout', 'stderr').index(name)}"), f"{root}/dev/{name}")
    for name in ("/old", "/proc", "/tmp", "/dev/shm", UPPER + "/upper", UPPER + "/work", visible):
        os.makedirs(root + name, exist_ok=True)
    os.makedirs(f"{root}{UPPER}/upper{folder.removeprefix(visible)}", exist_ok=True)
    write_stubs(root + BASE, BASE)
    isolation.make_read_only(root, with_root=False)
    bind_stubs(root)
    isolation.mount("proc", root + "/proc", "proc", 2 | 4 | 8)
    pathlib.Path(root + "/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
    with contextlib.suppress(OSError):  # Linux before 6.14 has one limit for all namespaces
        pathlib.Path(root + "/proc/sys/kernel/pid_max").write_text(f"{5 * MOST_PROCESSES}", encoding="ascii")
    isolation.mount(None, root + "/proc", None, isolation.MS_REMOUNT | isolation.MS_BIND | isolation.MS_RDONLY | 2 | 4 | 8)
    if lower is not None:
        overlay(lower, root, visible)
    os.umask(0o022)
    isolation.pivot(root)


def overlay(lower, root, visible):
    upper = root + UPPER
    options = f"lowerdir=/proc/self/fd/{lower},upperdir={upper}/upper,workdir={upper}/work"
    try:
        try:
            isolation.mount("overlay", root + visible, "overlay", 2 | 4, options + ",userxattr")
        except isolation.NotIsolated:
            isolation.mount("overlay", root + visible, "overlay", 2 | 4, options)
    except isolation.NotIsolated:  # Linux before 5.11: a copy of the small files
        copied = 0
        for folder, folders, files in os.walk(f"/proc/self/fd/{lower}"):
            folders[:] = [name for name in folders if name != ".git"]
            place = root + visible + folder[len(f"/proc/self/fd/{lower}"):]
            os.makedirs(place, exist_ok=True)
            for name in files:
                about = os.lstat(f"{folder}/{name}")
                copied += about.st_size if stat.S_ISREG(about.st_mode) and about.st_size <= MOST_FILE_BYTES else 0
                if copied > 64 << 20:
                    raise
                if about.st_size <= MOST_FILE_BYTES:
                    shutil.copy(f"{folder}/{name}", f"{place}/{name}", follow_symlinks=False)


def write_stubs(place, base):
    """Writes the stubs below `place`, which the script sees as `base`."""
    for name in ("log", "used", "made", "stubs"):
        os.makedirs(f"{place}/{name}")
    any_name = f"{place}/stubs/any"
    pathlib.Path(any_name).write_text(filled_in(STUB, BASE=base, BASH=BASH, NUMBER=NUMBER, ENDS_WAIT=ENDS_WAIT), encoding="utf-8")
    os.chmod(any_name, 0o755)
    for name in NAMES:
        os.symlink("any", f"{place}/stubs/{name}")
    for name in ("date", "python3") if base != BASE else ():
        os.symlink(shutil.which(name, path=PATH), f"{place}/real-{name}")


def bind_stubs(root):
    """Mounts the stub over the programs that it replaces, for scripts that name them by an absolute path."""
    for name in ("date", "python3"):
        if os.path.exists(f"{root}/usr/bin/{name}"):
            shutil.copy2(os.path.realpath(f"{root}/usr/bin/{name}"), f"{root}{BASE}/real-{name}")
    stub = root + BASE + "/stubs/any"
    for place in ("/usr/bin", "/usr/sbin"):
        names = [*NAMES, *(os.path.basename(one) for one in glob.glob(root + place + "/python3.*[0-9]"))]
        for name in names:
            real = os.path.realpath(f"{root}{place}/{name}") if os.path.exists(f"{root}{place}/{name}") else ""
            is_its_own = real.startswith(root + "/usr/") and name[:6] in os.path.basename(real)
            if is_its_own and real not in (root + BASH, stub):
                isolation.mount(stub, real, None, isolation.MS_BIND)


def run(setup, why_not):
    """Runs the script as `setup` states and returns what it did. Runs as the first process of the jail, or without one."""
    base, place = BASE, BASE
    if why_not:
        base = place = setup["scratch"]
        write_stubs(place, base)
    else:
        isolation.drop_rights()
        isolation.libc_call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)  # hides this process's environment
        for path in setup["made"]:
            with contextlib.suppress(OSError):
                make(path, base)
    if not why_not and (not os.path.exists(setup["script"]) or pathlib.Path(setup["script"]).read_text("utf-8", "surrogateescape") != setup["text"]):
        os.makedirs(os.path.dirname(setup["script"]), exist_ok=True)
        pathlib.Path(setup["script"]).write_text(setup["text"], encoding="utf-8", errors="surrogateescape")
    for name in ("outputs", "answers", "failing", "waits"):
        pathlib.Path(f"{base}/{name}").write_text(setup[name], encoding="utf-8")
    pathlib.Path(f"{base}/prelude").write_text(filled_in(PRELUDE, BASE=base, PINS=setup["pins"]), encoding="utf-8")
    if not setup["runs"]:
        os.unlink(f"{base}/real-python3")
    started = time.time()
    words = [BASH, setup["script"], *setup["arguments"]]
    if any("\n" + one in "\n" + setup["text"] for one in ("#SBATCH", "#PBS")):
        words = [f"{base}/stubs/sbatch", *words[1:]]
    environment = {"PATH": f"{base}/stubs:{PATH}", "BASH_ENV": f"{base}/prelude", "TPSIM_MAIN": "1", **setup["environment"]}
    child = os.fork()
    if child == 0:
        os.nice(5)  # supervise() must get its turn among many processes
        isolation.limit_to((isolation.resource.RLIMIT_NPROC, setup["processes"] + MOST_PROCESSES))
        with contextlib.suppress(OSError):
            os.chdir(setup["folder"])
        for number, name, flags in ((0, "/dev/null", os.O_RDONLY), (1, f"{base}/out", os.O_CREAT | os.O_WRONLY | os.O_APPEND),
                                    (2, f"{base}/err", os.O_CREAT | os.O_WRONLY | os.O_APPEND)):
            os.dup2(os.open(name, flags, 0o644), number)
        os.closerange(3, 256)
        os.execve(words[0], words, environment)
    stopped = supervise(child, not why_not)
    return {**collected(base, started, setup, not why_not), "stopped": stopped}


def make(path, base):
    """Creates what a script misses: an empty file, a folder ("/" at the end) or a stub of a program ("!" at the end). A text behind
    "\\0" is the file or folder of the script's own repository that stands for the path.
    """
    name, _, target = path.partition("\0")
    target = target or (f"{base}/stubs/any" if name.endswith("!") else "")
    if name.endswith("/") and not target:
        os.makedirs(name, exist_ok=True)
        return
    name = name.rstrip("!/")
    os.makedirs(os.path.dirname(name), exist_ok=True)
    if os.path.lexists(name):
        return
    if target:
        os.symlink(target, name)
    else:
        pathlib.Path(name).touch()


def supervise(child, is_first):
    """Waits until all processes have ended, within the limits. Returns why the script was stopped; "" if it was not."""
    deadline, pause, ended = time.monotonic() + WALL_SECONDS, 0.001, False
    while True:
        with contextlib.suppress(ChildProcessError):
            pid = -1
            while pid != 0:
                pid, status = os.waitpid(-1 if is_first else child, os.WNOHANG)
                if pid == child:
                    ended, deadline = True, min(deadline, time.monotonic() + IDLE_SECONDS)
                    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL, signal.SIGXFSZ):
                        return f"used more than {CPU_SECONDS} s of CPU time, or wrote more than {isolation.FILE_BYTES >> 20} MiB"
                if pid == child and not is_first:
                    return ""
            processes = [name for name in os.listdir("/proc") if name.isdigit()] if is_first else []
            memory = 0
            for name in processes:
                with contextlib.suppress(OSError, ValueError, IndexError):
                    memory += int(pathlib.Path(f"/proc/{name}/statm").read_text(encoding="ascii").split()[1]) << 12
            if len(processes) > MOST_PROCESSES or memory > MOST_MEMORY:
                kill_all(is_first)
                return f"started more than {MOST_PROCESSES} processes, or used more than {MOST_MEMORY >> 30} GiB of memory"
            if time.monotonic() > deadline:
                kill_all(is_first)
                return "" if ended else f"did not end within {WALL_SECONDS} s"
            time.sleep(pause)
            pause = min(0.02, pause * 1.5)
            continue
        return ""


def kill_all(is_first):
    if is_first:
        for _ in range(3):
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)


def text_of(path, most=MOST_FILE_BYTES):
    with open(path, "rb") as file:
        return file.read(most).decode("utf-8", "replace")


def collected(base, started, setup, is_isolated):
    """Returns commands, trace, variables, files and answers that were used."""
    commands = []
    for name in sorted(os.listdir(base + "/log"), key=lambda one: (int(one.split(".")[0]), one)):
        if name.endswith(".command") and len(commands) < 20000:
            captured, folder, *words = text_of(f"{base}/log/{name}").split("\0")[:-1]
            number = name.split(".", maxsplit=1)[0]
            place = f"{base}/log/{number}.environment"  # missing if the script was stopped just then
            pairs = [one.partition("=") for one in (text_of(place) if os.path.exists(place) else "").split("\0") if "=" in one]
            commands.append({"number": number, "captured": captured == "1", "folder": folder, "words": words,
                             "environment": {key: value for key, _, value in pairs if key not in setup["environment"]}})
    variables = {}
    if os.path.exists(base + "/variables"):
        parts = text_of(base + "/variables", MOST_TRACE_BYTES).split("\0")
        while len(parts) > 2 and parts[1].isdigit():
            variables[parts[0]] = parts[2:2 + int(parts[1])]
            parts = parts[2 + int(parts[1]):]
    trace = text_of(base + "/trace", MOST_TRACE_BYTES) if os.path.exists(base + "/trace") else ""
    sources = {line.split("\x1f", maxsplit=1)[0].rpartition(":")[0] for line in trace.split("\x1e")}
    texts = {name: text_of(name) for name in sources if os.path.isfile(name) and not name.startswith(base)}
    errors = text_of(base + "/err") if os.path.exists(base + "/err") else ""
    return {"commands": commands, "variables": variables, "trace": trace, "texts": texts, "errors": errors,
            "files": written(started, setup) if is_isolated else {}, "used": os.listdir(base + "/used")}


def written(started, setup):
    """Returns the text files that the script wrote, by path."""
    files = {}
    for top, prefix in ((UPPER + "/upper", setup["visible"]), ("/", "")):
        device = os.lstat(top).st_dev
        for folder, folders, names in os.walk(top):
            folders[:] = [one for one in folders if os.path.lexists(f"{folder}/{one}") and os.lstat(f"{folder}/{one}").st_dev == device
                          and not (folder == "/" and one.startswith(".tpsim"))]
            for name in names:
                about = os.lstat(f"{folder}/{name}")
                is_text = stat.S_ISREG(about.st_mode) and 0 < about.st_size <= MOST_FILE_BYTES and about.st_mtime >= started - 1
                if is_text and len(files) < MOST_FILES and name != "any":
                    files[os.path.normpath(prefix + f"{folder}/{name}"[len(top) if prefix else 0:])] = text_of(f"{folder}/{name}")
    return files
