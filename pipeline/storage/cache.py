"""What single input files answered to the queries of a plan, kept so that the next run reads new files only.

An entry is the answer of a file to a query, or of several files together: integers, decimals, lowest and highest
values. Folder and ids tell all that decides the answer: the text of the query, the versions of code and libraries, the
identity of the file, and a digest of what its rows meet in other relations. Entries of one query lie in a folder, those
that were kept together in a segment: a file that is named by the hash of its content. Whatever is missing, damaged or
of another key is asked of the input again.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
from polars.exceptions import PolarsError

from ..errors import ThresherError
from ..queries.splitting import Answers, Entry
from ..records import dataclass
from ..safe_files import remove_own
from .durable import DamagedError, read_own, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_ENTRIES = "thresher.entries"
_USED, _TOO_LARGE = "used", "too_large"
_FOLDER = re.compile(r"(?P<start>[0-9a-f]{2})/(?P=start)[0-9a-f]{62}")
_FILE = re.compile(rf"[0-9a-f]{{64}}\.parquet|{_USED}|{_TOO_LARGE}")
_TEMPORARY = re.compile(rf"\.({_FILE.pattern})\.\d+\.tmp")


@dataclass(frozen=True)
class Segment:
    """A file of kept answers, whole as it was written.

    Attributes:
        content: It.
    """

    content: bytes

    @property
    def entries(self) -> list[list[str]]:
        """Ids of the files of each answer."""
        names: list[list[str]] = json.loads(pl.read_parquet_metadata(io.BytesIO(self.content))[_ENTRIES])
        return names

    @cached_property
    def rows(self) -> pl.DataFrame:
        """The rows of all answers, with `FILE`, the index of the answer."""
        return pl.read_parquet(io.BytesIO(self.content))


@dataclass
class States:
    """The answers that a results folder keeps.

    Attributes:
        root: Their folder.
        limit: Most bytes that they may take together, after a run.
    """

    root: Path
    limit: int
    _written: list[Path] = field(default_factory=list, init=False)
    _failed: bool = field(default=False, init=False)

    def answers(self, key: str) -> Answers:
        """Read the kept answers to a query; what is damaged is removed."""
        folder = self.root / key[:2] / key
        answers = Answers(folder)
        if not folder.is_dir():
            return answers
        with suppress(OSError):  # what cannot be listed is asked again
            for path in sorted(folder.glob("*.parquet")):
                self._read(path, answers)
        with suppress(DamagedError, ThresherError, OSError, ValueError):
            (folder / _USED).touch()
            answers.too_large_for = int(read_own(folder / _TOO_LARGE))
        return answers

    def _read(self, path: Path, answers: Answers) -> None:
        try:
            segment = Segment(_intact(path))
            entries = segment.entries
        except (DamagedError, ThresherError, PolarsError, OSError, ValueError, KeyError):
            self._remove(path)
            return
        answers.segments[path.name] = segment
        answers.entries += [Entry(tuple(files), path.name, number) for number, files in enumerate(entries)]

    def keep(
        self,
        answers: Answers,
        files: Sequence[Sequence[str]],
        rows: pl.DataFrame,
        *,
        alone: bool = False,
    ) -> None:
        """Keep answers; an error of the disk only costs the next run time.

        Args:
            answers: What is kept of the query so far.
            files: Ids of the files of each answer.
            rows: Rows of the answers; `FILE` is the index of the answer.
            alone: Whether these are all answers from now on.
        """
        if self._failed:
            return
        try:
            written = self._write(answers.folder, rows, json.dumps([list(ids) for ids in files]))
            for name in set(answers.segments if alone else ()) - {written}:
                self._remove(answers.folder / name)
        except (ThresherError, OSError, PolarsError):  # a full disk: room for the results is worth more
            self._failed = True
            for folder in self._written:
                self._remove(folder)

    def _remove(self, path: Path) -> None:
        """Remove a file of ours, or a folder of such files alone, as far as possible."""
        is_file = _FILE.fullmatch(path.name) is not None
        with suppress(OSError):
            for own_path in (path,) if is_file else _own_files(path):
                remove_own(own_path, self.root.parent, as_far_as_possible=True)
            if not is_file:
                path.rmdir()  # unless something else lies there, too

    def _write(self, folder: Path, rows: pl.DataFrame, entries: str) -> str:
        buffer = io.BytesIO()
        rows.write_parquet(buffer, compression="zstd", metadata={_ENTRIES: entries})
        content = buffer.getvalue()
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{hashlib.sha256(content).hexdigest()}.parquet"
        write_whole(folder / name, content, scratch=self.root)
        (folder / _USED).touch()
        self._written.append(folder)
        return name

    def give_up(self, answers: Answers, n_rows: int) -> None:
        """Remember that the answers of files to a query are too large to be kept.

        Args:
            answers: What is kept of the query.
            n_rows: Rows of the files; those of more may have answers that are small beside them.
        """
        with suppress(ThresherError, OSError):
            answers.folder.mkdir(parents=True, exist_ok=True)
            write_whole(answers.folder / _TOO_LARGE, str(n_rows).encode(), scratch=self.root)

    def clean_up(self) -> None:
        """Remove what a kill left, and the answers not used for longest, until the others are within the limit."""
        with suppress(OSError):  # of what cannot be listed nothing is removed
            for path in self.root.glob(".*.tmp"):
                if _TEMPORARY.fullmatch(path.name):
                    remove_own(path, self.root.parent, as_far_as_possible=True)
            folders = sorted((_last_use(folder), folder) for folder in self.root.glob("*/*") if self._is_own(folder))
            sizes = {folder: sum(path.lstat().st_size for path in _own_files(folder)) for _, folder in folders}
            total = sum(sizes.values())
            for _, folder in folders:
                if total <= self.limit:
                    return
                self._remove(folder)
                total -= sizes[folder]

    def _is_own(self, folder: Path) -> bool:
        """Whether a folder has a name of ours, and neither it nor the folder around it is a link."""
        is_named = _FOLDER.fullmatch(folder.relative_to(self.root).as_posix()) is not None
        return is_named and folder.is_dir() and not (folder.is_symlink() or folder.parent.is_symlink())


def _own_files(folder: Path) -> tuple[Path, ...]:
    return tuple(path for path in folder.iterdir() if _FILE.fullmatch(path.name))


def _intact(path: Path) -> bytes:
    """Read a segment.

    Raises:
        DamagedError: its content is not what its name says.
    """
    content = read_own(path)
    if hashlib.sha256(content).hexdigest() != path.stem:
        message = f"{path} was changed"
        raise DamagedError(message)
    return content


def _last_use(folder: Path) -> float:
    with suppress(OSError):
        return (folder / _USED).stat().st_mtime
    return 0.0
