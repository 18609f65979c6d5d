"""An engine that asks single files once: what they answered is kept, so that the next run reads new files only.

The answer of a file to a query is decided by the text of the query, by the file, and by the rows of other relations
that its rows meet in joins. All three are in its id, so that a file which was replaced, or whose rows meet other rows
now (an event whose window has become complete), is asked again, and no other. What does not add up over files is asked
of all of them, as without kept answers; it is said which inputs are read for it, and why.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import polars as pl
import sqlglot.expressions as exp
from polars.exceptions import PolarsError

from ..base.dialect import FILE, added, column, digest, numbers_of_rows, render
from ..base.records import dataclass
from ..base.splitting import ANSWERS, ByFile, Met, NotAdditiveError
from ..base.sql_files import file_of
from .engine import Scan, Told, numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ..base.dialect import Partition
    from ..base.splitting import Splitter
    from .duckdb import DuckDB
    from .engine import Function, InputFile, Settle

    Splits = Callable[[Splitter], ByFile]
    FetchByFile = Callable[[ByFile], pl.DataFrame]
    SettleByFile = Callable[[FetchByFile, pl.DataFrame], pl.DataFrame]


KEPT_ROWS, KEPT_SHARE = 100_000, 32  # answers are kept while they have few rows, or a small share of those of the files
MOST_ROWS = 1_000_000  # of kept answers; from more on, neighbours are made one
MANY_FILES, SPARE = 8, 4  # from so many new files on, one is asked first; of answers together so many times the rows
LARGER = 4  # times the rows for which answers were too large, from which on it is tried again
LARGE_FILE = 2_000_000  # rows of files that are asked together, from which on a statement is for them alone
_ENTRIES, _KEYS, _NUMBER = "thresher.entries", "keys_of_files", "_number"
_NEARLY_AS_LARGE = "what single files answer is nearly as large as they are"
_ASKED_ONCE = (
    "what is asked of them depends on all of them, as the cells of binned areas do that a few rounds make finer"
)
_COMPARED = "what the rows of other inputs meet in them is compared with what it was before"
_NOT_ADDITIVE = "what is asked of them is not the sum of what single files give"
_NOT_AGGREGATED = "their rows are needed in order, or one by one"


class KeepsAnswers(Protocol):
    """A store that keeps bytes by key from run to run."""

    def read(self, key: str) -> bytes | None:
        """Return what is kept, intact; None if nothing is."""
        ...

    def write(self, key: str, content: bytes) -> None:
        """Keep something in the place of what was kept."""
        ...


class TooLargeError(Exception):
    """The answers of the files have too many rows to be worth keeping."""


@dataclass(frozen=True)
class Asked:
    """A query of single files.

    Attributes:
        query: The query.
        params: Values of its parameters.
        files: Scan and path of every file.
        ids: What decides the answer of each file, as a hash; None for a file whose answer is not to be kept.
        most: How many rows answers may have together.
    """

    query: ByFile
    params: Mapping[str, float]
    files: tuple[tuple[str, str], ...]
    ids: tuple[str | None, ...]
    most: int


@dataclass(frozen=True)
class Answers:
    """Answers to one query.

    Attributes:
        files: Indexes of the files of each answer: of one, or of several that were asked together.
        rows: Their rows, with `FILE`, the index of the answer.
    """

    files: list[list[int]]
    rows: pl.DataFrame

    @classmethod
    def kept(cls, content: bytes | None, ids: Sequence[str | None]) -> Answers:
        """The answers of files as they are now among those that `content` returned."""
        try:
            entries = json.loads(pl.read_parquet_metadata(io.BytesIO(content or b""))[_ENTRIES])
            rows = pl.read_parquet(io.BytesIO(content or b""))
        except (PolarsError, KeyError, ValueError):
            entries, rows = [], pl.DataFrame(schema={FILE: pl.Int32})
        index_of = {name: index for index, name in enumerate(ids) if name is not None}
        files = [[index_of.get(name, -1) for name in names] for names in entries]
        return cls(files, rows).chosen([number for number, each in enumerate(files) if -1 not in each])

    def content(self, ids: Sequence[str | None]) -> bytes:
        """As bytes, with the ids of the files."""
        buffer = io.BytesIO()
        entries = json.dumps([[ids[index] for index in files] for files in self.files])
        self.rows.write_parquet(buffer, compression="zstd", metadata={_ENTRIES: entries})
        return buffer.getvalue()

    def chosen(self, numbers: Sequence[int]) -> Answers:
        """Some of them, in this order."""
        schema = {FILE: pl.Int32(), _NUMBER: pl.Int32()}
        new = pl.DataFrame({FILE: list(numbers), _NUMBER: list(range(len(numbers)))}, schema=schema)
        rows = self.rows.join(new, on=FILE, how="inner", maintain_order="left")
        rows = rows.with_columns(pl.col(_NUMBER).alias(FILE)).drop(_NUMBER)
        return Answers([self.files[number] for number in numbers], rows)

    def beside(self, fresh: Answers) -> Answers:
        """These and others, whose columns and types hold."""
        if not self.files:
            return fresh
        theirs = fresh.rows.with_columns(pl.col(FILE) + pl.lit(len(self.files), pl.Int32))
        ours = self.rows.select(theirs.columns).cast(theirs.schema)
        return Answers([*self.files, *fresh.files], pl.concat([ours, theirs]))


@dataclass
class Reuse:
    """How much of the inputs of a stage was read, and how much was not.

    Attributes:
        files: Number of the files of every input of several files.
        read: Paths of those of which rows were read.
        reasons: Why all files of an input were read.
    """

    files: dict[str, int] = field(default_factory=dict)
    read: dict[str, set[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


class FileAnswers:
    """Asks single files, and keeps what they answer.

    Args:
        engine: What reads the files.
        cache: Where answers are kept.
        told: The relations of the engine.
        context: Text that decides all answers: the stage, versions of code and libraries.
        prepared: Returns the query that an engine is asked for a whole relation, and notes what that reads.
    """

    def __init__(
        self, engine: DuckDB, cache: KeepsAnswers, told: Told, context: str, prepared: Callable[[exp.Query], exp.Query]
    ) -> None:
        self._engine, self._cache, self._told, self._context, self._prepared = engine, cache, told, context, prepared
        self._digests: dict[str, dict[str, str] | str] = {}
        self.read: dict[str, set[str]] = {}

    def answers(
        self,
        query: ByFile,
        params: Mapping[str, float],
        settle: SettleByFile | None = None,
        settled_by: str = "",
        *,
        apart: bool = False,
    ) -> tuple[Asked, Answers]:
        """The answers of all files; new ones are kept for the next run.

        Args:
            query: The query.
            params: Values of its parameters, and of others.
            settle: What is done to answers before they are kept.
            settled_by: Text that decides what it does.
            apart: Whether every file must answer by itself.

        Raises:
            TooLargeError: the answers are not worth keeping.
        """
        around, of_scans = query.of_each_scan()
        files = tuple((scan, path) for scan in of_scans for path in self._told.scans[scan].files)
        params, rows = used(query.rows, params), sum(self._told.files[path].rows for _, path in files)
        key = hashed([self._context, around, sorted(params.items()), settled_by])
        content = self._cache.read(key)
        if content is not None and content.isdigit() and int(content) * LARGER > rows:
            raise TooLargeError
        ids = self._ids(query, files, of_scans)
        asked = Asked(query, params, files, ids, max(KEPT_ROWS, rows // KEPT_SHARE))
        kept = Answers.kept(content, ids)
        answered = {index for each in kept.files for index in each}
        unanswered = [index for index in range(len(files)) if index not in answered]
        if not unanswered:
            return asked, kept
        try:
            fresh = self._fresh(asked, unanswered, settle, apart=apart)
        except TooLargeError:
            self._cache.write(key, str(rows).encode())
            raise
        every = kept.beside(fresh)
        lasting = [number for number, each in enumerate(every.files) if all(ids[index] is not None for index in each)]
        if len(lasting) > len(kept.files):
            now = every.chosen(lasting)
            self._cache.write(key, (now if apart else self._fewer(asked, now)).content(ids))
        return asked, every

    def _ids(
        self, query: ByFile, files: Sequence[tuple[str, str]], of_scans: Mapping[str, str]
    ) -> tuple[str | None, ...]:
        met = [self._met(each, [path for _, path in files]) for each in query.met]

        def name(scan: str, path: str) -> str | None:
            identity = self._told.files[path].identity
            of_met = [each if isinstance(each, str) else each.get(path, "") for each in met]
            decides = [identity, of_scans[scan], self._told.scans[scan].tells(path), of_met]
            return None if identity is None else hashed(decides)

        return tuple(name(scan, path) for scan, path in files)

    def _fresh(self, asked: Asked, unanswered: Sequence[int], settle: SettleByFile | None, *, apart: bool) -> Answers:
        """Ask files that have not answered: one by one, or of many small parts of their answers several together."""
        together, most = 1, min(asked.most, MOST_ROWS)
        if not apart and len(unanswered) >= MANY_FILES:
            height = self.fetch(asked, asked.query, [[unanswered[0]]]).height
            if height * len(unanswered) > most:
                together = -(-len(unanswered) // max(1, most // (SPARE * height)))
        by_scan: dict[str, list[int]] = {}
        for index in unanswered:
            by_scan.setdefault(asked.files[index][0], []).append(index)
        groups = [each[at : at + together] for each in by_scan.values() for at in range(0, len(each), together)]
        rows = self.fetch(asked, asked.query, groups)
        if settle is not None:
            rows = settle(lambda other: self.fetch(asked, other, groups), rows)
        return Answers(groups, rows)

    def fetch(self, asked: Asked, query: ByFile, groups: Sequence[Sequence[int]]) -> pl.DataFrame:
        """Ask groups of files; `FILE` is the index of the group.

        Large files are asked one by one: a statement that tells files apart has one more key to group by, which costs
        it the table indexed by the keys.

        Raises:
            TooLargeError: the answer is not worth keeping.
        """
        numbers = range(len(groups))
        rows = sum(self._told.files[asked.files[index][1]].rows for group in groups for index in group)
        is_large = rows >= LARGE_FILE * len(groups)
        answers: list[pl.DataFrame] = []
        left = asked.most
        for at_once in ([number] for number in numbers) if is_large else (list(numbers),):
            self._number(asked.files, groups, at_once)
            tree = query.rows.limit(left + 1)
            answers.append(self._engine.fetch(tree, used(tree, asked.params)))
            left -= answers[-1].height
            if left < 0:
                raise TooLargeError
        return pl.concat(answers)

    def _number(
        self, files: Sequence[tuple[str, str]], groups: Sequence[Sequence[int]], numbers: Sequence[int]
    ) -> None:
        """Register the files of some groups with the number of their group; all other files have no row."""
        for name in dict.fromkeys(scan for scan, _ in files):
            scan = self._told.scans[name]
            of_scan = [number for number in numbers if files[groups[number][0]][0] == name]
            if not of_scan:
                number = exp.alias_(exp.cast(exp.Literal.number(0), "INT"), FILE, quoted=True)
                self._engine.define(numbered(name), exp.select("*", number).from_(name).where(exp.false()))
                continue
            paths = [files[index][1] for number in of_scan for index in groups[number]]
            together, partitions = len(groups[of_scan[0]]), scan.partitions_of(paths)
            self._engine.scan_numbered(
                numbered(name), paths, of_scan[0], together, partitions=partitions, located=scan.located
            )
            self.read.setdefault(scan.source, set()).update(paths)

    def _fewer(self, asked: Asked, answers: Answers) -> Answers:
        """Answers of which neighbours were made one until they have few rows together."""
        files, rows, merged_by = answers.files, answers.rows, asked.query.merged_by
        while rows.height > min(asked.most, MOST_ROWS) and len(files) > 1:
            keys = [column(name) for name in rows.columns if name not in merged_by]
            values = [exp.alias_(exp.func(merged_by[name], column(name)), name, quoted=True) for name in merged_by]
            self._engine.hand_over(ANSWERS, rows.with_columns(pl.col(FILE) // 2).to_arrow())
            merged = self._engine.fetch(exp.select(*keys, *values).from_(ANSWERS).group_by(*keys))
            rows = merged.select(rows.columns).cast(rows.schema)
            files = [[index for each in files[at : at + 2] for index in each] for at in range(0, len(files), 2)]
        return Answers(files, rows)

    def _met(self, met: Met, files: Sequence[str]) -> dict[str, str] | str:
        """A digest of what the rows of each file, by its path, meet in a relation; or of the whole relation."""
        of_rows = None if met.rows is None else render(met.rows.rows, pretty=False)
        key = hashed([self._told.state_of(met.relation), render(met.relation, pretty=False), met.keys, of_rows, files])
        if key not in self._digests:
            relation = self._prepared(met.relation)
            types = str(self._engine.fetch(exp.select("*").from_(relation.subquery("met")).limit(0)).schema)
            try:
                self._digests[key] = self._met_by_file(met, met.rows, relation, types)
            except TooLargeError:
                self._digests[key] = hashed([types, *map(str, self._engine.fetch(digest(relation)).row(0))])
        return self._digests[key]

    def _met_by_file(self, met: Met, rows: ByFile | None, relation: exp.Query, types: str) -> dict[str, str]:
        """A digest for each file of the rows that its rows meet.

        Raises:
            TooLargeError: it is not told by keys, or these are too many.
        """
        if rows is None:
            raise TooLargeError
        asked, keys = self.answers(rows, {}, apart=True)
        self._engine.hand_over(_KEYS, keys.rows.to_arrow())
        file = column(FILE, _KEYS)
        conditions = (column(ours, _KEYS).eq(column(theirs, "met")) for theirs, ours in met.keys)
        digested = added(numbers_of_rows(relation, list(dict.fromkeys(theirs for theirs, _ in met.keys))), "met")
        digested = digested.join(_KEYS, on=exp.and_(*conditions)).select(file).group_by(file)
        digests = {path: hashed([types]) for _, path in asked.files}
        for *numbers, number in self._engine.fetch(digested).iter_rows():
            (index,) = keys.files[number]
            digests[asked.files[index][1]] = hashed([types, *map(str, numbers)])
        return digests


def hashed(value: object) -> str:
    """A digest of what JSON can hold."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def used(query: exp.Expr, params: Mapping[str, float]) -> dict[str, float]:
    """The parameters that a query has."""
    names = {str(node.this) for node in query.find_all(exp.Placeholder)}
    return {name: value for name, value in params.items() if name in names}


