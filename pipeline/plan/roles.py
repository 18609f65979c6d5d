"""Columns without a role that should have one: ids that repeat, names of systems, and what looks like a cluster.

Rows are taken as independent, and those of all systems as one sample, unless the config says otherwise. The first
rows of the files tell, at the cost of these rows alone, where that looks wrong. They do not tell of what comes
later in the files, of values that lie farther apart than they reach, or of columns that an expression reads.
"""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from ..base.records import dataclass
from ..base.visible_text import cleaned, with_edges
from ..sources.bindings import is_usual_id, is_usual_name, is_usual_system
from ..sources.frames import FrameRows
from ..sources.parquet_files import DataFile
from .nodes import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from ..engines.engine import Engine
    from ..sources.source import Source
    from .nodes import Grouped, Progress, Statement


MOST_ROWS = 20_000
MOST_SYSTEMS, MOST_NAMED = 100, 4
FEWEST_CLUSTERS, FEWEST_ROWS = 10, 100
ALIKE, LIKELY = 0.3, 1e-6  # share of the variance between clusters, and how likely that is by chance


class _Look:
    """A look at the first rows of an input, whose words are warnings."""

    phase: ClassVar[Phase] = Phase.CROSS_CHECKS
    into: ClassVar[str] = "warnings"

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - all nodes are called alike
        """It asks the engine nothing."""
        return iter(())


@dataclass(frozen=True)
class Roles(_Look):
    """A look at the first rows of the primary input, whose words are warnings.

    Attributes:
        source: The input.
        by: The grouping columns.
        read: Its fields that are read.
        clusters: The columns of the clusters; none: rows are taken as independent.
        values: Numbers in which rows of one cluster would be alike, such as the score and the label; none: rows are not
            taken as independent, whatever their columns are.
    """

    source: Source
    by: Sequence[Grouped]
    read: Sequence[str]
    clusters: Sequence[str]
    values: Sequence[str]

    def run(self, engine: Engine, progress: Progress) -> None:  # noqa: ARG002 - all nodes are called alike
        """Look at the rows and add what is odd to the warnings."""
        grouped = _grouping(self.source, self.by)
        columns = columns_in_no_role(self.source, (*self.read, *grouped, *self.clusters))
        if not self.values:  # what tells systems apart is all there is to find
            columns = tuple(filter(is_usual_system, columns))
        if not columns:
            return
        groups = _telling_apart(self.source, grouped)
        values = _in_files(self.source, self.values)
        rows = first_rows(self.source, list(dict.fromkeys((*columns, *groups, *values))), MOST_ROWS)
        progress.warnings += doubts(rows, columns, groups, [] if self.clusters else values)


def pooled_systems(source: Source, by: Sequence[Grouped]) -> Roles:
    """A look at an input whose rows are not independent anyway, for systems or data sets that share one number."""
    return Roles(source, by, _bound(source), (), ())


@dataclass(frozen=True)
class UnmappedId(_Look):
    """A look at the first rows of an input whose rows have no id, for a column that is called like it and repeats.

    Attributes:
        source: The input.
        by: The grouping columns.
        field: The field that is not bound.
        beside: Our names of the columns with which it should not repeat.
        consequence: What follows for the rows that repeat it.
    """

    source: Source
    by: Sequence[Grouped]
    field: str
    beside: Sequence[str]
    consequence: str

    def run(self, engine: Engine, progress: Progress) -> None:  # noqa: ARG002 - all nodes are called alike
        """Look at the rows and add what is odd to the warnings."""
        grouped = _grouping(self.source, self.by)
        unread = columns_in_no_role(self.source, (*_bound(self.source), *grouped))
        columns = [name for name in unread if is_usual_name(self.field, name)]
        groups = _telling_apart(self.source, (*self.beside, *grouped))
        if not columns:
            return
        rows = first_rows(self.source, list(dict.fromkeys((*columns, *groups))), MOST_ROWS)
        for name, n_repeat in islice(_repeating(rows, columns, groups), 1):
            beside = f" with the same {' and '.join(map(self.source.source_name, self.beside))}" if self.beside else ""
            progress.warnings.append(
                f"input {self.source.name}: {name!r} has no role and repeats{beside} in {n_repeat:,} of the first "
                f"{rows.height:,} rows, {self.consequence}: if it is the {self.field}, map it, columns = "
                f"{{ {self.field} = {_toml(name)} }}"
            )


def _bound(source: Source) -> list[str]:
    return [field.name for field in source.contract.fields if source.has(field.name)]


def _grouping(source: Source, by: Sequence[Grouped]) -> list[str]:
    return [each.column for each in by if each.source == source.name]


