"""Writes reproducible archives: sorted names, owner root, and SOURCE_DATE_EPOCH as date."""
import gzip
import hashlib
import io
import os
import pathlib
import sys
import tarfile


def epoch():
    try:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    except (KeyError, ValueError):
        sys.exit("SOURCE_DATE_EPOCH is not set to seconds since 1970; tools/release.sh sets it")


def member(name, size=0, mode=0o644, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type, info.mtime = size, mode, kind, epoch()
    info.uname = info.gname = "root"
    return info


def tar_of(files, folders=()):
    """Returns a tar. files: {name: path or bytes}; executable bits are kept. folders: {name:
    mode} of empty folders."""
    wanted = {str(parent): 0o755 for name in files for parent in pathlib.PurePosixPath(name).parents
              if str(parent) != "."}
    wanted.update(folders)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted({*wanted, *files}):
            if name in wanted:
                archive.addfile(member(name, mode=wanted[name], kind=tarfile.DIRTYPE))
                continue
            content, mode = files[name], 0o644
            if isinstance(content, pathlib.Path):
                mode = 0o755 if os.access(content, os.X_OK) else 0o644
                content = content.read_bytes()
            archive.addfile(member(name, len(content), mode), io.BytesIO(content))
    return buffer.getvalue()


def gzipped(data):
    return gzip.compress(data, compresslevel=9, mtime=0)


def files_below(folder, prefix):
    """Returns {prefix/relative name: path} of all files below a folder."""
    folder = pathlib.Path(folder)
    return {f"{prefix}/{path.relative_to(folder).as_posix()}": path
            for path in sorted(folder.rglob("*")) if path.is_file()}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def write(path, data):
    """Writes the file atomically, replacing an existing file."""
    path = pathlib.Path(path)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.replace(path)
