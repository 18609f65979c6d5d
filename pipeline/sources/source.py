"""An input whose files, bindings and types are known, and every check that footers allow."""

from __future__ import annotations

import math
from dataclasses import field as data_field
from dataclasses import replace
from filecmp import cmp
from functools import cached_property, partial
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ..base.dialect import Partition, column, double, is_finite, kept
from ..base.errors import ConfigError, DataError, ThresherError, together
from ..base.records import dataclass
from ..base.visible_text import listed
from . import predicates
from .bindings import Binding, Bindings, UserSql, bound, check_twins, shown_items
from .finding import Listing
from .frames import FrameRows
from .inputs import (
    EngineRows,
    Expression,
    columns_in_words,
    elements_in_words,
    is_index,
    is_partition,
    mapping_of_expression,
    partition_column,
)
from .parquet_files import DataFile
from .predicates import none_known, partition_type, settled
from .types import (
    ACCEPTS,
    TIME_TYPES,
    UNKNOWN,
    canonical_type,
    decimals_of,
    how_to_cast,
    microseconds,
    refused,
    type_of_nulls,
    typed,
)
from .unnesting import ROW

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from .bindings import TypeOf
    from .finding import Skipped
    from .inputs import Field, Input, InputContract, Kind, Looks, Rows
    from .predicates import Truths
    from .remote import Copies
    from .table_formats import TableVersion


PASSES_WHERE = "passes_where"
SCORE_GIVEN = "score_given"
SCORE_STATE = "score_state"
MOST_EXACT = 2**53  # whole numbers up to it are doubles, and so are decimal ones up to it without their point


def no_engine(expression: exp.Expr, _schema: pa.Schema) -> pa.DataType:
    """Stand in for an engine where none is needed: it fails if it is asked."""
    message = f"no engine is available to tell the type of {expression.sql(dialect='duckdb')}"
    raise ThresherError(message)


@dataclass(frozen=True)
class Scan:
    """Files with the same schema, a frame, or rows that the engine reads, to be registered under one name.

    Partitions are the columns that the files, absolute paths in order, lack, with their values in each file.
    """

    name: str
    files: tuple[str, ...]
    partitions: tuple[Partition, ...] = ()
    frame: FrameRows | None = None
    engine_rows: EngineRows | None = None


def scan_of(name: str, files: tuple[Rows, ...]) -> Scan:
    """Return the scan of files with the same schema and partitions, or of other rows, which stand alone."""
    first = files[0]
    if isinstance(first, EngineRows):
        return Scan(name, (), engine_rows=first)
    if isinstance(first, FrameRows):
        return Scan(name, (), frame=first)
    partitions = []
    for folder in first.partitions:
        if is_partition(first, folder):
            values = tuple(file.partitions[folder] for file in files)
            partitions.append(Partition(partition_column(first, folder), partition_type(first, folder), values))
    return Scan(name, tuple(str(file.path) for file in files if isinstance(file, DataFile)), tuple(partitions))


