"""Paths on this machine: what a text in a config means, what a file is whatever its name, and removing our own."""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any

from .errors import ConfigError

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/")  # one letter is a drive of Windows
_FILE_URL = re.compile(r"file:(?://(?:localhost)?)?(?P<path>/(?!/).*)", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[^}]*\})")
MOST_SHOWN = 200
STORES = ("s3://", "gs://", "az://")


def local_path(text: str | os.PathLike[str], base: Path, *, what: str) -> Path:
    """Return the absolute path that a text means; links are not followed.

    `~` is the home folder, and `file:///…` the path behind it. Messages say `what` the path is for: `output`, `input
    pairs`.

    Raises:
        ConfigError: the text is empty, lies on a remote store, has a variable or a `~` that means nothing here, or a
            character that no path can have.
    """
    start, below = start_and_pattern(text, base, what=what)
    return Path(os.path.abspath(start / below))  # noqa: PTH100 - resolve() would follow links


def path_text(value: object, *, what: str) -> str:
    """Return the text of a path that a function was given as a parameter.

    Raises:
        ConfigError: it is neither a text nor a path.
    """
    if isinstance(value, str | bytes | os.PathLike):
        return os.fsdecode(value)
    message = f"{what}: {shortened(repr(value))} is no path"
    raise ConfigError(message, remedy="Give a text or a pathlib.Path.")


def start_and_pattern(text: str | os.PathLike[str], base: Path, *, what: str) -> tuple[Path, Path]:
    """Return the folder that a text starts from, taken literally, and the path or pattern below it.

    Raises:
        ConfigError: as for `local_path`.
    """
    written = plain_text(os.fspath(text), what=what)
    if not written:
        message = f"{what}: the path is empty"
        raise ConfigError(message, remedy='Write "." for the folder itself.')
    if (file_url := _FILE_URL.fullmatch(written)) is not None:
        from urllib.request import url2pathname  # noqa: PLC0415 - loads a client of HTTP, for few paths

        written = url2pathname(file_url["path"])
    elif (remote := _SCHEME.match(written)) is not None:
        message = f"{what}: {shortened(written)} is on a remote store ({remote['scheme']}), which is not supported yet"
        remedy = "Give a place on this machine; inputs and results alone may be on s3://, gs:// and az://."
        raise ConfigError(message, remedy=remedy)
    path = _at_home(written, base, what=what)
    start = Path(path.anchor) if path.is_absolute() else base.absolute()
    below = path.relative_to(path.anchor)
    _refuse_variables(start, below, what=what)
    return start, below


