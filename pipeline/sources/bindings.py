"""Which column of the files is read as which field: a column of a file has one role."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import sqlglot.expressions as exp

from ..base.dialect import column, data_type
from ..base.errors import DataError, InvalidQueryError, UncomputableError
from ..base.paths import shortened
from ..base.records import dataclass
from ..base.schemas import shown_name
from . import predicates
from .inputs import Expression, columns_in_words, is_partition, partition_column
from .predicates import partition_type
from .types import finite, refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from .inputs import InputContract, Kind, Mapped, Rows
    from .source import Source


Origin = Literal["mapped", "named", "derived", "absent"]


@dataclass(frozen=True)
class Binding:
    """The origin of one field of an input.

    Attributes:
        input: Name of the input.
        field: Canonical name of the field.
        origin: `mapped`: the config says it; `named`: a column has the canonical name and no other role; `derived`:
            the stage computes it from other fields; `absent`: there is nothing to read it from, or nothing needs it.
        column: Name of the column in the files; None where there is no one column.
        sql: The expression that it is mapped to, or how it is derived, in words.
    """

    input: str
    field: str
    origin: Origin
    column: str | None = None
    sql: str | None = None

    @property
    def is_bound(self) -> bool:
        """Whether a column or an expression of the files is read for it."""
        return self.origin in {"mapped", "named"}

    @property
    def words(self) -> str:
        """Its origin for messages: name of the column, expression, or the canonical name."""
        return self.column or self.sql or self.field


def bindings_in_words(bindings: Iterable[Binding]) -> Iterator[str]:
    """Yield a line for each input: every field with what it is read from and why, then the absent fields."""
    of_inputs: dict[str, list[Binding]] = {}
    for binding in bindings:
        of_inputs.setdefault(binding.input, []).append(binding)
    for name, fields in of_inputs.items():
        shown = [
            f"{each.field} (named)" if each.origin == "named" else f"{each.field} = {each.words} ({each.origin})"
            for each in fields
            if each.origin != "absent"
        ]
        absent = [field.field for field in fields if field.origin == "absent"]
        yield f"{name}: {', '.join(shown)}" + (f"; absent: {', '.join(absent)}" if absent else "")


@dataclass(frozen=True)
class Bindings:
    """The bindings of one input to the columns of its files and folders: mappings come first, none has two roles."""

    contract: InputContract
    mapping: Mapping[str, Mapped]
    columns: frozenset[str]

    def of(self, name: str) -> Binding:
        """Return what a field, or a column that only groups rows, is read from."""
        mapped = self.mapping.get(name)
        if isinstance(mapped, str):
            return Binding(self.contract.name, name, "mapped", column=mapped)
        if isinstance(mapped, Expression):
            return Binding(self.contract.name, name, "mapped", sql=mapped.sql)
        field = self.contract.field(name)
        is_free = name in self.columns and name not in self._mapped_columns and name not in self.mapping
        if is_free and not (field is not None and field.mapped_only):
            return Binding(self.contract.name, name, "named", column=name)
        return Binding(self.contract.name, name, "absent")

    def role_of(self, column: str) -> str | None:
        """Canonical name of the field that a column is mapped to, if any."""
        return next((name for name, mapped in self.mapping.items() if mapped == column), None)

    def is_unused_by_rule(self, name: str) -> bool:
        """Whether a column has the name of a field that must be mapped to be bound, and has no other role."""
        field = self.contract.field(name)
        taken = self._mapped_columns | self._computed_from | self.mapping.keys()
        return field is not None and field.mapped_only and name in self.columns and name not in taken

    def tree(self, name: str) -> exp.Expr | None:
        """Return the parsed expression that a field is mapped to, or None if it is not mapped to one.

        Raises:
            ConfigError: it does not parse, or contains something that is not allowed in an expression on columns.
        """
        return self._trees.get(name)

    @property
    def trees(self) -> tuple[exp.Expr, ...]:
        """All parsed expressions that fields are mapped to."""
        return tuple(self._trees.values())

    @cached_property
    def _trees(self) -> dict[str, exp.Expr]:
        return {
            name: predicates.parse_value(
                mapped.sql, name=f"{self.contract.name}: columns: {name}", values=mapped.values()
            )
            for name, mapped in self.mapping.items()
            if isinstance(mapped, Expression)
        }

    @cached_property
    def _mapped_columns(self) -> frozenset[str]:
        return frozenset(mapped for mapped in self.mapping.values() if isinstance(mapped, str))

    @cached_property
    def _computed_from(self) -> frozenset[str]:
        return frozenset(column for tree in self._trees.values() for column in predicates.columns_of(tree))


# What columns are usually called by other programs, to propose bindings. Nothing is bound by these names alone.


USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "score": (
        *("similarity", "sim", "weight", "prob", "probability", "proba", "confidence", "p", "scores"),
        *("prediction_scores", "pred", "prediction", "predictions", "y_score", "y_prob", "y_pred"),
        *("match_probability", "match_weight", "match_score", "predicted_probability", "logit", "cosine"),
    ),
    "label": (
        *("y_true", "y", "truth", "target", "gold", "is_match", "is_true", "correct", "positive"),
        *("reference", "references", "ground_truth", "true_label", "y_test", "relevant", "is_relevant", "actual"),
        *("match", "clerical_match", "clerical_match_score", "duplicate", "is_duplicate", "annotation", "outcome"),
    ),
    "weight": ("sample_weight", "w"),
    "id": ("item_id", "row_id", "example_id"),
    "event_id": ("event", "from", "x", "from_id"),
    "article_id": ("article", "to", "y", "to_id", "doc_id"),
    "lag_hours": ("hourdiff", "hour_diff", "lag", "hours"),
    "lag_days": ("daydiff", "day_diff", "days"),
    "event_time": ("event_date", "from_date", "date", "time", "timestamp"),
    "article_time": ("article_date", "to_date", "date", "published", "published_at", "time", "timestamp"),
    "n_before": ("before",),
    "n_after": ("after",),
    "is_match": ("match", "label", "verdict"),
    "query_id": ("qid", "query", "topic", "topic_id"),
    "doc_id": ("docno", "doc", "document", "document_id", "docid", "pid", "file"),
    "rank": ("position",),
    "relevance": ("rel", "qrel", "label", "grade", "judgment", "judgement"),
    "start": ("begin", "start_char", "offset", "start_offset", "begin_offset"),
    "end": ("stop", "end_char", "end_offset"),
    "text": ("mention", "surface", "span", "toponym", "entity"),
    "type": ("label", "entity_type", "tag", "class"),
    "mention_id": ("id", "toponym_id", "mention"),
    "latitude": ("lat", "y"),
    "longitude": ("lon", "lng", "long", "x"),
    "series_id": ("series", "dataset", "name", "ts_id"),
    "position": ("changepoint", "change_point", "index", "location", "loc", "cp", "t", "time"),
    "annotator_id": ("annotator", "coder", "user", "rater"),
    "n_obs": ("n", "length", "n_observations"),
    "unit": ("unit_id", "document", "doc_id", "query_id", "id"),
    "system": ("model", "method", "run", "tagger", "name"),
}
USUAL_FILES: dict[str, tuple[str, ...]] = {  # what names of files hold, where columns fit several inputs as well
    "predicted": ("pred", "system", "hyp", "output"),
    "predictions": ("pred", "system", "output"),
    "gold": ("gold", "truth", "ref", "annot", "test", "dev"),
    "annotations": ("annot", "truth", "gold", "label"),
    "ranking": ("run", "rank"),
    "relevance": ("qrel", "rel", "judg"),
}
SYSTEMS = {"system", "model", "method", "run", "tagger", "classifier", "algorithm", "matcher"} | {
    *("dataset", "data_set", "corpus", "benchmark")
}
SAME, SAME_IN_LOWER_CASE, USUAL, ALIKE = 4.0, 3.0, 2.0, 1.0
NAMED, HINTED = 3.0, 0.1
LEAST_ALIKE = 0.75


def proposed(
    contract: InputContract, schema: pa.Schema, *, can_be: Callable[[str, Kind], bool], called: Mapping[str, str]
) -> dict[str, tuple[str, float]]:
    """Propose which columns are the fields of an input: by field, the column and how well it fits, highest first taken.

    `called` says what columns are called for what they hold, where their names do not; empty: they fit no field.
    """
    likenesses = (
        (-_likeness(field.name, called.get(column.name, column.name), number), order, number, field.name, column.name)
        for order, field in enumerate(contract.fields)
        for number, column in enumerate(schema)
    )
    kinds = {field.name: field.kind for field in contract.fields}
    candidates = sorted(each for each in likenesses if each[0] < 0 and can_be(each[4], kinds[each[3]]))
    fields: dict[str, tuple[str, float]] = {}
    for negative, _, _, field_name, column_name in candidates:
        taken = {column for column, _ in fields.values()}
        if field_name not in fields and column_name not in taken:
            fields[field_name] = column_name, -negative
    return fields


def _lowered(column: str) -> str:
    return column.lower().replace(" ", "_").replace(".", "_").replace("-", "_")


def _likeness(field: str, column: str, number: int) -> float:
    """How well a name fits a field: above 0 if it fits at all; of equals, the one that is first among usual names."""
    if field == column:
        return SAME
    lowered = _lowered(column)
    if field == lowered:
        return SAME_IN_LOWER_CASE
    usual = USUAL_NAMES.get(field, ())
    if lowered in usual:
        return USUAL - usual.index(lowered) / 100
    alike = SequenceMatcher(None, field, lowered).ratio()
    return ALIKE * alike - number / 1e6 if alike >= LEAST_ALIKE else 0.0


def fit(contract: InputContract, fields: Mapping[str, tuple[str, float]], file_name: str) -> float:
    """How well a file fits an input as a whole, by its columns and its name: 0 if a required field finds no column."""
    if any(field.name not in fields for field in contract.fields if field.required):
        return 0.0
    unmatched = len(contract.fields) - len(fields)
    lowered = file_name.lower()
    hinted = HINTED if any(word in lowered for word in USUAL_FILES.get(contract.name, ())) else 0.0
    named = NAMED if contract.name in lowered else hinted
    return sum(likeness for _, likeness in fields.values()) + named - unmatched / 100


def is_usual_id(column: str) -> bool:
    """Whether a column is called as one that names what a row is about: `id`, `uuid`, `key`, `…_id`."""
    lowered = _lowered(column)
    return lowered in {"id", "uuid", "guid", "key", *USUAL_NAMES["id"]} or lowered.endswith(("_id", "_uuid", "_key"))


def is_usual_name(field: str, column: str) -> bool:
    """Whether a column is called as one that is usual for a field."""
    return _lowered(column) in {field, *USUAL_NAMES[field]}


def is_usual_system(column: str) -> bool:
    """Whether a column is called as one that names systems or data sets."""
    return _lowered(column) in SYSTEMS


# Columns of the files that have no role and are only shown: titles, links, whatever tells people what a row is.


_PLAIN = ("int", "uint", "double", "float", "bool", "date", "timestamp")


def columns_without_role(source: Source, bindings: Iterable[Binding]) -> tuple[str, ...]:
    """Return the columns of the files that none of the bindings of a stage reads, in the order of the files."""
    taken = {binding.column for binding in bindings if binding.input == source.name}
    return tuple(name for name in shown_columns(source) if name not in taken)


def shown_columns(source: Source) -> tuple[str, ...]:
    """Return the columns that can be shown: of files and folder names, if no other name equals theirs but for case.

    Columns without a name, and those whose values mean something else than they store, are left out.
    """
    names = dict.fromkeys(name for file in source.files for name in (*file.schema.names, *file.partitions) if name)
    in_lower_case = [name.lower() for name in names]
    repeated = {name for file in source.files for name in file.schema.names if file.schema.names.count(name) > 1}
    odd = {field.name for file in source.files for field in file.schema if refused(field.type) is not None}
    return tuple(name for name in names if in_lower_case.count(name.lower()) == 1 and name not in repeated | odd)


def shown_items(source: Source, file: Rows) -> Iterator[exp.Expr]:
    """Yield the select items of the columns that rows of a file carry along, under their internal names.

    A column is text unless it has one plain type in all files; where a file lacks it, it is NULL.
    """
    for name in source.shown or ():
        yield exp.alias_(_shown(source, file, name), shown_name(name), quoted=True)


def _shown(source: Source, file: Rows, name: str) -> exp.Expr:
    if is_partition(file, name):
        return exp.cast(column(partition_column(file, name)), "VARCHAR")
    types = {(str(each.schema.field(name).type) if name in each.schema.names else None) for each in source.files}
    if name not in file.schema.names:
        return exp.null() if len(types - {None}) == 1 and _is_plain(types) else exp.cast(exp.null(), "VARCHAR")
    return column(name) if _is_plain(types) else exp.cast(column(name), "VARCHAR")


def _is_plain(types: set[str | None]) -> bool:
    """Whether a column has one type in all files that have it, and that type needs no text."""
    return len(types - {None}) == 1 and all(each is None or each.startswith(_PLAIN) for each in types)


@dataclass(frozen=True)
class KeyMatch:
    """A key by which rows of one input look up rows of another; if too few match, a warning says so.

    Rows without a match that are left out have a status; None if they count all the same.
    """

    source: Source
    other: Source
    key: str
    unmatched_status: str | None = None


# SQL of the user as it reads rows: its columns are there, each once, and its type is known before a row is read.


WHERE = "where"
_TRUE_OR_FALSE = re.compile(r"bool|u?int\d+")  # names of Arrow types
TypeOf = Callable[["exp.Expr", "pa.Schema"], "pa.DataType"]


def in_words(name: str, text: str) -> str:
    """Say what SQL is given for: a column, or `where`."""
    return f"where ({shortened(text)})" if name == WHERE else f"{name} = {{ sql = {shortened(text)!r} }}"


def uncomputable(input_name: str, words: str, reason: str) -> DataError:
    """Return the error that SQL of the user, as `in_words` says it, cannot be computed."""
    message = f"input {input_name}: {words} cannot be computed: {reason}"
    remedy = (
        "It must have a value for every row: CAST to a wider type, take what a number cannot hold out of text with "
        "replace, or leave such rows out with CASE."
    )
    return DataError(message, remedy=remedy)


def bound(rows: Rows, tree: exp.Expr) -> exp.Expr:
    """Return SQL of the user as it reads rows: partitions as constants, values that are not finite as NULL.

    As a constant, a partition keeps an engine from computing what it rules out.
    """
    fields = {each.name.lower(): each for each in rows.schema}

    def is_single(name: str) -> bool:
        return name.lower() in fields and str(fields[name.lower()].type) in {"float", "halffloat"}

    def read(name: str) -> exp.Expr:
        if is_partition(rows, name):
            value, sql_type = rows.partitions[name], data_type(partition_type(rows, name))
            return exp.cast(exp.null() if value is None else exp.Literal.string(value), sql_type, dialect="duckdb")
        source = fields[name.lower()]
        kind, as_it_is = str(source.type), column(source.name)
        if kind == "null":  # the engine would read it as whole numbers
            return exp.null()
        return finite(as_it_is) if kind in {"double", "float", "halffloat"} else as_it_is

    def kind_of(name: str) -> str:
        arrow = rows.partition_types.get(name, "string") if is_partition(rows, name) else fields[name.lower()].type
        return str(getattr(arrow, "value_type", arrow)).removeprefix("large_").removesuffix("_view")

    return predicates.bind(predicates.numbers_as_floats(tree, is_single), read, kind_of)


@dataclass(frozen=True)
class UserSql:
    """SQL of the user on the columns of an input.

    Attributes:
        input_name: Name of the input.
        type_of: Returns the type of an expression on the columns of a schema, as an engine finds it.
    """

    input_name: str
    type_of: TypeOf
    _types: dict[object, pa.DataType] = field(default_factory=dict)

    def type_in(
        self, rows: Rows, tree: exp.Expr, words: str, *, name: str, reads: str, columns: Sequence[str] | None = None
    ) -> pa.DataType:
        """Return the type of SQL, found once for all rows in which it reads columns of the same types.

        Args:
            rows: The rows that it reads.
            tree: The SQL.
            words: The same as the user wrote it.
            name: What it is given for: a column, or `where`.
            reads: How a message about a column that it reads begins.
            columns: The columns that must be there; None: those that the SQL reads.

        Raises:
            DataError: it does not fit the columns.
        """
        names = predicates.columns_of(tree) if columns is None else columns
        in_lower_case = {each.lower() for each in names}
        types = tuple((each.name, str(each.type)) for each in rows.schema if each.name.lower() in in_lower_case)
        partitions = tuple((each, partition_type(rows, each)) for each in names if is_partition(rows, each))
        key = (id(tree), types, partitions)  # trees live as long as their input
        if key not in self._types:
            self._check_columns(rows, names, reads)
            try:
                self._types[key] = self.type_of(bound(rows, tree), rows.schema)
            except UncomputableError as error:
                raise uncomputable(self.input_name, in_words(name, words), error.reason) from error
            except InvalidQueryError as error:
                message = (
                    f"input {self.input_name}: {name} = {shortened(words)!r} does not fit the columns of {rows.name}: "
                    f"{error.reason}"
                )
                remedy = "Check the types of its columns, or cast them in the expression."
                raise DataError(message, remedy=remedy) from error
        return self._types[key]

    def check_predicate(self, rows: Rows, residual: exp.Expr, words: str, columns: Sequence[str]) -> None:
        """Check that what is left of `where` for some rows is true or false, as far as the types of its columns tell.

        Raises:
            DataError: it does not fit the columns, or has another type; an integer other than 0 counts as true.
        """
        arrow = str(self.type_in(rows, residual, words, name=WHERE, reads="where reads", columns=columns))
        if not _TRUE_OR_FALSE.fullmatch(arrow) and not isinstance(bound(rows, residual).unnest(), exp.Null):
            message = f"input {self.input_name}: where = {shortened(words)!r} is {arrow} in {rows.name}"
            remedy = "It must be true or false for a row: write a comparison, as in n >= 5 or kind = 'x'."
            raise DataError(message, remedy=remedy)

    def _check_columns(self, rows: Rows, names: Iterable[str], words: str) -> None:
        """Check that columns are there, each once, and have types whose values mean what they say."""
        types = {each.name.lower(): each.type for each in rows.schema}
        for name in names:
            check_twins(self.input_name, rows, name)
            if name.lower() not in types and name not in rows.partitions:
                message = f"input {self.input_name}: {words} {name!r}, which {rows.name} lacks"
                remedy = (
                    f"{columns_in_words(rows, name)} SQL reads names as they are in the files; "
                    f"text stands in single quotes: {exp.Literal.string(name).sql()}."
                )
                raise DataError(message, remedy=remedy)
            if (odd := refused(types.get(name.lower()))) is not None:
                message = f"input {self.input_name}: {words} {name!r}, which is {odd[0]} in {rows.name}"
                raise DataError(message, remedy=odd[1])


def check_twins(input_name: str, rows: Rows, name: str) -> None:
    """Check that rows do not have a column twice, in upper or lower case.

    Raises:
        DataError: they do.
    """
    same_names = [each.name for each in rows.schema if each.name.lower() == name.lower()]
    if len(same_names) > 1:
        message = (
            f"input {input_name}: {rows.name} has {len(same_names)} columns named {name!r} (in upper or lower case)"
        )
        raise DataError(message, remedy="Rename all but one of them.")