@dataclass(frozen=True)
class Source:
    """An input whose files have been found and their footers read, and whose frames have been opened.

    Attributes:
        contract: What the stage expects of it.
        spec: What the config says about it.
        files: Its files and frames in order.
        type_of: Returns the type of an expression on the columns of a schema, as an engine finds it.
        truths: Says for which values of partitions a predicate holds, as an engine finds it.
        skipped: Files in its folders that are not read because of their names.
        files_left_out: Number of files that are not opened, because `where` holds for no row of their partitions.
        tables: The versions of tables of table formats among them.
        results_left_out: Results folders below its folders, which are not read.
        others: The other inputs of the stage: they tell the type of a column that has no value in this one.
        shown: Columns of its files that rows carry along to be shown, with their place in the files; None: none do.
        keyed: Fields whose column a key of the stage, of the same name, tells before `columns` does.
    """

    contract: InputContract
    spec: Input
    files: tuple[Rows, ...]
    type_of: TypeOf = data_field(default=no_engine, compare=False, repr=False)
    truths: Truths = data_field(default=none_known, compare=False, repr=False)
    skipped: tuple[Skipped, ...] = ()
    files_left_out: int = 0
    tables: tuple[TableVersion, ...] = ()
    results_left_out: tuple[Path, ...] = ()
    others: tuple[Source, ...] = data_field(default=(), compare=False, repr=False)
    shown: tuple[str, ...] | None = None
    keyed: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Name of the input."""
        return self.contract.name

    @property
    def rows(self) -> int:
        """Rows in all files, from their footers."""
        return sum(file.rows for file in self.files)

    @property
    def n_files(self) -> int:
        """Number of its files and frames; a table of the engine counts as one where the engine does not tell."""
        return sum(file.n_files if isinstance(file, EngineRows) else 1 for file in self.files)

    @property
    def without_places(self) -> str | None:
        """Name of rows of which the engine tells neither file nor number; None: every row has its place."""
        return next((each.name for each in self.files if isinstance(each, EngineRows) and not each.has_places), None)

    @cached_property
    def groups(self) -> tuple[tuple[Rows, ...], ...]:
        """The files by schema and by the names of their partitions, so that no file is read with the types of another.

        Files that SQL of the user reads otherwise are groups, too: those for which another part of `where` is left to
        decide, and those with other values of partitions that SQL reads, where they are constants. A frame is a group
        by itself, and so are rows that the engine reads.
        """
        mapped = [name for tree in self.bindings.trees for name in predicates.columns_of(tree)]
        groups: dict[object, list[Rows]] = {}
        for file in self.files:
            signature = tuple((field.name, str(field.type)) for field in file.schema)
            partitions = tuple((name, partition_type(file, name)) for name in file.partitions)
            residual = self.where_of(file)
            read = (*mapped, *(() if residual is None else predicates.columns_of(residual)))
            constants = tuple(file.partitions[name] for name in read if is_partition(file, name))
            own_group = None if isinstance(file, DataFile) else id(file)
            groups.setdefault((signature, partitions, id(residual), constants, own_group), []).append(file)
        return tuple(tuple(group) for group in groups.values())

    @property
    def scans(self) -> tuple[Scan, ...]:
        """One scan for each group."""
        return tuple(scan_of(f"{self.name}_files_{number}", files) for number, files in enumerate(self.groups))

    def fetch(self, names: Iterable[str]) -> None:
        """Bring here the columns of files that lie elsewhere, and those that `where` and expressions read.

        Raises:
            ThresherError: a store or a table cannot be read, or the disk is full.
        """
        away = [file for file in self.files if isinstance(file, DataFile) and file.fetch is not None]
        if not away:
            return
        from .remote import together  # noqa: PLC0415 - only where an input lies elsewhere

        mapped = (column for name in self.spec.columns if self.is_mapped(name) for column in self.columns_read(name))
        columns = {*names, *self.where_columns, *(self.shown or ()), *mapped}
        together([partial(file.fetch, columns) for file in away if file.fetch is not None])

    @cached_property
    def where(self) -> exp.Expr | None:
        """The parsed predicate of the user; None if every row is used."""
        if self.spec.where is None:
            return None
        return predicates.parse_predicate(self.spec.where, name=self.name, values=self.spec.values())

    def where_of(self, file: Rows) -> exp.Expr | None:
        """What is left to decide of the predicate for the rows of a file; None if every row is used."""
        return self._residuals.get(id(file))

    @cached_property
    def _residuals(self) -> dict[int, exp.Expr]:
        if self.where is None:
            return {}
        residuals = settled(self.where, self.files, self.truths, is_partition)
        return {id(file): residual for file, residual in zip(self.files, residuals, strict=True)}

    @property
    def has_user_sql(self) -> bool:
        """Whether the config has SQL on its columns: `where`, or an expression that a field is mapped to."""
        return self.spec.where is not None or any(isinstance(each, Expression) for each in self.spec.columns.values())

    @property
    def where_columns(self) -> tuple[str, ...]:
        """The columns that the predicate reads."""
        return () if self.where is None else predicates.columns_of(self.where)

    @cached_property
    def bindings(self) -> Bindings:
        """Which column is which field."""
        columns = frozenset(name for file in self.files for name in (*file.schema.names, *file.partitions))
        return Bindings(self.contract, self.spec.columns, columns)

    def binding(self, name: str) -> Binding:
        """Return what a column is read from."""
        return self.bindings.of(name)

    def field(self, name: str) -> Field | None:
        """Return the field of the contract that a column is read as; None for a column that only groups rows."""
        return self.contract.field(name) if self.binding(name).is_bound else None

    def source_name(self, name: str) -> str:
        """Return the name of a column in the files, or the expression that computes it."""
        return self.binding(name).words

    def has(self, name: str) -> bool:
        """Whether the column is mapped, or found in any file under its canonical name and has no other role."""
        return self.binding(name).is_bound

    def can_show(self, name: str) -> bool:
        """Whether a column that is only shown can be read: a column bound by its name may be something else."""
        field = self.field(name)
        if field is None or self.is_mapped(name):
            return self.has(name)
        try:
            self.types(name, field)
        except DataError:
            return False
        return True

    def offers(self, name: str) -> bool:
        """Whether the input has a column to group by: a field, or any column of the files without another role."""
        return self.has(name) or self.bindings.is_unused_by_rule(name)

    def is_mapped(self, name: str) -> bool:
        """Whether the config says what the column is read from."""
        return self.binding(name).origin == "mapped"

    def columns_read(self, name: str) -> tuple[str, ...]:
        """Return the columns of the files that a column is read from."""
        tree = self.bindings.tree(name)
        return (self.source_name(name),) if tree is None else predicates.columns_of(tree)

    def has_float32(self, name: str) -> bool:
        """Whether any file holds the column in single precision."""
        return any(str(self.type_in(file, name)) in {"float", "halffloat"} for file in self.files)

    def may_be_null(self, name: str) -> bool:
        """Whether the column may be NULL somewhere, as far as the statistics of the files tell."""
        file_column = self.binding(name).column
        if file_column is None:
            return True
        return any(is_partition(file, file_column) or not file.null_free(file_column) for file in self.files)

    def span(self, name: str) -> tuple[float, float] | None:
        """Return the lowest and highest number of a column, a hint from the footers; None if they do not tell."""
        file_column = self.binding(name).column
        ranges = [None if file_column is None else file.bounds(file_column) for file in self.files if file.rows]
        finite_ranges = [limits for limits in ranges if limits is not None and all(map(math.isfinite, limits))]
        if not finite_ranges or len(finite_ranges) < len(ranges):
            return None
        return min(low for low, _ in finite_ranges), max(high for _, high in finite_ranges)

    def is_beyond_doubles(self, name: str) -> bool:
        """Whether it holds whole or decimal numbers with more digits than a DOUBLE, as far as the footers tell."""
        decimals = [decimals_of(self.type_in(file, name)) for file in self.files]
        span = self.span(name) if decimals and None not in decimals else None
        return span is not None and max(map(abs, span)) * 10.0 ** max(filter(None, decimals), default=0) > MOST_EXACT

    def is_date(self, name: str) -> bool:
        """Whether any file holds the column as dates, without a time of day."""
        return any(str(self.type_in(file, name)).startswith("date") for file in self.files)

    def is_integer(self, name: str) -> bool:
        """Whether the column has an integer type in every file."""
        return all("int" in str(self.type_in(file, name)) for file in self.files)

    def is_zoned(self, name: str) -> bool | None:
        """Whether the times of a column are points in time: their type has a zone, or the input declares one.

        None if neither is known: the input declares no zone, and the column has no value in any file.
        """
        types = {str(self.type_in(file, name)) for file in self.files} - {"null"}
        if self.spec.timezone is not None:
            return True
        return all("tz=" in each for each in types) if types else None

    def type_in(self, file: Rows, name: str) -> pa.DataType | str | None:
        """Return the Arrow type of a column for a file; `partition` for a folder name; None if the file lacks it."""
        tree = self.bindings.tree(name)
        if tree is not None:
            return self._user_sql.type_in(
                file, tree, self.source_name(name), name=name, reads=f"{name} is computed from"
            )
        file_column = self.source_name(name)
        if is_partition(file, file_column):
            return file.partition_types.get(file_column, "partition")
        index = file.schema.get_field_index(file_column)
        return file.schema.field(index).type if index >= 0 else None

    def check_where(self) -> None:
        """Check that `where` is true or false for a row of each file, as far as the types of its columns tell."""
        if self.where is None or self.spec.where is None:
            return
        columns = predicates.columns_of(self.where)
        for file in self.files:
            self._user_sql.check_predicate(file, self._residuals[id(file)], self.spec.where, columns)

    @cached_property
    def _user_sql(self) -> UserSql:
        return UserSql(self.name, self.type_of)

    def types(self, name: str, wanted: Field) -> str:
        """Return the canonical type of a column, which must be the same in all files.

        A column of Arrow type null in every file, which is what writers choose for columns without a value, has the
        type of the same column in another input, or the one that its field expects.

        Raises:
            DataError: as for `known_type`.
        """
        sql_type = self.known_type(name, wanted)
        if sql_type is not None:
            return sql_type
        elsewhere = (other.accepted_type(name, wanted) for other in self.others)
        return type_of_nulls(wanted.kind, next((each for each in elsewhere if each is not None), None))

    def known_type(self, name: str, wanted: Field) -> str | None:
        """Return the canonical type of a column over all files; None if it has Arrow type null in every file.

        Raises:
            DataError: a file lacks the column or has it twice, or the types differ; the message lists the files.
        """
        files_of: dict[str, list[Rows]] = {}
        for file in self.files:
            files_of.setdefault(self._canonical_in(file, name, wanted), []).append(file)
        known_types = [sql_type for sql_type in files_of if sql_type != UNKNOWN]
        if len(known_types) > 1:
            drift = "; ".join(f"{sql_type} in {files[0].name}" for sql_type, files in sorted(files_of.items()))
            message = f"input {self.name}: column {self.source_name(name)!r} has different types: {drift}"
            raise DataError(message, remedy="Give it one type everywhere, or leave the odd ones out.")
        return known_types[0] if known_types else None

    def accepted_type(self, name: str, wanted: Field) -> str | None:
        """Return the first known type of a column in the files that a field accepts, if any."""
        in_files = (self.type_in(file, name) for file in self.files)
        sql_types = (
            "VARCHAR" if isinstance(each, str) else canonical_type(each, wanted.kind) for each in in_files if each
        )
        return next((each for each in sql_types if each not in {None, UNKNOWN}), None)

    def _canonical_in(self, file: Rows, name: str, wanted: Field) -> str:
        file_column = self.source_name(name)
        for read in self.columns_read(name):
            check_twins(self.name, file, read)
        arrow = self.type_in(file, name)
        if arrow is None:
            role = self.bindings.role_of(name)
            why = "" if role in {None, name} else f": the column of that name is mapped to {role}"
            message = f"input {self.name}: {file.name} has no column {file_column!r} ({wanted.meaning}){why}"
            raise DataError(message, remedy=self._remedy(file, name))
        if isinstance(arrow, str):
            sql_type = "VARCHAR" if wanted.kind in {"key", "any"} else None
        else:
            sql_type = canonical_type(arrow, wanted.kind)
        if sql_type is None:
            raise self._unaccepted(file, name, arrow, wanted)
        return sql_type

    def _unaccepted(self, file: Rows, name: str, arrow: pa.DataType | str, wanted: Field) -> DataError:
        """Return the error that the field does not accept the type of a column."""
        binding = self.binding(name)
        noun = "column" if binding.sql is None else "expression"
        is_folder = isinstance(arrow, str)
        kind, remedy = refused(arrow) or (arrow, how_to_cast(arrow, wanted.kind, field=name, column=binding.words))
        if is_folder:
            kind = "the name of a folder, which is text"
        elif noun == "expression":
            remedy = "Cast it in the expression; nothing is cast silently."
        message = f"input {self.name}: {noun} {binding.words!r} in {file.name} is {kind}, not {ACCEPTS[wanted.kind]}"
        if not wanted.required and binding.origin == "named" and self.contract.field(name) is not None:
            remedy += f" If it is something else: columns = {{ {name} = false }}."
        return DataError(message, remedy=remedy + self._without_key(name))

    def _remedy(self, file: Rows, name: str) -> str:
        file_column = self.source_name(name)
        if mapping := mapping_of_expression(file, file_column, "" if name == file_column else name):
            return mapping + self._without_key(name)
        words = columns_in_words(file, file_column)
        if is_index(file, file_column):
            return words
        words = (
            f'{words} Write {name} = "…".'
            if name in self.keyed
            else f'{words} Map it with columns = {{ {name} = "…" }}.'
        )
        if self.spec.unnested:
            number = f"{self.spec.unnested[0]}{ROW}"
            return f"{words} The number of the row that has the list is {number!r}."
        return words + elements_in_words(file, file_column, self.name)

    def _without_key(self, name: str) -> str:
        """What lets a mapping in `columns` have an effect; empty unless a key tells the column of the field."""
        return f" Leave the key {name} out then." if name in self.keyed and self.is_mapped(name) else ""


def open_source(
    contract: InputContract,
    spec: Input,
    base: Path,
    type_of: TypeOf = no_engine,
    scratch: Path | None = None,
    *,
    truths: Truths = none_known,
    copies: Copies | None = None,
    look: Looks | None = None,
    results: Path | None = None,
) -> Source:
    """Find the files of an input and check their footers against its contract; arguments beside are those of `Listing`.

    Raises:
        ConfigError: a required column is unbound.
        NoInputError: no file matches.
        DataError: required or mapped columns are missing, or have types that their fields do not accept, or `where`
            does not fit the columns; it lists all.
    """
    kinds, reads = partial(_kinds, contract, spec), _reads(contract, spec)
    listing = Listing(spec, base, scratch, contract.name, kinds, reads, truths, copies, look, results).opened()
    left_out = (listing.skipped, listing.left_out, listing.tables, listing.results_left_out)
    source = Source(contract, spec, listing.files, type_of, truths, *left_out)
    if faults := _faults(source):
        raise together(faults)
    return source


def _faults(source: Source) -> list[DataError]:
    """What is wrong with the columns of an input, and with its `where`; what the config alone shows is raised."""
    contract, faults = source.contract, []
    for field in contract.fields:
        if field.required and source.spec.columns.get(field.name) is False:
            message = f"input {contract.name}: columns sets {field.name} = false, but it is required ({field.meaning})"
            raise ConfigError(message, remedy="Map it to a column or to an expression.")
        if field.required or source.is_mapped(field.name):
            try:
                source.types(field.name, field)
            except DataError as error:
                faults.append(error)
    try:
        source.check_where()
    except DataError as error:
        faults.append(error)
    return faults


def _kinds(contract: InputContract, spec: Input, columns: list[str]) -> dict[str, Kind]:
    """The kinds of the fields that columns of a file are bound to, by column."""
    bindings = Bindings(contract, spec.columns, frozenset(columns))
    bound = ((bindings.of(field.name).column, field.kind) for field in contract.fields)
    return {file_column: kind for file_column, kind in bound if file_column is not None}


def _reads(contract: InputContract, spec: Input) -> tuple[str, ...]:
    """The columns that fields are read from; a number that is neither required nor a score only if it is mapped."""
    bindings = Bindings(contract, spec.columns, frozenset())
    of_expressions = (name for tree in bindings.trees for name in predicates.columns_of(tree))
    mapped = [bindings.of(name).column for name in spec.columns]
    named = [
        field.name
        for field in contract.fields
        if field.name not in spec.columns and not field.mapped_only
        if field.required or field.kind != "number" or field.name == "score"
    ]
    return tuple(filter(None, (*mapped, *of_expressions, *named)))


def with_others(sources: Mapping[str, Source]) -> dict[str, Source]:
    """Let each input of a stage know the others."""
    return {
        name: replace(source, others=tuple(other for key, other in sources.items() if key != name))
        for name, source in sources.items()
    }


def judged_by_itself(sources: Iterable[Source], reads: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield a warning for every truth that is what it is to judge: the same rows, or made of the same column.

    `reads` is what is read of the inputs of a stage, as (input, canonical name).
    """
    named = {source.name: source for source in sources}
    for source in named.values():
        names = [field.name for field in source.contract.fields if (source.name, field.name) in reads]
        yield from _made_of_the_judged(source, names)
        judged = named.get(source.contract.truth_of)
        columns = {name: source.columns_read(name) for name in names if source.binding(name).is_bound}
        if judged is None or not all(
            (judged.contract.field(name) is not None and judged.columns_read(name) == read)
            for name, read in columns.items()
        ):
            continue
        if _same_rows(source, judged):
            names = list(dict.fromkeys(file.name for each in (source, judged) for file in each.files))
            files = " and ".join(names[:2]) + (", …" if names[2:] else "")
            yield (
                f"input {source.name} and input {judged.name} hold the same rows ({files}): they are compared "
                "with themselves, so the scores say nothing. Check which file belongs to which input"
            )


