"""SQL text only: load the files under sql/, read their headers, expand `segment`.

A query file opens with a header of comment lines, `-- key: text`, where a line that starts with
`--   ` goes on with the text above it. The keys are `grain` (what one row stands for), `reads` (the logical
relations), `params` (the `$names`, or `none`) and `caution`; a check of sql/*/checks/ also has `message` and `remedy`.
Two more may be there: `segment` (whose columns the word stands for) and `keep` (why the engine keeps the rows).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, TypeVar

from sqlglot import exp, parse

from .dialect import column, double, kept, mark_sums, number_of, parts
from .errors import ThresherError
from .records import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    Segment = Sequence[str] | Mapping[str, Sequence[str]]  # of all relations alike, or by the name of the relation

E = TypeVar("E", bound="exp.Expr")  # its name while types are checked: the oldest sqlglot has no such class

SEGMENT = "segment"
HEADER_KEYS = ("grain", "reads", "params", "caution")
CHECK_KEYS = ("message", "remedy")  # of a check: what is said of its rows, with {placeholders}
PLAN_KEYS = ("segment", "keep")  # of a relation: what a plan must know of it, where it is not as usual
CHECKS = "checks"  # folder of the checks of a stage, and of those that all stages share
MACROS = "catalog"  # folder of the macros that every catalog has
FILE = "file"  # key of the meta data of a tree: the file it comes from
_HEADER_LINE = re.compile(r"^--\s(?P<key>[a-z]+):\s+(?P<text>.+)$")
_PARENTHESES = re.compile(r"\([^)]*\)")
_PACKAGE = Path(__file__).resolve().parents[1]


def resource_folder(name: str) -> Path:
    """Folder `sql`, `configs` or `docs`: inside the installed package, else beside it in a checkout."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def page(name: str) -> Path:
    """Path of a page of the documentation as it is installed, for messages."""
    return resource_folder("docs") / f"{name}.md"


@dataclass(frozen=True)
class Query:
    """One query file.

    Attributes:
        name: `<folder>/<file>` without the suffix.
        tree: The parsed statement; never changed in place.
        header: Text by header key.
    """

    name: str
    tree: exp.Query
    header: dict[str, str]

    @property
    def reads(self) -> tuple[str, ...]:
        """Logical relations that the header names, in its order, which is that in which they are defined."""
        return _names(self.header["reads"])

    @property
    def params(self) -> tuple[str, ...]:
        """Parameters that the header names, without `$`."""
        return tuple(name.removeprefix("$") for name in _names(self.header["params"]))

    @property
    def is_kept(self) -> bool:
        """Whether the header says why the engine keeps the rows, and does not read through the relation."""
        return "keep" in self.header

    @property
    def segments(self) -> dict[str, str]:
        """Whose columns `segment` stands for, by the alias of the relation, or by "" where that says nothing.

        `segment: p of ranking, o of relevance`, or `segment: ranking`; without the key those of the whole plan, "by".
        """
        pairs = (part.strip().rpartition(" of ") for part in self.header.get(SEGMENT, "by").split(","))
        return {alias: name for alias, _, name in pairs}


def _names(text: str) -> tuple[str, ...]:
    names = (part.strip() for part in _PARENTHESES.sub("", text).split(","))
    return tuple(name for name in names if name != "none")