class Incremental:
    """An engine that keeps what single files answered.

    Args:
        engine: What answers.
        cache: Where the answers are kept.
        files: The files of the inputs by path.
        context: Text that decides all answers: the stage, versions of code and libraries.
    """

    def __init__(self, engine: DuckDB, cache: KeepsAnswers, files: Mapping[str, InputFile], context: str) -> None:
        self._engine = engine
        self.name, self.has_workers, self.most_in_order = engine.name, engine.has_workers, engine.most_in_order
        self._told = Told(files)
        self._files = FileAnswers(
            engine, cache, self._told, context, lambda query: self._prepared(query, {}, _COMPARED)
        )
        self._whole: dict[str, str] = {}
        self._n_kept = 0

    @property
    def reuse(self) -> Reuse:
        """How much was read so far, and how much was not."""
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

        def settle_by_file(splitter: Splitter, fetch: FetchByFile, counts: pl.DataFrame) -> pl.DataFrame:
            return settle(lambda other: fetch(splitter.by_file(other)), counts)

        answer = self._of_files(query, params, lambda splitter: splitter.by_file(query), settle_by_file, settled_by)
        if not isinstance(answer, str):
            return answer.drop(FILE)
        return self._engine.count(self._prepared(query, params, answer), params, settle, settled_by)

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

        answers = self._of_files(query, params, split)
        if isinstance(answers, str):
            return answers
        self._engine.hand_over(ANSWERS, answers.to_arrow())
        return self._engine.fetch(together[0], used(together[0], params))

    def _of_files(
        self,
        query: exp.Query,
        params: Mapping[str, float],
        split: Splits,
        settle: Callable[[Splitter, FetchByFile, pl.DataFrame], pl.DataFrame] | None = None,
        settled_by: str = "",
    ) -> pl.DataFrame | str:
        """The answers of the files of the largest input over whose files a query adds up; without one, the reason."""
        reasons = []
        for source in self._told.inputs_of(query):
            splitter = self._told.splitter(source)
            settle_split = None if settle is None else partial(settle, splitter)
            try:
                return self._files.answers(split(splitter), params, settle_split, settled_by)[1].rows
            except NotAdditiveError:
                name = file_of(query)
                reasons.append(_NOT_ADDITIVE if name is None else f"{name} is not the sum of what single files give")
            except TooLargeError:
                reasons.append(_NEARLY_AS_LARGE)
        return reasons[0] if reasons else ""

    def _prepared(self, query: exp.Query, params: Mapping[str, float], reason: str) -> exp.Query:
        """A query for all files, which are noted with the reason.

        What groups rows in it and adds up over files, such as the distinct clusters, is asked of single files: a named
        query is replaced by what it returns, and a query within the query by a relation of that.
        """
        tree = query.copy()
        for name, view in self._told.views_of(query).items():
            if (table := self._kept_rows(view, {})) is not None:
                self._engine.define(name, exp.select("*").from_(exp.to_table(table)))
                self._told.replaced(name)
        for node in list(tree.find_all(exp.Subquery)):
            if (table := self._kept_rows(node.this, params)) is not None:
                node.replace(exp.to_table(table).as_(node.alias))
        for scan in self._told.scans_of(tree):
            self._files.read.setdefault(scan.source, set()).update(scan.files)
            self._whole.setdefault(scan.source, reason)
        return tree

    def _kept_rows(self, query: exp.Expr, params: Mapping[str, float]) -> str | None:
        """A relation of what a query returns that groups rows and adds up over files; None for any other."""
        if not isinstance(query, exp.Select) or not any(query.args.get(key) for key in ("group", "distinct")):
            return None
        answer = self._answer(query, params)
        if isinstance(answer, str):
            return None
        self._n_kept += 1
        self._engine.fill(name := f"put_together_{self._n_kept}", [answer])
        return name