def _made_of_the_judged(source: Source, names: list[str]) -> Iterator[str]:
    """Warn of a field that is computed from nothing but the columns of the field that it judges."""
    for field in source.contract.fields:
        if field.truth_of and {field.name, field.truth_of} <= set(names):
            truth, judged = source.columns_read(field.name), source.columns_read(field.truth_of)
            if truth and set(truth) <= set(judged):
                yield (
                    f"input {source.name}: {field.name} and {field.truth_of} are both read from "
                    f"{listed(map(repr, truth))}, which is compared with itself, so the scores say nothing. Map "
                    f"{field.name} to the column that says what is true"
                )


def _same_rows(source: Source, judged: Source) -> bool:
    """Whether two inputs read the same files, or copies, in the same way."""
    how, how_judged = (each.spec.model_dump(exclude={"path", "columns"}) for each in (source, judged))
    if how != how_judged or len(source.files) != len(judged.files):
        return False
    return all(_same_content(file, other) for file, other in zip(source.files, judged.files, strict=True))


def _same_content(file: Rows, other: Rows) -> bool:
    if not isinstance(file, DataFile) or not isinstance(other, DataFile):
        return type(file) is type(other) and file.digest == other.digest
    if file.is_versioned or other.is_versioned:
        return (file.name, file.identity) == (other.name, other.identity)
    return cmp(file.origin or file.path, other.origin or other.path, shallow=False)  # read where the sizes agree


