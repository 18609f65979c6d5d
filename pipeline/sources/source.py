"""An input with its files and types known: every check that footers allow, and its canonical relation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from dataclasses import field as data_field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.dialect import column, double, is_finite
from pipeline.errors import DataError
from pipeline.sources import predicates
from pipeline.sources.files import DataFile, bounds, find_files, null_free
from pipeline.sources.types import (
    ACCEPTS,
    TIMES,
    UNKNOWN,
    canonical_type,
    finite,
    microseconds,
    type_of_nulls,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from pipeline.sources.inputs import Field, Input, InputContract, Kind
    from pipeline.sources.skipped import Skipped

KEPT = "kept"
SCORE_GIVEN = "score_given"
SCORE_STATE = "score_state"


@dataclass(frozen=True)
class Scan:
    """Files of one and the same schema, to be registered with an engine under a name.

    Attributes:
        name: Logical relation.
        files: Absolute paths, in order.
    """

    name: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """One input, its files found and their footers read.

    Attributes:
        contract: What the stage knows of it.
        spec: What the config says of it.
        files: Its files in order.
        skipped: Files in its folders that are not read, because of their names.
        others: The other inputs of the stage: what a column has there tells what it is where every value is NULL.
    """

    contract: InputContract
    spec: Input
    files: tuple[DataFile, ...]
    skipped: tuple[Skipped, ...] = ()
    others: tuple[Source, ...] = data_field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        """Name of the input."""
        return self.contract.name

    @property
    def rows(self) -> int:
        """Rows in all files, from their footers."""
        return sum(file.rows for file in self.files)

    def scans(self, names: Iterable[str]) -> tuple[Scan, ...]:
        """One scan for the files of one schema, so that no file is read with the types of another.

        Args:
            names: Our names of the columns that will be read.
        """
        return tuple(
            Scan(f"{self.name}_files_{number}", tuple(str(file.path) for file in files))
            for number, files in enumerate(self._groups(names))
        )

    def _groups(self, names: Iterable[str]) -> tuple[tuple[DataFile, ...], ...]:
        """Files of one schema and of the same values in the folder names that are read; these become constants."""
        used = dict.fromkeys((*(self.theirs(name) for name in names), *self._where_columns))
        groups: dict[object, list[DataFile]] = {}
        for file in self.files:
            signature = tuple((field.name, str(field.type)) for field in file.schema)
            values = tuple((name, file.partitions[name]) for name in used if self._is_partition(file, name))
            groups.setdefault((signature, values), []).append(file)
        return tuple(tuple(group) for group in groups.values())

    @cached_property
    def _where(self) -> exp.Expr | None:
        return None if self.spec.where is None else predicates.parse_predicate(self.spec.where, name=self.name)

    @property
    def _where_columns(self) -> tuple[str, ...]:
        return () if self._where is None else predicates.columns_of(self._where)

    def _is_partition(self, file: DataFile, theirs: str) -> bool:
        """Whether a column comes from the folder names of a file; a column of the file itself comes first."""
        return theirs in file.partitions and theirs not in file.schema.names

    def theirs(self, name: str) -> str:
        """The name in the files of one of our columns."""
        return self.spec.columns.get(name, name)

    def has(self, name: str) -> bool:
        """Whether the column is mapped, or found in any file under our name."""
        return name in self.spec.columns or any(self._type_in(file, name) is not None for file in self.files)

    def has_float32(self, name: str) -> bool:
        """Whether any file holds the column in single precision."""
        return any(str(self._type_in(file, name)) in {"float", "halffloat"} for file in self.files)

    def may_be_null(self, name: str) -> bool:
        """Whether the statistics of the files leave it open that the column is NULL somewhere."""
        theirs = self.theirs(name)
        return any(self._is_partition(file, theirs) or not null_free(file, theirs) for file in self.files)

    def span(self, name: str) -> tuple[float, float] | None:
        """Lowest and highest number of a column as the footers tell; None where they do not. Only a hint."""
        found = [bounds(file, self.theirs(name)) for file in self.files if file.rows]
        known = [each for each in found if each is not None and math.isfinite(each[0]) and math.isfinite(each[1])]
        if not known or len(known) < len(found):
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    def is_date(self, name: str) -> bool:
        """Whether any file holds the column as dates, without a time of day."""
        return any(str(self._type_in(file, name)).startswith("date") for file in self.files)

    def is_zoned(self, name: str) -> bool | None:
        """Whether the times of a column are points in time: their type has a zone, or the input declares one.

        None where neither the input nor a file tells: it declares none, and the column has no value in any file.
        """
        types = {str(self._type_in(file, name)) for file in self.files} - {"null"}
        if self.spec.timezone is not None:
            return True
        return all("tz=" in each for each in types) if types else None

    def _type_in(self, file: DataFile, name: str) -> pa.DataType | str | None:
        theirs = self.theirs(name)
        if self._is_partition(file, theirs):
            return "partition"
        index = file.schema.get_field_index(theirs)
        return file.schema.field(index).type if index >= 0 else None

    def types(self, name: str, wanted: Field) -> str:
        """The one canonical type of a column over all files, even where the files leave it open.

        A column whose every file has Arrow type null, as writers choose it for columns without a value, has the type
        of the same column in another input, or the one that its field expects.

        Raises:
            DataError: as for `known_type`.
        """
        found = self.known_type(name, wanted)
        if found is not None:
            return found
        elsewhere = (other.accepted_type(name, wanted) for other in self.others)
        return type_of_nulls(wanted.kind, next((each for each in elsewhere if each is not None), None))

    def known_type(self, name: str, wanted: Field) -> str | None:
        """The one canonical type of a column over all files; None where it has Arrow type null in every file.

        Raises:
            DataError: a file lacks the column, has it twice, or the types do not agree; the message lists the files.
        """
        found: dict[str, list[DataFile]] = {}
        for file in self.files:
            found.setdefault(self._canonical_in(file, name, wanted), []).append(file)
        known = [sql_type for sql_type in found if sql_type != UNKNOWN]
        if len(known) > 1:
            drift = "; ".join(f"{sql_type} in {files[0].path}" for sql_type, files in sorted(found.items()))
            message = f"input {self.name}: column {self.theirs(name)!r} has different types: {drift}"
            raise DataError(message, remedy="Write the files again with one type, or leave the odd ones out.")
        return known[0] if known else None

    def accepted_type(self, name: str, wanted: Field) -> str | None:
        """The first known type of a column in the files, if it is one that a field accepts."""
        in_files = (self._type_in(file, name) for file in self.files)
        found = ("VARCHAR" if isinstance(each, str) else canonical_type(each, wanted.kind) for each in in_files if each)
        return next((each for each in found if each not in {None, UNKNOWN}), None)

    def _canonical_in(self, file: DataFile, name: str, wanted: Field) -> str:
        theirs = self.theirs(name)
        self._check_twins(file, theirs)
        arrow = self._type_in(file, name)
        if arrow is None:
            message = f"input {self.name}: {file.path} has no column {theirs!r} ({wanted.meaning})"
            raise DataError(message, remedy=self._remedy(file, name))
        if isinstance(arrow, str):
            sql_type = "VARCHAR" if wanted.kind in {"key", "any"} else None
        else:
            sql_type = canonical_type(arrow, wanted.kind)
        if sql_type is None:
            message = f"input {self.name}: column {theirs!r} in {file.path} is {arrow}, not {ACCEPTS[wanted.kind]}"
            raise DataError(message, remedy="Cast it when the file is written; nothing is cast silently.")
        return sql_type

    def _check_twins(self, file: DataFile, theirs: str) -> None:
        own = [field.name for field in file.schema if field.name.lower() == theirs.lower()]
        if len(own) > 1:
            message = (
                f"input {self.name}: {file.path} has {len(own)} columns named {theirs!r} (upper and lower case alike)"
            )
            raise DataError(message, remedy="Rename all but one when the file is written.")

    def _remedy(self, file: DataFile, name: str) -> str:
        return f'{self._listed(file, self.theirs(name))} Map it with columns = {{ {name} = "…" }}.'

    def _listed(self, file: DataFile, theirs: str) -> str:
        """The columns of a file, and the one nearest to a name that it lacks."""
        names = [*file.schema.names, *file.partitions]
        near = get_close_matches(theirs, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")  # noqa: PLR2004 - a readable line
        return f"Its columns are: {shown}.{hint}"

    def relation(self, wanted: Mapping[str, Field], *, score: str | None = None, located: bool = False) -> exp.Query:
        """Every row of the input with canonical columns.

        The result has the wanted columns, the boolean `kept` (whether `where` holds) and, when `score` is named,
        `score_state`: NULL for a finite score, else `null_score`, `nan_score` or `infinite_score`; and `score_given`:
        the score as it stands, NaN and infinite too, for those that check it themselves and save the barrier.

        Args:
            wanted: Our names of the columns and what they must be.
            score: The wanted column whose state is asked for.
            located: Whether to keep `source_file` and `file_row_number` of a located scan.
        """
        types = {name: (self.types(name, field), field.kind) for name, field in wanted.items()}
        parts = [
            self._select(f"{self.name}_files_{number}", group[0], types, score, located=located)
            for number, group in enumerate(self._groups(wanted))
        ]
        return parts[0] if len(parts) == 1 else exp.union(*parts, distinct=False)

    def _select(
        self, scan: str, file: DataFile, types: Mapping[str, tuple[str, Kind]], score: str | None, *, located: bool
    ) -> exp.Select:
        items = [exp.alias_(self._typed(file, name, *kind), name, quoted=True) for name, kind in types.items()]
        items.append(exp.alias_(self._kept(file), KEPT, quoted=True))
        if score is not None:
            given = exp.cast(column(self.theirs(score)), "DOUBLE")
            items.append(exp.alias_(given, SCORE_GIVEN, quoted=True))
            items.append(exp.alias_(_score_state(given), SCORE_STATE, quoted=True))
        if located:
            items += [column("source_file"), column("file_row_number")]
        return exp.select(*items).from_(exp.to_table(scan))

    def _typed(self, file: DataFile, name: str, sql_type: str, kind: Kind) -> exp.Expr:
        arrow = self._type_in(file, name)
        own = None if isinstance(arrow, str) else arrow
        is_moment = kind in {"instant", "position"} and sql_type in TIMES
        if own is not None and canonical_type(own, kind) == UNKNOWN:
            return exp.cast(exp.null(), "BIGINT" if is_moment else sql_type, dialect="duckdb")
        if own is None:
            return self._constant(file, self.theirs(name))
        value = typed(self.theirs(name), own, sql_type)
        return microseconds(value, sql_type, self.spec.timezone) if is_moment else value

    def _constant(self, file: DataFile, theirs: str) -> exp.Cast:
        """The value of a partition column, which is text and the same in all rows of a file."""
        value = file.partitions[theirs]
        return exp.cast(exp.null() if value is None else exp.Literal.string(value), "VARCHAR")

    def _kept(self, file: DataFile) -> exp.Expr:
        predicate = self._where
        if predicate is None:
            return exp.true()
        names = {field.name.lower(): field for field in file.schema}
        for name in predicates.columns_of(predicate):
            self._check_twins(file, name)
            if name.lower() not in names and name not in file.partitions:
                message = f"input {self.name}: where reads {name!r}, which {file.path} lacks"
                raise DataError(
                    message, remedy=f"{self._listed(file, name)} where reads names as they are in the files."
                )

        def barrier(name: str) -> exp.Expr:
            if self._is_partition(file, name):
                return self._constant(file, name)
            kind = str(names[name.lower()].type)
            if kind == "null":  # the engine would read it as whole numbers
                return exp.null()
            return finite(column(name)) if kind in {"double", "float", "halffloat"} else column(name)

        return exp.Coalesce(this=predicates.bind(exp.paren(predicate), barrier), expressions=[exp.false()])


def _score_state(given: exp.Expr) -> exp.Expr:
    zero = is_finite(given)
    # statistics leave out NaN: a column that has one value beside it would be taken for that value
    factor = exp.paren(exp.Case().when(zero, double(2)).else_(double(1)))
    text = exp.Lower(this=exp.cast(exp.paren(exp.Mul(this=given.copy(), expression=factor)), "VARCHAR"))
    return (
        exp.Case()
        .when(exp.Is(this=given.copy(), expression=exp.null()), exp.Literal.string("null_score"))
        .when(zero.copy(), exp.null())
        .when(exp.EQ(this=text, expression=exp.Literal.string("nan")), exp.Literal.string("nan_score"))
        .else_(exp.Literal.string("infinite_score"))
    )


def open_source(contract: InputContract, spec: Input, base: Path) -> Source:
    """Find the files of an input and check their footers against its contract.

    Raises:
        NoInputError: no file matches.
        DataError: a required or mapped column is missing, or a column has types that its field does not accept.
    """
    found = find_files(spec, base, name=contract.name)
    source = Source(contract, spec, found.files, found.skipped)
    for field in contract.fields:
        if field.required or source.has(field.name):
            source.types(field.name, field)
    return source


def with_others(sources: Mapping[str, Source]) -> dict[str, Source]:
    """The inputs of a stage, each knowing the others."""
    return {
        name: replace(source, others=tuple(other for key, other in sources.items() if key != name))
        for name, source in sources.items()
    }
