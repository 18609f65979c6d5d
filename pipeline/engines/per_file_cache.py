"""What single files answer: kept answers are looked up by all that decides them, and only the other files are asked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ..queries.dialect import column, render
from ..queries.digests import added, digest, numbers_of_rows
from ..queries.load import file_of
from ..queries.splitting import ANSWERS, FILE, ByFile, Entry, Met, NotAdditiveError, renumbered
from ..records import dataclass
from .engine import Scan, Told, numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ..queries.partitions import Partition
    from ..queries.splitting import Answers, KeepsAnswers, Splitter
    from .duckdb import DuckDB
    from .engine import Function, InputFile, Settle


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


# An engine that asks single files once: what they answered before is kept, and only new files are read.
#
# The answer of a file to a query is decided by the text of the query, by the file, and by those rows of other
# relations that its rows meet in joins. All three are in the key of a kept answer, so that a file which was replaced,
# or whose rows meet other rows now (an event whose window has become complete), is asked again, and no other. What
# does not add up over files is asked of all of them, as without kept answers; it is said which inputs are read for
# it, and why.


if TYPE_CHECKING:
    Splits = Callable[[Splitter], ByFile]

_NEARLY_AS_LARGE = "what single files answer is nearly as large as they are"
_ASKED_ONCE = (
    "what is asked of them depends on all of them, as the cells of binned areas do that a few rounds make finer"
)
_NOT_ADDITIVE = "what is asked of them is not the sum of what single files give"
_NOT_AGGREGATED = "their rows are needed in order, or one by one"


@dataclass
class Reuse:
    """What was read of the inputs of a stage, and what was not.

    Attributes:
        files: Number of the files of every input of several files.
        read: Paths of those of which rows were read.
        reasons: Why all files of an input were read.
    """

    files: dict[str, int] = field(default_factory=dict)
    read: dict[str, set[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


class Incremental:
    """An engine that keeps what single files answered.

    Args:
        engine: What answers.
        states: Where the answers are kept.
        files: The files of the inputs by path.
        context: Text that decides all answers: versions of code and libraries.
    """

    def __init__(self, engine: DuckDB, states: KeepsAnswers, files: Mapping[str, InputFile], context: str) -> None:
        self._engine = engine
        self.name, self.has_workers, self.most_in_order = engine.name, engine.has_workers, engine.most_in_order
        self._told = Told(files)
        self._files = FileAnswers(engine, states, self._told, context, lambda query: self._put_together(query, {}))
        self._whole: dict[str, str] = {}
        self._n_together = 0

    @property
    def reuse(self) -> Reuse:
        """What was read so far, and what was not."""
        sources = [file.source for file in self._told.files.values()]
        several = {source: sources.count(source) for source in sources if sources.count(source) > 1}
        return Reuse(several, self._files.read, self._whole)

    def scan(
        self, name: str, files: Sequence[str], partitions: Sequence[Partition] = (), *, located: bool = False
    ) -> None:
        """Register files with the same schema as a relation, with further columns that have one value for each file."""
        source = self._told.files[files[0]].source
        self._told.replaced(name, scan=Scan(source, tuple(files), tuple(partitions), located))
        self._engine.scan(name, files, partitions, located=located)

    def hand_over(self, name: str, table: pa.Table) -> None:
        """Register a table that lies in memory as a relation; its rows are not copied."""
        self._told.replaced(name)
        self._engine.hand_over(name, table)

    def define(self, name: str, query: exp.Query, *, keep: bool = False) -> None:
        """Give a query a name; what is kept of it is put together from the answers of files where it adds up."""
        if not keep:
            self._told.replaced(name, view=query)
            self._engine.define(name, query)
            return
        answer = self._answer(query, {})
        if isinstance(answer, str):
            self._engine.define(name, self._prepared(query, {}, answer), keep=True)
        else:
            self._engine.fill(name, [answer])
        self._told.replaced(name)

    def fetch(self, query: exp.Query, params: Mapping[str, float] | None = None, *, once: bool = False) -> pl.DataFrame:
        """Run a query and return its rows."""
        params = params or {}
        answer = _ASKED_ONCE if once else self._answer(query, params)
        if not isinstance(answer, str):
            return answer
        query = self._prepared(query, params, answer)
        return self._engine.fetch(query, used(query, params))

    def count(self, query: exp.Query, params: Mapping[str, float], settle: Settle, settled_by: str) -> pl.DataFrame:
        """Run a query whose counts are settled where they are counted: file by file, where they add up over files."""
        reason: Asked | str = self._asked(query, params, lambda splitter: splitter.by_file(query), settled_by)
        if not isinstance(reason, str):
            try:
                return self._files.answers(reason, partial(self._settled, settle)).drop(FILE)
            except TooLargeError:
                reason = _NEARLY_AS_LARGE
        return self._engine.count(self._prepared(query, params, reason), params, settle, settled_by)

    def _settled(self, settle: Settle, asked: Asked, counts: pl.DataFrame) -> pl.DataFrame:
        splitter = self._told.splitter(self._told.scans[asked.files[0][0]].source)
        return settle(lambda other: self._files.fetch(asked, splitter.by_file(other)), counts)

    def stream(self, query: exp.Query) -> Iterator[pl.DataFrame]:
        """Run a query and return its rows in order, in blocks of equal size; all files are read."""
        return self._engine.stream(self._prepared(query, {}, _NOT_AGGREGATED))

    def fill(self, name: str, frames: Iterable[pl.DataFrame]) -> None:
        """Create a relation from at least one frame, all with the same columns."""
        self._told.replaced(name)
        self._engine.fill(name, frames)

    def transform(
        self,
        name: str,
        reads: Mapping[str, exp.Query],
        key: Sequence[str],
        function: Function,
        batches: Iterable[pl.DataFrame],
    ) -> None:
        """Create a relation that a pure function makes of rows that lie together by a key."""
        self._told.replaced(name)
        self._engine.transform(name, reads, key, function, batches)

    def bucket(self, keys: Sequence[str], count: int) -> exp.Expr:
        """Return an expression for a number from 0 to count - 1 that is the same for all rows with the same key."""
        return self._engine.bucket(keys, count)

    def memory(self) -> int:
        """Return the memory limit of the engine in bytes."""
        return self._engine.memory()

    def _answer(self, query: exp.Query, params: Mapping[str, float]) -> pl.DataFrame | str:
        """The answer of all files, put together; where the query does not add up over files, the reason."""
        together: list[exp.Select] = []

        def split(splitter: Splitter) -> ByFile:
            halves = splitter.split(query)
            together[:] = [halves.together]
            return halves.of_files

        asked = self._asked(query, params, split)
        if isinstance(asked, str):
            return asked
        try:
            answers = self._files.answers(asked)
        except TooLargeError:
            return _NEARLY_AS_LARGE
        self._engine.hand_over(ANSWERS, answers.to_arrow())
        return self._engine.fetch(together[0], used(together[0], params))

    def _asked(self, query: exp.Query, params: Mapping[str, float], split: Splits, settled_by: str = "") -> Asked | str:
        """The query of single files, for the largest input over whose files it adds up; without one, the reason."""
        reasons = []
        for source in self._told.inputs_of(query):
            try:
                return self._files.asked(split(self._told.splitter(source)), params, settled_by)
            except NotAdditiveError:
                name = file_of(query)
                reasons.append(_NOT_ADDITIVE if name is None else f"{name} is not the sum of what single files give")
            except TooLargeError:
                reasons.append(_NEARLY_AS_LARGE)
        return reasons[0] if reasons else ""

    def _prepared(self, query: exp.Query, params: Mapping[str, float], reason: str) -> exp.Query:
        """A query for all files: what adds up in it is put together, and which files it reads all the same is noted."""
        query = self._put_together(query, params)
        for scan in self._told.scans_of(query):
            self._files.read.setdefault(scan.source, set()).update(scan.files)
            self._whole.setdefault(scan.source, reason)
        return query

    def _put_together(self, query: exp.Query, params: Mapping[str, float]) -> exp.Query:
        """A query in which all that adds up over files has been put together, so that it need not read these.

        A named query is replaced by what it returns; a query within the query, by a relation of that.
        """
        for name in dict.fromkeys(table.name for table in query.find_all(exp.Table)):
            if name in self._told.views:
                self._put_together_view(name, self._told.views[name])
        if not self._told.scans_of(query):
            return query
        tree = query.copy()
        for node in [node for node in tree.find_all(exp.Subquery) if _reduces(node.this)]:
            answer = self._answer(node.this, params)
            if not isinstance(answer, str):
                self._n_together += 1
                name = f"put_together_{self._n_together}"
                self._engine.fill(name, [answer])
                node.replace(exp.to_table(name).as_(node.alias))
        return tree

    def _put_together_view(self, name: str, view: exp.Query) -> None:
        answer = self._answer(view, {}) if _reduces(view) else ""
        if isinstance(answer, str):
            for scan in self._told.scans_of(view) if answer == _NEARLY_AS_LARGE else ():
                self._whole.setdefault(scan.source, answer)
            self._put_together(view, {})
            return
        table = f"{name}_together"
        self._engine.fill(table, [answer])
        self._engine.define(name, exp.select("*").from_(exp.to_table(table)))
        self._told.replaced(name)


def _reduces(query: exp.Expr) -> bool:
    """Whether a query groups rows or leaves out repeated ones."""
    return isinstance(query, exp.Select) and any(query.args.get(key) is not None for key in ("group", "distinct"))