def canonical_relation(
    source: Source, wanted: Mapping[str, Field], *, score: str | None = None, located: bool = False
) -> exp.Query:
    """Select every row of an input with canonical columns.

    The result has the wanted columns under the names they are asked for by, and the boolean `passes_where`: whether
    `where` holds. When `score` is named, it also has `score_state`, which is NULL for a finite score, otherwise
    `null_score`, `nan_score` or `infinite_score`; and `score_given`, the score as it is in the file, even if it is NaN
    or infinite, for readers that check it themselves and so do without the barrier.

    Args:
        source: The input.
        wanted: Names in the result, each with the canonical name of its column and the field it must fit.
        score: The wanted column whose state is asked for.
        located: Whether to keep `source_file` and `file_row_number` of a located scan.
    """
    types = {name: (field, source.types(field.name, field)) for name, field in wanted.items()}
    key = _key(source, types, score, located=located)
    return kept(key, lambda: _canonical(source, types, score, located=located))


def _key(
    source: Source, types: Mapping[str, tuple[Field, str]], score: str | None, *, located: bool
) -> Hashable | None:
    """Return what the relation depends on; None where values or names of the files decide, too."""
    spec = source.spec
    is_named = located and bool(_names_to_show(source.files))
    if spec.where is not None or is_named or any(file.partitions for file in source.files):
        return None
    said = repr([(name, value) for name, value in spec if name != "path"])
    schemas = tuple(
        (type(group[0]), tuple((field.name, str(field.type)) for field in group[0].schema)) for group in source.groups
    )
    wanted = tuple(
        (name, repr(field), sql_type, repr(source.binding(field.name))) for name, (field, sql_type) in types.items()
    )
    return "canonical", source.name, said, schemas, wanted, source.shown, source.keyed, score, located