def query_names() -> tuple[str, ...]:
    """Names of all shipped queries, sorted; the macros of the catalog are not queries."""
    root = resource_folder("sql")
    names = (path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.sql"))
    return tuple(sorted(name for name in names if not name.startswith(f"{MACROS}/")))


def macros() -> tuple[str, ...]:
    """Return the statements that define the macros of the catalog, in the order of their names."""
    return tuple(path.read_text("utf-8") for path in sorted((resource_folder("sql") / MACROS).glob("*.sql")))


def macro_names() -> frozenset[str]:
    """Return the names of the macros of the catalog."""
    return frozenset(path.stem for path in (resource_folder("sql") / MACROS).glob("*.sql"))


@cache
def load(name: str) -> Query:
    """Read one query file and check its header against its tree.

    Raises:
        ThresherError: the header lacks a key, or names other relations or parameters than the text uses.
    """
    text = (resource_folder("sql") / f"{name}.sql").read_text(encoding="utf-8")
    statements = parse(text, read="duckdb")
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        message = f"sql/{name}.sql: one SELECT is expected"
        raise ThresherError(message)
    tree = _without_text(statements[0])
    tree.meta[FILE] = name
    mark_sums(tree)
    query = Query(name, kept((FILE, name, text), lambda: tree), _header(text))
    is_check = any(key in query.header for key in CHECK_KEYS) or CHECKS in query.name.split("/")[:-1]
    needed = (*HEADER_KEYS, *CHECK_KEYS) if is_check else HEADER_KEYS
    missing = [key for key in needed if key not in query.header]
    if missing:
        message = f"sql/{query.name}.sql: the header lacks {', '.join(missing)}"
        raise ThresherError(message)
    ctes = {cte.alias for cte in query.tree.find_all(exp.CTE)}
    tables = {table.name for table in query.tree.find_all(exp.Table)} - ctes
    params = {str(node.this) for node in query.tree.find_all(exp.Placeholder)}
    if sorted(tables) != sorted(query.reads) or sorted(params) != sorted(query.params):
        message = f"sql/{query.name}.sql: the header and the text differ in what they read or in their parameters"
        raise ThresherError(message)
    words = {word.table for word in _segments(query.tree)}
    if SEGMENT in query.header and not {*query.segments} <= words:
        message = f"sql/{query.name}.sql: segment of the header is not the one of the text"
        raise ThresherError(message)
    return query


@cache
def is_query(name: str) -> bool:
    """Whether there is a query file of a name."""
    return (resource_folder("sql") / f"{name}.sql").is_file()


def _without_text(node: E) -> E:
    """Build a tree anew without comments and the places of words in the file: it is copied often, and they with it."""
    args = {key: _value_without_text(value) for key, value in node.args.items()}
    return type(node)(**args)


def _value_without_text(value: object) -> object:
    if isinstance(value, exp.Expression):
        return _without_text(value)
    return [_value_without_text(item) for item in value] if isinstance(value, list) else value


def _header(text: str) -> dict[str, str]:
    header: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if match := _HEADER_LINE.match(line):
            key = match["key"]
            header[key] = match["text"].strip()
        elif key:
            header[key] += " " + line.removeprefix("--").strip()
    return header


def statement(
    name: str,
    segment: Segment = (),
    *,
    relations: Mapping[str, str | exp.Query] | None = None,
    columns: Mapping[str, str | exp.Expr] | None = None,
    values: Mapping[str, float | str] | None = None,
) -> exp.Query:
    """A query file as a statement that can be run, defined as a relation or shown.

    Args:
        name: `<folder>/<file>` without the suffix.
        segment: Names of the grouping columns, or of the columns of a key: what stands where the file says `segment`.
        relations: The relation to read, or its query, by the name that the file gives it; default: the same name.
        columns: The column or condition to read, by the name that the file gives it; default: the same name.
        values: Literals for parameters, for a query that becomes a relation: views take no parameters.
    """
    key = ("statement", name, _segment_part(segment), parts(relations), parts(columns), parts(values))
    return kept(key, lambda: _statement(name, segment, relations, columns, values))


def _segment_part(segment: Segment) -> Hashable:
    if isinstance(segment, Mapping):
        return tuple((name, tuple(names)) for name, names in segment.items())
    return tuple(segment)


def _statement(
    name: str,
    segment: Segment,
    relations: Mapping[str, str | exp.Query] | None,
    columns: Mapping[str, str | exp.Expr] | None,
    values: Mapping[str, float | str] | None,
) -> exp.Query:
    tree = _with_columns(load(name).tree.copy(), columns or {})
    tree = _expanded(tree, segment)
    for table in list(tree.find_all(exp.Table)):
        actual = (relations or {}).get(table.name)
        if actual is not None:
            alias = table.alias or table.name
            table.replace(exp.table_(actual, alias=alias) if isinstance(actual, str) else actual.subquery(alias))
    return tree if values is None else fill(tree, values)


def file_of(tree: exp.Expr) -> str | None:
    """The query file that a tree comes from, `<folder>/<file>`; None: it was built here."""
    return tree.meta.get(FILE)


def expand(query: Query, segment: Segment, *, zero: Sequence[str] = ()) -> exp.Query:
    """Put the grouping columns where the query writes `segment`; without any, the word disappears.

    In a condition it means one of the columns, so `NOT segment IS NULL` that none is NULL; compared with another
    `segment` it means every column that both have.

    Args:
        query: A loaded query.
        segment: Names of the grouping columns in the relation that the query reads. By relation: `events.segment`
            stands for the names of `events`, and `segment` alone for those of "" or, without it, for the names of all.
        zero: Columns it groups by that are 0 in every row: written as that, so that no engine groups by them.
    """
    number = number_of(query.tree)
    key = None if number is None else ("expand", number, _segment_part(segment), tuple(zero))
    return kept(key, lambda: _expanded_copy(query, segment, zero))


def _expanded_copy(query: Query, segment: Segment, zero: Sequence[str]) -> exp.Query:
    tree = query.tree.copy()
    for name in zero:
        value = exp.alias_(exp.cast(exp.Literal.number(0), "BIGINT"), name)
        tree.set("expressions", [value if each == exp.column(name) else each for each in tree.expressions])
        group = tree.args["group"]
        group.set("expressions", [each for each in group.expressions if each != exp.column(name)])
    return _expanded(tree, segment)


def _expanded(tree: exp.Query, segment: Segment) -> exp.Query:
    for select in tree.find_all(exp.Select):
        _expand_list(select, "expressions", segment)
        group = select.args.get("group")
        if group is not None:
            _expand_list(group, "expressions", segment)
            if not group.expressions:
                select.set("group", None)
    for window in tree.find_all(exp.Window):
        _expand_list(window, "partition_by", segment)
    for order in list(tree.find_all(exp.Order)):
        _expand_list(order, "expressions", segment)
        if not order.expressions:
            order.pop()
    # write out the conditions on `segment`, which only a condition can still hold
    conditions = {id(node): node for node in (word.find_ancestor(exp.Predicate) for word in _segments(tree))}
    for condition in conditions.values():
        if condition is None:
            message = f"segment stands neither in a list nor in a condition: {tree.sql()}"
            raise ThresherError(message)
        names = [_names_of(word, segment) for word in _segments(condition)]
        common = [name for name in names[0] if all(name in others for others in names)]
        terms = [condition.transform(_named, name) for name in common]
        connect, nothing = (exp.or_, exp.false()) if len(names) == 1 else (exp.and_, exp.true())
        condition.replace(exp.paren(connect(*terms)) if len(terms) > 1 else (terms or [nothing])[0])
    return tree


def _with_columns(tree: exp.Query, columns: Mapping[str, str | exp.Expr]) -> exp.Query:
    """The query over columns of other names, or over conditions in their place."""
    for node in list(tree.find_all(exp.Column)):
        actual = columns.get(node.name)
        if actual is not None:
            node.replace(
                column(actual, node.table or None)
                if isinstance(actual, str)
                else (exp.paren(actual) if isinstance(actual, exp.Binary) else actual.copy())
            )
    return tree


def _is_segment(node: exp.Expr) -> TypeGuard[exp.Column]:
    """Whether a node is the word, not a column that a user has called so, which is quoted."""
    return isinstance(node, exp.Column) and node.name == SEGMENT and not node.this.args.get("quoted")


def _segments(tree: exp.Expr) -> list[exp.Column]:
    return [node for node in tree.find_all(exp.Column, bfs=False) if _is_segment(node)]


def _names_of(word: exp.Column, segment: Segment) -> Sequence[str]:
    """The columns that `segment` stands for behind the name of a relation, or alone."""
    if not isinstance(segment, Mapping):
        return segment
    if word.table in segment:
        return segment[word.table]
    return tuple(dict.fromkeys(name for names in segment.values() for name in names))


def _named(node: exp.Expr, name: str) -> exp.Expr:
    return column(name, node.table or None) if _is_segment(node) else node


def _expand_list(node: exp.Expr, key: str, segment: Segment) -> None:
    items = node.args.get(key) or []
    expanded: list[exp.Expr] = []
    for item in items:
        target = item.this if isinstance(item, exp.Ordered) else item
        if _is_segment(target):
            columns = [column(name, target.table or None) for name in _names_of(target, segment)]
            expanded += [_ordered(item, each) if isinstance(item, exp.Ordered) else each for each in columns]
        else:
            expanded.append(item)
    if items:
        node.set(key, expanded)


def _ordered(item: exp.Ordered, by: exp.Column) -> exp.Ordered:
    """The same order by another column."""
    ordered = item.copy()
    ordered.set("this", by)
    return ordered


def fill(tree: exp.Query, values: Mapping[str, float | str]) -> exp.Query:
    """Put literals where a query has parameters, for a query that becomes a relation: views take no parameters."""
    filled = tree.copy()
    for node in list(filled.find_all(exp.Placeholder)):
        value = values[str(node.this)]
        node.replace(double(value) if isinstance(value, float) else exp.convert(value))
    return filled
