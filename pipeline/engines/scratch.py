"""The folder for data that do not fit into memory: private to the user, never one that somebody else created."""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from ..errors import CannotCreateError, os_fault

PRIVATE = 0o700
REMEDY = "Set resources.scratch to a folder of your own that can be written."
_OF_THE_PATH = {errno.EEXIST, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG}


def scratch_folder(configured: Path | None) -> Path:
    """Return the folder named in the config, or `thresher-<user id>` in the system's folder for temporary files.

    The latter is used only if it is a folder (not a link), owned by the user and closed to everybody else; otherwise a
    new folder is created instead, and removed when the process ends.

    Raises:
        CannotCreateError: it cannot be created, or the file system is read-only.
        PermissionDenied: access is refused.
        StorageError: the disk is full or failing.
    """
    folder = configured
    try:
        if folder is not None:
            folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder.resolve()
        folder = Path(tempfile.gettempdir()) / f"thresher-{_user()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=PRIVATE)
        return folder.resolve() if _is_private(folder) else _fresh(folder)
    except OSError as error:
        where = "the system's folder for temporary files" if folder is None else f"scratch folder {folder}"
        fault = os_fault(error, f"{where} cannot be written")
        kind = CannotCreateError if error.errno in _OF_THE_PATH else type(fault)
        raise kind(fault.message, remedy=REMEDY) from error


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")


def _is_private(folder: Path) -> bool:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (status.st_uid, status.st_mode & 0o777) == (os.getuid(), PRIVATE)


@cache
def _fresh(usual: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"{usual.name}-", dir=usual.parent))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder.resolve()