def _canonical(
    source: Source, types: Mapping[str, tuple[Field, str]], score: str | None, *, located: bool
) -> exp.Query:
    selects = [
        _select(source, f"{source.name}_files_{number}", files, types, score, located=located)
        for number, files in enumerate(source.groups)
    ]
    return selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False)


def _select(
    source: Source,
    scan: str,
    files: tuple[Rows, ...],
    types: Mapping[str, tuple[Field, str]],
    score: str | None,
    *,
    located: bool,
) -> exp.Select:
    file = files[0]
    items = [
        exp.alias_(_typed(source, file, field, sql_type), name, quoted=True)
        for name, (field, sql_type) in types.items()
    ]
    items.append(exp.alias_(_kept(source, file), PASSES_WHERE, quoted=True))
    if score is not None:
        raw_score = exp.cast(_value(source, file, score), "DOUBLE")
        items.append(exp.alias_(raw_score, SCORE_GIVEN, quoted=True))
        items.append(exp.alias_(_score_state(raw_score), SCORE_STATE, quoted=True))
    items += shown_items(source, file)
    if located:
        items += [_source_file(files), column("file_row_number")]
    return exp.select(*items).from_(exp.table_(scan))


def _source_file(files: tuple[Rows, ...]) -> exp.Expr:
    """The name of the file of each row: its path, or where the rows lie in a temporary file what they come from.

    Rows are ordered by it, so that it must be the same in every run.
    """
    names = _names_to_show(files)
    if not names:
        return column("source_file")
    starts = {_differing_start(path, shown) for path, shown in names.items()}
    if (
        len(starts) == 1 < len(names) == len(files)
    ):  # as for all files below a folder; a comparison for each file would take its time
        ((hidden, shown),) = starts
        below = exp.func("substring", column("source_file"), exp.Literal.number(len(hidden) + 1))
        return exp.alias_(exp.DPipe(this=exp.Literal.string(shown), expression=below), "source_file", quoted=True)
    name = exp.Case(this=column("source_file"))
    for path, shown in names.items():
        name = name.when(exp.Literal.string(path), exp.Literal.string(shown))
    return exp.alias_(name.else_(column("source_file")), "source_file", quoted=True)


