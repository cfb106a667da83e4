"""Runs untrusted code in a separate process with limits.

If Linux allows user namespaces, the process has no network and the file system that the caller
enters. For recipes, Python and the given folders are read-only, and one empty folder is writable. On
all systems, an audit hook of Python refuses recipes to start programs, to connect, and to write
outside of that folder, which is removed afterwards. The hook does not stop native code that bypasses
Python.
"""
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import resource
import select
import signal
import sys
import tempfile
import time

CPU_SECONDS = 60
WALL_SECONDS = 180
MEMORY_BYTES = 4 << 30
FILE_BYTES = 16 << 20
PROCESSES = 64
SCRATCH = "/scratch"
MOST_OUTPUT = 64 << 20

NEW_MOUNTS, NEW_IPC, NEW_USERS, NEW_PIDS, NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
KEPT_FLAGS = 2 | 4 | 8 | 1024 | 2048  # nosuid, nodev, noexec, noatime, nodiratime
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 1, 38, 24

REFUSED = {"os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec", "subprocess.Popen", "pty.spawn",
           "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "ctypes.dlopen"}
# By event that changes files: the index of each path in its arguments, and of the path's dir_fd if the event has one.
CHANGING = {"os.remove": [(0, 1)], "os.rmdir": [(0, 1)], "os.mkdir": [(0, 2)], "os.symlink": [(1, 2)],
            "os.rename": [(0, 2), (1, 3)], "os.link": [(0, 2), (1, 3)], "os.chmod": [(0, 2)], "os.chown": [(0, 3)],
            "os.utime": [(0, 3)], "os.truncate": [(0, None)], "shutil.rmtree": [(0, None)],
            "os.setxattr": [(0, None)], "os.removexattr": [(0, None)]}


class NotIsolated(Exception):
    """The system does not allow the namespaces."""


class Failed(Exception):
    """The process ended without an answer, or did not end within the time limit."""


def libc_call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise NotIsolated(f"{name}: {os.strerror(code)}")


def mount(source, target, kind, flags, data=None):
    libc_call("mount", *(one.encode() if one else None for one in (source, target, kind)), ctypes.c_ulong(flags),
              data.encode() if data else None)


def enter_namespaces():
    """Moves the caller to new namespaces. Its children share a process namespace, which ends with the first child."""
    if sys.platform != "linux":
        raise NotIsolated("namespaces exist only on Linux")
    user, group = os.geteuid(), os.getegid()
    libc_call("unshare", NEW_USERS | NEW_MOUNTS | NEW_NETWORK | NEW_PIDS | NEW_IPC)
    try:
        pathlib.Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        pathlib.Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        pathlib.Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    except OSError as error:
        raise NotIsolated(str(error)) from None


def folders_of_python():
    places = [sys.base_prefix, sys.prefix, "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"]
    return [os.path.realpath(place) for place in places if os.path.exists(place)] + \
        [place for place in ("/lib", "/lib64") if os.path.isdir(place)]


def enter_file_system(visible):
    """Enters a new root file system. The folders `visible` and Python are read-only, and one empty
    folder is writable.
    """
    root = "/tmp"  # a tmpfs is mounted over it, in this namespace only
    wanted = [os.path.realpath(place) for place in visible]
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    # Open the folders before this mount, which hides checkouts below /tmp.
    opened = {place: os.open(place, os.O_PATH) for place in dict.fromkeys([*folders_of_python(), *wanted])
              if os.path.exists(place)}
    mount("tmpfs", root, "tmpfs", 2 | 4, "size=32m,mode=755")
    for place in sorted(opened, key=len):
        bind(opened[place], place, root)
    for place in ("/dev/null", "/dev/urandom"):
        bind(os.open(place, os.O_PATH), place, root)
    for name in ("/old", SCRATCH):
        os.makedirs(root + name)
    make_read_only(root)
    mount("tmpfs", root + SCRATCH, "tmpfs", 2 | 4, "size=16m,mode=700")
    pivot(root)
    os.chdir(SCRATCH)
    tempfile.tempdir = SCRATCH


def bind(descriptor, place, root):
    """Mounts an open file or folder at `place` below the new root, unless a mounted parent folder
    already contains it.
    """
    target = root + place
    if os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    source = f"/proc/self/fd/{descriptor}"
    if os.path.isdir(source):
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    mount(source, target, None, MS_BIND | MS_REC)


def pivot(root):
    os.chdir(root)
    libc_call("pivot_root", b".", b"old")
    os.chdir("/")
    libc_call("umount2", b"/old", MNT_DETACH)


def make_read_only(root, with_root=True):
    """Makes every mount below `root` read-only. Mount flags that the system has locked are kept."""
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        places = [line.split()[4].encode().decode("unicode_escape") for line in table]
    for place in places:
        if not (place.startswith(root + "/") or with_root and place == root):
            continue
        flags = os.statvfs(place).f_flag & KEPT_FLAGS
        mount(None, place, None, MS_REMOUNT | MS_BIND | MS_RDONLY | flags)


def set_limits(seconds):
    limit_to((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_FSIZE, FILE_BYTES),
             (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 256))


def limit_to(*limits):
    for what, most in limits:
        _, hard = resource.getrlimit(what)
        with contextlib.suppress(ValueError, OSError):
            limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(what, (limit, limit))


def drop_rights():
    """Drops all capabilities. Started programs cannot regain them."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())


def is_below(path, folder, dir_fd=-1):
    """Whether a path, relative to the open folder `dir_fd` unless that is -1, is inside of `folder`."""
    if isinstance(path, int):
        return False
    base = f"/proc/self/fd/{dir_fd}" if dir_fd != -1 else ""
    return os.path.realpath(os.path.join(base, os.fsdecode(path))).startswith(folder + os.sep)


def opened_below(path, mode, folder):
    """Whether a path that is opened is inside of `folder`. os.open() has no mode. Its relative paths are refused,
    because they may belong to another folder.
    """
    return (mode is not None or os.path.isabs(path)) and is_below(path, folder)


def refuse_by_events(writable):
    """Installs the audit hook that refuses actions. Files are changed only in the folder `writable`; None: everywhere,
    because the file system is read-only.
    """
    def refuse(what):
        raise PermissionError(errno.EACCES, f"tpsim does not allow a recipe to {what}")

    def hook(event, arguments):
        if event in REFUSED:
            refuse(f"do this: {event}")
        if writable is None:
            return
        if event == "open" and isinstance(arguments[2], int) and not isinstance(arguments[0], int):
            changes = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            if changes and arguments[0] != os.devnull and not opened_below(*arguments[:2], writable):
                refuse(f"write the file {arguments[0]}")
        for path, dir_fd in CHANGING.get(event, ()):
            has_folder = dir_fd is not None and len(arguments) > dir_fd
            if not is_below(arguments[path], writable, arguments[dir_fd] if has_folder else -1):
                refuse(f"do this: {event} {arguments[path]}")
    sys.addaudithook(hook)


def start(work, enter, seconds, pipe):
    """Runs in the child process: isolates it, then runs `work` in a child of its own, the first
    process of the namespace. `work` gets the reason why it is not isolated.
    """
    os.setsid()
    set_limits(seconds)
    why_not = ""
    try:
        enter_namespaces()
    except NotIsolated as error:
        why_not = str(error)
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0x7F if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if not why_not:
        try:
            enter()
        except (NotIsolated, OSError) as error:
            why_not = str(error)
        else:
            drop_rights()
    result = work(why_not)
    result.setdefault("tpsim_recipe", {})["not_isolated"] = why_not
    with os.fdopen(pipe, "w", encoding="utf-8") as out:
        out.write(json.dumps(result))


def run(work, enter, seconds=CPU_SECONDS, wall=WALL_SECONDS):
    """As begin(), for code in Python: runs `work` under the audit hook, with an empty folder for its files where the file
    system is not isolated, and returns its dictionary.
    """
    with tempfile.TemporaryDirectory(prefix="tpsim-recipe-", ignore_cleanup_errors=True) as made:
        folder = os.path.realpath(made)

        def guarded(why_not):
            limit_to((resource.RLIMIT_NPROC, PROCESSES))
            if why_not:
                os.chdir(folder)
                tempfile.tempdir = folder
            refuse_by_events(writable=folder if why_not else None)
            return work()
        return begin(guarded, enter, seconds, wall)()


def begin(work, enter, seconds, wall):
    """Starts `work` in a separate process, in the file system that `enter` enters. Returns a function that waits for its
    dictionary. `work` gets the reason why the process is not isolated; empty if it is, as the key "not_isolated" says.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            start(work, enter, seconds, writing)
            code = 0
        except BaseException as error:  # pylint: disable=broad-except
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    deadline = time.monotonic() + wall

    def finish():
        text, in_time = read_until(reading, deadline)
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not in_time:
            raise Failed(f"did not end within {wall} s")
        try:
            return json.loads(text)
        except ValueError:
            raise Failed(why_none(status, seconds)) from None
    return finish


def why_none(status, seconds):
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    if code in (128 + signal.SIGXCPU, 128 + signal.SIGKILL):
        return f"was stopped: it used more than {seconds} s of CPU time or {MEMORY_BYTES >> 30} GiB of memory"
    return f"ended with exit code {code} and without a result"


def read_until(descriptor, deadline):
    parts, size = [], 0
    while size < MOST_OUTPUT:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return "", False
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts).decode("utf-8", "replace"), True