def _in_files(source: Source, names: Sequence[str]) -> list[str]:
    """Those columns that are read as they are in the files, by their names there."""
    return [source.source_name(name) for name in names if source.binding(name).column is not None]


def _telling_apart(source: Source, names: Sequence[str]) -> list[str]:
    """Columns of the files within which ids should not repeat: some that are read, and all in `where`."""
    return list(dict.fromkeys([*_in_files(source, names), *columns_in_where(source)]))


def doubts(rows: pl.DataFrame, columns: Sequence[str], groups: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
    """Warnings about columns without a role, judged by the first rows; at most one of each kind.

    Args:
        rows: The rows.
        columns: Their columns without a role.
        groups: Their columns that group the results.
        values: Their numbers that would be alike in a cluster; none: clusters are named, so that ids may repeat.
    """
    pooled = _pooled(rows, [name for name in columns if is_usual_system(name)], groups)
    words = list(_pooled_in_words(pooled))
    repeating = (
        next(_repeating(rows, [name for name in columns if is_usual_id(name)], groups), None) if values else None
    )
    if repeating is not None:
        name, n_repeat = repeating
        words.append(
            f"{name!r} has no role and repeats in {n_repeat:,} of the first {rows.height:,} rows, which count as "
            f"independent: if it names what is predicted, map it, columns = {{ id = {_toml(name)} }}, or group by what "
            f"tells its rows apart; if its rows belong together, cluster = {_toml(name)}"
        )
    elif values and (cluster := _cluster(rows, [name for name in columns if name not in pooled], groups, values)):
        n_values = rows[cluster].n_unique()
        words.append(
            f"rows with the same {cluster!r} are alike ({n_values:,} values in the first {rows.height:,} rows), and "
            "all rows count as independent, so that intervals may be too narrow: if they belong together, cluster = "
            f"{_toml(cluster)}"
        )
    return tuple(words)


def _toml(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _pooled(rows: pl.DataFrame, columns: Sequence[str], groups: Sequence[str]) -> dict[str, list[object]]:
    """Columns of systems or data sets with several values in one group, with the values."""
    found = {}
    for name in columns:
        values = rows[name].drop_nulls().unique().sort()
        most = rows.group_by(groups).agg(pl.col(name).n_unique())[name].max() if groups else len(values)
        if 1 < len(values) <= MOST_SYSTEMS and isinstance(most, int) and most > 1:
            found[name] = values.to_list()
    return found


def _pooled_in_words(pooled: dict[str, list[object]]) -> Iterator[str]:
    if pooled:
        shown = [f"{name!r} ({_listed(values)})" for name, values in pooled.items()]
        yield (
            f"one number is of all values of {' and '.join(shown)} together: by = [[{', '.join(map(_toml, pooled))}]] "
            "gives results for each"
        )


def _listed(values: Sequence[object]) -> str:
    more = f" and {len(values) - MOST_NAMED:,} more" if len(values) > MOST_NAMED else ""
    return ", ".join(with_edges(cleaned(str(value), layout="")) for value in values[:MOST_NAMED]) + more


def _repeating(rows: pl.DataFrame, columns: Sequence[str], groups: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Columns of ids that repeat in a group, and in how many rows beyond the first of each."""
    for name in columns:
        known = rows.drop_nulls(name)
        n_repeat = known.height - known.select(*groups, name).n_unique()
        if n_repeat:
            yield name, n_repeat


def _cluster(rows: pl.DataFrame, columns: Sequence[str], groups: Sequence[str], values: Sequence[str]) -> str | None:
    """The column whose values make rows most alike in every number, far beyond chance; None: there is none."""
    alike = {}
    numbers = rows.select(*(_deviation(name, groups) for name in values))
    for name in columns:
        kind = rows.schema[name]
        n_values = rows[name].n_unique()
        few = FEWEST_CLUSTERS <= n_values <= rows.height / 2 and rows.height >= FEWEST_ROWS
        if few and (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Date)):
            shares = [_share_between(numbers[each], rows[name]) for each in values]
            if None not in shares:
                alike[name] = min(share for share in shares if share is not None)
    best = max(alike, key=lambda name: alike[name], default=None)
    return best if best is not None and alike[best] >= ALIKE else None


def _deviation(name: str, groups: Sequence[str]) -> pl.Expr:
    """A number less its mean in the group."""
    number = pl.col(name).cast(pl.Float64, strict=False).fill_nan(None)
    mean = number.mean().over(groups) if groups else number.mean()
    return (number - mean).alias(name)


def _share_between(numbers: pl.Series, cluster: pl.Series) -> float | None:
    """The intraclass correlation of numbers in clusters (Fisher's, by analysis of variance); None: it may be chance."""
    from scipy import special  # noqa: PLC0415 - only where rows are looked at

    frame = pl.DataFrame({"number": numbers, "cluster": cluster}).drop_nulls()
    sizes = frame.group_by("cluster").agg(pl.len().alias("n"), pl.col("number").mean().alias("mean"))
    n_rows, n_clusters = frame.height, sizes.height
    total = frame["number"].mean()
    if n_clusters < FEWEST_CLUSTERS or n_rows <= n_clusters or not isinstance(total, float):
        return None
    n, means = sizes["n"].to_numpy().astype(float), sizes["mean"].to_numpy()
    between = float((n * (means - total) ** 2).sum()) / (n_clusters - 1)
    everything = float(((frame["number"].to_numpy() - total) ** 2).sum())
    within = max(everything - between * (n_clusters - 1), 0.0) / (n_rows - n_clusters)
    by_chance = special.fdtrc(n_clusters - 1, n_rows - n_clusters, between / within) if within > 0 else 0.0
    if everything == 0 or by_chance > LIKELY:
        return None
    size = (n_rows - float((n**2).sum()) / n_rows) / (n_clusters - 1)
    return (between - within) / (between + (size - 1) * within)


# The first rows of an input with all their columns, those without a role among them: a look, never a count.


MOST_FILES = 16


def columns_in_no_role(source: Source, taken: Iterable[str]) -> tuple[str, ...]:
    """Columns of whole numbers, texts and dates that nothing reads, not even `where`.

    Args:
        source: The input.
        taken: Our names of the columns that are read.
    """
    read = {name for each in taken for name in source.columns_read(each)} | set(columns_in_where(source))
    kinds = {field.name: field.type for file in source.files[:1] for field in file.schema}
    told = (name for name in _names(source) if name not in kinds or _tells_rows_apart(kinds[name]))
    return tuple(name for name in told if name not in read)


def columns_in_where(source: Source) -> tuple[str, ...]:
    """Columns of plain values whose name stands in `where`: rows that differ in them may not be there together."""
    where = source.spec.where or ""
    odd = {field.name for file in source.files[:1] for field in file.schema if not _is_plain(field.type)}
    return tuple(name for name in _names(source) if name in where and name not in odd)


def _names(source: Source) -> list[str]:
    """The columns of the first file and of its folders."""
    return list(dict.fromkeys(name for file in source.files[:1] for name in (*file.schema.names, *file.partitions)))


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values of a type can be looked at whatever library reads them."""
    import pyarrow as pa  # noqa: PLC0415 - only where files are looked at

    return _tells_rows_apart(kind) or (pa.types.is_primitive(kind) and not pa.types.is_float16(kind))


def _tells_rows_apart(kind: pa.DataType) -> bool:
    """Whether values of a type name or number things."""
    import pyarrow as pa  # noqa: PLC0415 - only where files are looked at

    if pa.types.is_dictionary(kind):
        return _tells_rows_apart(kind.value_type)
    is_text = str(kind) in {"string", "large_string", "string_view"}
    return bool(is_text or pa.types.is_integer(kind) or pa.types.is_date(kind))


def first_rows(source: Source, columns: Sequence[str], most_rows: int) -> pl.DataFrame:
    """The first rows of up to 16 files, evenly among all, as many of each; without a row where they are not here.

    Files that cannot be read are passed over: the engine, which reads all of them, tells why.

    Args:
        source: The input.
        columns: Columns of the files and folders.
        most_rows: How many rows of all files together.
    """
    files = [file for file in source.files if isinstance(file, DataFile | FrameRows) and file.rows]
    files = [file for file in files if isinstance(file, FrameRows) or file.fetch is None]
    chosen = files[:: -(-len(files) // MOST_FILES)] if files else []
    frames = []
    for file in chosen:
        with suppress(OSError, ValueError, NotImplementedError):  # as Arrow calls what it cannot read
            frames.append(_of_file(file, columns, -(-most_rows // len(chosen))))
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema=dict.fromkeys(columns, pl.Null))


def _of_file(file: DataFile | FrameRows, columns: Sequence[str], most_rows: int) -> pl.DataFrame:
    named = [name for name in columns if name in file.schema.names]
    table: pa.Table
    if isinstance(file, FrameRows):
        table = file.table.select(named).slice(0, most_rows)
    else:
        import pyarrow as pa  # noqa: PLC0415 - only where files are looked at
        import pyarrow.parquet as pq  # noqa: PLC0415

        with pq.ParquetFile(file.path) as parquet:
            batch = next(parquet.iter_batches(batch_size=most_rows, columns=named))
        table = pa.Table.from_batches([batch])
    folders = [pl.lit(file.partitions[name]).alias(name) for name in columns if name in file.partitions]
    return pl.DataFrame(table).with_columns(folders)