def _names_to_show(files: Iterable[Rows]) -> dict[str, str]:
    """The names that people know files by, where they differ from their paths, by path."""
    return {str(file.path): file.name for file in files if isinstance(file, DataFile) and file.name != str(file.path)}


def _differing_start(path: str, name: str) -> tuple[str, str]:
    """Return what path and name of a file start with before they become the same."""
    pairs = enumerate(zip(reversed(path), reversed(name), strict=False))
    alike = next((place for place, (a, b) in pairs if a != b), min(len(path), len(name)))
    return path[: len(path) - alike], name[: len(name) - alike]


def _typed(source: Source, file: Rows, field: Field, sql_type: str) -> exp.Expr:
    name, kind = field.name, field.kind
    arrow = source.type_in(file, name)
    if arrow is None or isinstance(arrow, str):  # text, which needs no cast
        return column(partition_column(file, source.source_name(name)))
    is_time = kind in {"instant", "position"} and sql_type in TIME_TYPES
    if canonical_type(arrow, kind) == UNKNOWN:
        return exp.cast(exp.null(), "BIGINT" if is_time else sql_type, dialect="duckdb")
    value = typed(_value(source, file, name), arrow, sql_type, as_written=field.as_written)
    if kind == "any" and sql_type == "DOUBLE":  # a group of zeros would have the sign of whichever row came first
        return exp.Add(this=exp.paren(value), expression=double(0))
    return microseconds(value, sql_type, source.spec.timezone) if is_time else value


