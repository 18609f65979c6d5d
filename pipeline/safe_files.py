"""Files as they are, not as their names say: what they are, whether two are the same, and removing only our own."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

_NO_LINK, _NO_WAIT = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_BY_DESCRIPTOR = {os.open, os.stat, os.unlink} <= os.supports_dir_fd and shutil.rmtree.avoids_symlink_attacks
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


class SpecialFileError(OSError):
    """What should be a file is a named pipe, a socket or a device; the text says which."""


def kind_in_words(mode: int) -> str:
    """Say what a mode belongs to if that is no file: `a named pipe`; empty for a file."""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "not a file")


def special_in_words(path: Path) -> str:
    """Say what a path leads to if that is neither a file nor a folder; empty if it is, or nothing is there."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISDIR(mode) else kind_in_words(mode)


def read_file(path: Path, *, most: int = -1) -> bytes:
    """Read a file, or its first bytes; never wait for somebody to write into a named pipe.

    Args:
        path: The file; links are followed.
        most: Number of bytes; -1: all.

    Raises:
        SpecialFileError: it is a named pipe, a socket or a device.
        OSError: as for `open`.
    """
    if kind := special_in_words(path):  # a socket cannot even be opened
        raise SpecialFileError(kind)
    with open(path, "rb", opener=_open_at_once) as file:
        if kind := kind_in_words(os.fstat(file.fileno()).st_mode):
            raise SpecialFileError(kind)
        return file.read(most)


def is_open_pipe(path: Path) -> bool:
    """Whether a path stands for a pipe that this process holds open, as shells write it for `<(…)`."""
    is_held = path == Path("/dev/stdin") or path.parent in {Path("/dev/fd"), Path("/proc/self/fd")}
    return is_held and special_in_words(path) == _KINDS[stat.S_IFIFO]


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | _NO_WAIT)


def identity(path: Path) -> tuple[int, int] | None:
    """Return device and number of what a path leads to, which all names of it share; None if nothing is there."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None  # 0: not numbered here


def names_below(folder: Path, path: Path) -> tuple[str, ...] | None:
    """Return the names that lead from a folder to a path, whatever links and `..` are on the way; None if none do.

    Neither has to exist: what does is compared by its identity, the rest by its name.
    """
    real, start = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    known = identity(start)
    for above in (real, *real.parents):
        if above == start or (known is not None and identity(above) == known):
            return real.relative_to(above).parts
    return None


def remove_own(path: Path, root: Path, *, as_far_as_possible: bool = False) -> None:
    """Remove a file or a folder that this package made, if it is there. All of the package removes in this way.

    A link in its place is removed itself, and no link is followed on the way to it or in it, not even one that takes
    the place of a folder meanwhile. The caller has made sure that the name is one of ours.

    Args:
        path: The file or folder.
        root: A folder above it from which on no link is followed.
        as_far_as_possible: Whether what cannot be removed stays, without an error.

    Raises:
        OSError: it cannot be removed, or a folder between the two is a link.
    """
    try:
        if _BY_DESCRIPTOR:
            names = path.relative_to(root).parts
            *folders, name = names
            descriptor = os.open(root, _FOLDER)
            try:
                for folder in folders:
                    inner = os.open(folder, _FOLDER | _NO_LINK, dir_fd=descriptor)
                    os.close(descriptor)
                    descriptor = inner
                if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                    shutil.rmtree(name, ignore_errors=as_far_as_possible, dir_fd=descriptor)
                else:
                    os.unlink(name, dir_fd=descriptor)
            finally:
                os.close(descriptor)
        else:
            _remove_by_name(path, root, as_far_as_possible=as_far_as_possible)
    except FileNotFoundError:
        return
    except OSError:
        if not as_far_as_possible:
            raise


def _remove_by_name(path: Path, root: Path, *, as_far_as_possible: bool) -> None:
    """The same on Windows, which has no descriptors of folders."""
    between = [folder for folder in path.parents if root in folder.parents]
    if any(folder.resolve() != root.resolve() / folder.relative_to(root) for folder in between):
        message = f"a folder on the way to {path} is a link"
        raise OSError(message)
    if stat.S_ISDIR(path.lstat().st_mode) and path.resolve() == path.parent.resolve() / path.name:
        shutil.rmtree(path, ignore_errors=as_far_as_possible)
    else:
        path.unlink()