def plain_text(text: str, *, what: str) -> str:
    """Return the text itself if it can be used.

    Raises:
        ConfigError: it contains a character that no name can have.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"{what}: {shortened(text)!a} holds a character that is not Unicode"
        raise ConfigError(message, remedy="Rename the file, or write the text in UTF-8.") from error
    if "\0" in text:
        message = f"{what}: {shortened(text)!a} holds a NUL character"
        raise ConfigError(message, remedy="Remove it.")
    return text


def check_texts(value: Any, key: str, *, where: str) -> None:  # noqa: ANN401 - any TOML value
    """Refuse what no text of a config may contain, at any depth in the value of a key.

    Raises:
        ConfigError: as for `plain_text`.
    """
    pending: list[tuple[Any, list[str]]] = [(value, [key])]
    while pending:
        inner, keys = pending.pop()
        if isinstance(inner, str):
            plain_text(inner, what=f"{where}: {'.'.join(keys)}")
        elif isinstance(inner, list | tuple):
            pending += [(item, keys) for item in inner]
        elif isinstance(inner, dict):
            for name, item in inner.items():
                plain_text(str(name), what=f"{where}: a key of {'.'.join(keys)}")
                pending.append((item, [*keys, str(name)]))


def shortened(text: str) -> str:
    """Return a text for a message, without its end if it is long."""
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… ({len(text):,} characters)"


def abridged(message: str) -> str:
    """Shorten a long message in the middle: its start says where, its end what to write.

    Half surrogate pairs, which no terminal and no file can take, are escaped.
    """
    message = message.encode("utf-8", "backslashreplace").decode()
    return message if len(message) <= 4 * MOST_SHOWN else f"{message[: 2 * MOST_SHOWN]} … {message[-MOST_SHOWN:]}"


def _at_home(written: str, base: Path, *, what: str) -> Path:
    path = Path(written)
    try:
        return path.expanduser()
    except RuntimeError as error:
        if os.path.lexists(base / path.parts[0]):
            return path
        message = f"{what}: {shortened(written)} starts with the home folder of a user who is not known here"
        raise ConfigError(message, remedy="Write the whole path, or ./~… for a name that starts with ~.") from error


def _refuse_variables(start: Path, below: Path, *, what: str) -> None:
    """Refuse `$NAME` and `${NAME}`, which a shell would have replaced, unless something of that name exists."""
    for number, name in enumerate(below.parts, start=1):
        if glob.has_magic(name):
            return
        variable = _VARIABLE.search(name)
        if variable is not None and not os.path.lexists(start.joinpath(*below.parts[:number])):
            shown, meant = shortened(variable.group()), variable.group().strip("${}").removeprefix("env.")
            message = f"{what}: {shortened(str(below))} has a variable, {shown}, and nothing there has that very name"
            remedy = f"In a config write ${{env.{meant}}} for an environment variable; elsewhere, the path itself."
            raise ConfigError(message, remedy=remedy)


def is_remote(text: str) -> bool:
    """Whether a text is an address on a remote store."""
    return text.startswith(STORES)


# Files as they are, not as their names say: what they are, whether two are the same, and removing only our own.


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
    """A named pipe, a socket or a device stands where a file should be; the text says which."""


def kind_in_words(mode: int) -> str:
    """Say what a mode belongs to if that is no file: `a named pipe`; empty for a file."""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "not a file")


def _special_in_words(path: Path) -> str:
    """Say what a path leads to if that is neither a file nor a folder; empty if it is, or nothing is there."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISDIR(mode) else kind_in_words(mode)


def read_file(path: Path, *, most: int = -1) -> bytes:
    """Read a file, or its first bytes; links are followed, but never wait for somebody to write into a named pipe.

    Raises:
        SpecialFileError: it is a named pipe, a socket or a device.
        OSError: as for `open`.
    """
    if kind := _special_in_words(path):  # a socket cannot even be opened
        raise SpecialFileError(kind)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)) as file:
        if kind := kind_in_words(os.fstat(file.fileno()).st_mode):
            raise SpecialFileError(kind)
        return file.read(most)


def is_open_pipe(path: Path) -> bool:
    """Whether a path stands for a pipe that this process holds open, as shells write it for `<(…)`."""
    is_held = path == Path("/dev/stdin") or path.parent in {Path("/dev/fd"), Path("/proc/self/fd")}
    return is_held and _special_in_words(path) == _KINDS[stat.S_IFIFO]


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
    identity_of_start = identity(start)
    for above in (real, *real.parents):
        if above == start or (identity_of_start is not None and identity(above) == identity_of_start):
            return real.relative_to(above).parts
    return None


def remove_own(path: Path, root: Path, *, as_far_as_possible: bool = False) -> None:
    """Remove a file or a folder that this package made, if it is there. All of the package removes in this way.

    A link in its place is removed itself, and from `root` on, a folder above it, no link is followed on the way to it
    or in it, not even one that takes the place of a folder meanwhile. The caller has made sure that the name is one of
    ours. What cannot be removed may stay, without an error.

    Raises:
        OSError: it cannot be removed, or a folder between the two is a link.
    """
    try:
        if _BY_DESCRIPTOR:
            *folders, name = path.relative_to(root).parts
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