def _value(source: Source, file: Rows, name: str) -> exp.Expr:
    """A column of the file, the value of its partition, or the expression that the config maps it to."""
    tree, file_column = source.bindings.tree(name), source.source_name(name)
    if tree is not None:
        return exp.paren(bound(file, tree))
    return column(partition_column(file, file_column) if is_partition(file, file_column) else file_column)


def _kept(source: Source, file: Rows) -> exp.Expr:
    where = source.where_of(file)
    if where is None or isinstance(where, exp.Boolean):
        return exp.true() if where is None else where.copy()
    return exp.Coalesce(this=bound(file, exp.paren(where)), expressions=[exp.false()])


def _score_state(raw_score: exp.Expr) -> exp.Expr:
    zero = is_finite(raw_score)
    # statistics leave out NaN: a column that has one value beside it would be taken for that value
    factor = exp.paren(exp.Case().when(zero, double(2)).else_(double(1)))
    text = exp.Lower(this=exp.cast(exp.paren(exp.Mul(this=raw_score.copy(), expression=factor)), "VARCHAR"))
    return (
        exp.Case()
        .when(exp.Is(this=raw_score.copy(), expression=exp.null()), exp.Literal.string("null_score"))
        .when(zero.copy(), exp.null())
        .when(exp.EQ(this=text, expression=exp.Literal.string("nan")), exp.Literal.string("nan_score"))
        .else_(exp.Literal.string("infinite_score"))
    )
