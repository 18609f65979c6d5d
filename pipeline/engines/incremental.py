"""An engine that asks single files once: what they answered before is kept, and only new files are read.

The answer of a file to a query is decided by the text of the query, by the file, and by those rows of other relations
that its rows meet in joins. All three are in the key of a kept answer, so that a file which was replaced, or whose rows
meet other rows now (an event whose window has become complete), is asked again, and no other. What does not add up over
files is asked of all of them, as without kept answers; it is said which inputs are read for it, and why.
"""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ..queries.by_file import FILE
from ..queries.load import file_of
from ..queries.splitting import ANSWERS, NotAdditiveError
from ..records import dataclass
from .file_answers import FileAnswers, TooLargeError, used
from .told import Scan, Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl
    import pyarrow as pa

    from ..queries.answers import KeepsAnswers
    from ..queries.by_file import ByFile
    from ..queries.partitions import Partition
    from ..queries.splitting import Splitter
    from .duckdb import DuckDB
    from .engine import Function, Settle
    from .file_answers import Asked
    from .told import InputFile

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
