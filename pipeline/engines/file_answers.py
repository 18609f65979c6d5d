"""What single files answer: kept answers are looked up by all that decides them, and only the other files are asked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import field, replace
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ..queries.answers import Entry, renumbered
from ..queries.by_file import FILE, ByFile, Met
from ..queries.dialect import column, render
from ..queries.digests import added, digest, numbers_of_rows
from ..queries.splitting import ANSWERS
from ..records import dataclass
from .told import numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..queries.answers import Answers, KeepsAnswers
    from .duckdb import DuckDB
    from .told import Told

MOST_SEGMENTS = 8  # of kept answers; more are made one, and what is not used any more goes
MANY_ANSWERS, SMALLER = 8, 2  # from so many answers on, their total is kept too, if it has so many times fewer rows
KEPT_SHARE, KEPT_ROWS = 32, 20_000  # answers are kept while they have a small share of the rows of all files, or few
MANY_FILES, SPARE = 8, 4  # from so many files on, one is asked first; answers of files together may be so much larger
LARGE_FILE = 2_000_000  # rows of a file, or of files that are asked together, from which on a statement is for it alone
LARGER = 4  # times the rows for which answers were too large, from which on it is tried again
MOST_KEYS = 2_000_000  # by which it is told what the rows of files meet
_KEYS = "keys_of_files"


class TooLargeError(Exception):
    """What files answer has too many rows to be worth keeping."""


@dataclass(frozen=True)
class Asked:
    """A query of single files, and which of them have answered it before.

    Attributes:
        query: The query.
        params: Values of its parameters.
        files: Scan and path of every file.
        ids: Ids of the files as they are now; None for a file whose answer is not to be kept.
        kept: What is kept of the query.
        usable: Answers among that of files as they are now, as few as can be.
        together: How many files are asked together.
    """

    query: ByFile
    params: Mapping[str, float]
    files: tuple[tuple[str, str], ...]
    ids: tuple[str | None, ...]
    kept: Answers
    usable: tuple[Entry, ...]
    together: int = 1

    @property
    def open(self) -> list[int]:
        """Indexes of the files that have not answered."""
        answered = {name for entry in self.usable for name in entry.files}
        return [index for index, name in enumerate(self.ids) if name is None or name not in answered]

    @property
    def asked_together(self) -> list[list[int]]:
        """Indexes of the files that are asked now: those of one scan that are asked together."""
        by_scan: dict[str, list[int]] = {}
        for index in self.open:
            by_scan.setdefault(self.files[index][0], []).append(index)
        size = self.together
        return [of_scan[start : start + size] for of_scan in by_scan.values() for start in range(0, len(of_scan), size)]


@dataclass
class FileAnswers:
    """Asks single files, and keeps what they answer.

    Attributes:
        engine: What reads the files.
        states: Where answers are kept.
        told: The relations of the engine.
        context: Text that decides all answers: versions of code and libraries.
        put_together: Makes a query read no file where that can be.
        read: Paths of the files that were read, by input.
    """

    engine: DuckDB
    states: KeepsAnswers
    told: Told
    context: str
    put_together: Callable[[exp.Query], exp.Query]
    read: dict[str, set[str]] = field(default_factory=dict)
    _digests: dict[str, list[str] | str | None] = field(default_factory=dict)

    def asked(self, query: ByFile, params: Mapping[str, float], settled_by: str = "") -> Asked:
        """Look up which files have answered a query.

        Raises:
            TooLargeError: it was tried before.
        """
        around, of_scans = query.of_each_scan()
        files = tuple((scan, path) for scan in of_scans for path in self.told.scans[scan].files)
        params = used(query.rows, params)
        kept = self.states.answers(hashed([self.context, around, sorted(params.items()), settled_by]))
        if kept.too_large_for * LARGER > self._rows(files):
            raise TooLargeError
        met = [self._met(each, files) for each in query.met]
        ids = tuple(
            self._id(path, [of_scans[scan], self.told.scans[scan].tells(path), [_of_file(each, index) for each in met]])
            for index, (scan, path) in enumerate(files)
        )
        usable = kept.of(name for name in ids if name is not None)
        return Asked(query, params, files, ids, kept, tuple(usable))

    def _id(self, path: str, decides: object) -> str | None:
        identity = self.told.files[path].identity
        return None if identity is None else hashed([identity, decides])

    def _rows(self, files: Sequence[tuple[str, str]]) -> int:
        return sum(self.told.files[path].rows for _, path in files)

    def _most(self, asked: Asked) -> int:
        """How many rows the answers of all files may have together."""
        return max(KEPT_ROWS, self._rows(asked.files) // KEPT_SHARE)

    def fetch(self, asked: Asked, query: ByFile | None = None) -> pl.DataFrame:
        """Ask the files that have not answered; `FILE` is the index in `asked_together`.

        Args:
            asked: The query.
            query: Another one to ask the same files.

        Raises:
            TooLargeError: the answer is not worth keeping.
        """
        most = self._most(asked)
        answers: list[pl.DataFrame] = []
        for first, groups in self._asked_at_once(asked):
            scans = self._scan(asked, first, groups)
            tree = (query or asked.query).of_scans(scans).limit(most + 1 - sum(frame.height for frame in answers))
            answers.append(self.engine.fetch(tree, used(tree, asked.params)))
            if sum(frame.height for frame in answers) > most:
                self.states.give_up(asked.kept, self._rows(asked.files))
                raise TooLargeError
        return pl.concat(answers)

    def _asked_at_once(self, asked: Asked) -> list[tuple[int, list[list[int]]]]:
        """What one statement asks of `asked_together`, with the index of the first of them.

        Large files of the same columns are asked one by one: a statement that tells files apart has one more key to
        group by, which costs it the table indexed by the keys.
        """
        groups = asked.asked_together
        is_one_scan = len({asked.files[group[0]][0] for group in groups}) == 1
        rows = sum(self.told.files[asked.files[index][1]].rows for group in groups for index in group)
        if is_one_scan and rows >= LARGE_FILE * len(groups):
            return [(number, [group]) for number, group in enumerate(groups)]
        return [(0, groups)]

    def _scan(self, asked: Asked, first: int, groups: Sequence[Sequence[int]]) -> list[str]:
        """Register the files of some of `asked_together` with their numbers; return the names of their scans."""
        scans = list(dict.fromkeys(asked.files[group[0]][0] for group in groups))
        for name in scans:
            of_scan = [group for group in groups if asked.files[group[0]][0] == name]
            scan, paths = self.told.scans[name], [asked.files[index][1] for group in of_scan for index in group]
            partitions = scan.partitions_of(paths)
            self.engine.scan_numbered(
                numbered(name), paths, first, asked.together, partitions=partitions, located=scan.located
            )
            self.read.setdefault(scan.source, set()).update(paths)
            first += len(of_scan)
        return scans

    def answers(
        self, asked: Asked, settle: Callable[[Asked, pl.DataFrame], pl.DataFrame] | None = None
    ) -> pl.DataFrame:
        """The answers of all files; those of files that had not answered are kept for the next run.

        Args:
            asked: The query.
            settle: What is done to these before they are kept.

        Raises:
            TooLargeError: the answers are not worth keeping.
        """
        frames = list(asked.kept.rows(asked.usable, range(len(asked.usable))))
        if asked.open:
            asked = replace(asked, together=self._how_many_together(asked))
            fresh = self.fetch(asked)
            frames.append(fresh if settle is None else settle(asked, fresh))
        answers = pl.concat(frame.select(frames[-1].columns).cast(frames[-1].schema) for frame in frames)
        if answers.height > self._most(asked) and None not in asked.ids:
            answers = self._as_of_one_file(answers, asked.query.merged_by)
            if answers.height > self._most(asked):
                self.states.give_up(asked.kept, self._rows(asked.files))
            else:
                self.states.keep(asked.kept, [list(map(str, asked.ids))], answers, alone=True)
            return answers
        if asked.open:
            self._keep(asked, frames[-1])
        if None in asked.ids or len(asked.usable) + len(asked.asked_together) < MANY_ANSWERS:
            return answers
        return self._totalled(asked, answers)

    def _totalled(self, asked: Asked, answers: pl.DataFrame) -> pl.DataFrame:
        """The total of all files, which is kept beside their own answers: the next run then opens it alone."""
        total = answers if answers.is_empty() else self._as_of_one_file(answers, asked.query.merged_by)
        if total.height * SMALLER > answers.height:
            return answers
        self.states.keep(asked.kept, [list(map(str, asked.ids))], total)
        return total

    def _as_of_one_file(self, answers: pl.DataFrame, merged_by: Mapping[str, str]) -> pl.DataFrame:
        """Answers of several files as if all were one file."""
        keys = [name for name in answers.columns if name not in merged_by and name != FILE]
        values = [exp.alias_(exp.func(merged_by[name], column(name)), name, quoted=True) for name in merged_by]
        self.engine.hand_over(ANSWERS, answers.to_arrow())
        merged = exp.select(*map(column, keys), *values).from_(ANSWERS).group_by(*map(column, keys))
        rows = self.engine.fetch(merged).with_columns(pl.lit(0, pl.Int32).alias(FILE))
        return rows.select(answers.columns).cast(answers.schema)

    def _how_many_together(self, asked: Asked) -> int:
        """How many files to ask together, so that their answers are small beside them: those of one tell."""
        n_open, most = len(asked.open), self._most(asked)
        if n_open < MANY_FILES:
            return 1
        ids = tuple(f"file {index}" if name is None else name for index, name in enumerate(asked.ids))
        others = tuple(Entry((ids[index],), "", -1) for index in asked.open[1:])
        height = self.fetch(replace(asked, ids=ids, usable=(*asked.usable, *others))).height
        return 1 if height * n_open <= most else -(-n_open // max(1, most // (SPARE * height)))

    def _keep(self, asked: Asked, fresh: pl.DataFrame) -> None:
        """Keep the answers of files that may be trusted to be as they were when they are looked at again.

        Where they lie in many segments these are made one, without totals, and without what is not used any more.
        """
        groups = [[asked.ids[index] for index in group] for group in asked.asked_together]
        numbers = [number for number, group in enumerate(groups) if None not in group]
        rows = renumbered(fresh, {number: index for index, number in enumerate(numbers)})
        ids = [[str(name) for name in groups[number]] for number in numbers]
        if is_many := len(asked.kept.segments) >= MOST_SEGMENTS:
            finest = asked.kept.of((name for name in asked.ids if name is not None), finest=True)
            kept = asked.kept.rows(finest, range(len(ids), len(ids) + len(finest)))
            rows = pl.concat([rows, *(frame.select(rows.columns).cast(rows.schema) for frame in kept)])
            ids += [list(entry.files) for entry in finest]
        self.states.keep(asked.kept, ids, rows, alone=is_many)

    def by_file(self, asked: Asked) -> pl.DataFrame:
        """The answers of all files, each by itself; `FILE` is the index of the file."""
        singles = asked.kept.of((name for name in asked.ids if name is not None), finest=True)
        kept_of = {entry.files[0]: entry for entry in singles if len(entry.files) == 1}
        asked = replace(asked, usable=tuple(kept_of.values()))
        index_of = {name: index for index, name in enumerate(asked.ids)}
        answers = list(asked.kept.rows(asked.usable, [index_of[name] for name in kept_of]))
        if asked.open:
            fresh = self.fetch(asked)
            self._keep(asked, fresh)
            groups = asked.asked_together
            fresh = renumbered(fresh, {number: group[0] for number, group in enumerate(groups)})
            answers = [*(frame.select(fresh.columns).cast(fresh.schema) for frame in answers), fresh]
        return pl.concat(answers)

    def _met(self, met: Met, files: Sequence[tuple[str, str]]) -> list[str] | str:
        """A digest of what the rows of each file meet in a relation; or of the whole relation, for all files."""
        relation = [self.told.state_of(met.relation), render(met.relation, pretty=False)]
        if met.rows is not None:
            key = hashed([relation, met.keys, render(met.rows.rows, pretty=False), files])
            if key not in self._digests:
                self._digests[key] = self._met_by_file(met, met.rows, files)
            if (digests := self._digests[key]) is not None:
                return digests
        key = hashed(relation)
        if key not in self._digests:
            together = self.put_together(met.relation)
            digested = self.engine.fetch(digest(together)).row(0)
            self._digests[key] = hashed([self._types_of(together), *map(str, digested)])
        return self._digests[key] or ""

    def _met_by_file(self, met: Met, rows: ByFile, files: Sequence[tuple[str, str]]) -> list[str] | None:
        """A digest for each file of the rows that its rows meet; None if that takes too long to tell."""
        try:
            asked = self.asked(rows, {})
            keys = self.by_file(asked)
        except TooLargeError:
            return None
        if keys.height > MOST_KEYS or list(asked.files) != list(files):
            return None
        self.engine.hand_over(_KEYS, keys.to_arrow())
        file = column(FILE, _KEYS)
        conditions = (column(ours, _KEYS).eq(column(theirs, "met")) for theirs, ours in met.keys)
        together = self.put_together(met.relation)
        names = list(dict.fromkeys(theirs for theirs, _ in met.keys))
        digested = added(numbers_of_rows(together, names), "met")
        digested = digested.join(_KEYS, on=exp.and_(*conditions)).select(file).group_by(file)
        types = self._types_of(together)
        digests = [hashed([types])] * len(files)
        for *numbers, index in self.engine.fetch(digested).iter_rows():
            digests[index] = hashed([types, *map(str, numbers)])
        return digests

    def _types_of(self, relation: exp.Query) -> str:
        """Names and types of the columns of a relation, which the text of its rows does not tell."""
        return str(self.engine.fetch(exp.select("*").from_(relation.subquery("met")).limit(0)).schema)


def hashed(value: object) -> str:
    """A digest of what JSON can hold."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def used(query: exp.Expr, params: Mapping[str, float]) -> dict[str, float]:
    """The parameters that a query has."""
    names = {str(node.this) for node in query.find_all(exp.Placeholder)}
    return {name: value for name, value in params.items() if name in names}


def _of_file(digests: list[str] | str, index: int) -> str:
    return digests if isinstance(digests, str) else digests[index]
