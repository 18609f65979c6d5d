"""Random values of configs and random predicates: valid, nearly valid and hostile."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from running import nested

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

DEPTH = 500


def _nested_tables(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"columns": value}
    return value


SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -1, 7, 0.5, -0.0, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf),
    *(2**31, 2**63, -(2**63), 2**64, 10**400),
    *(
        "",
        " ",
        "\0",
        "a\0b",
        "\ud800",
        "é",
        "\u202e",
        "\x1b[31m",
        "a" * 5000,
        "${x}",
        "${env.HOME}",
        "$HOME",
        "~",
        "~nobody",
    ),
    *("distinct", "auto", "error", "drop", "missed", "max", "keep", "none", "jackknife", ">=", ">", "<", "exact"),
    *(
        "1h",
        "72h",
        "-1h",
        "1e9w",
        "9" * 400 + "w",
        "events",
        "pairs",
        "timelines",
        "hdfs://bucket/x",
        "/",
        "/proc/self/mem",
    ),
    *("score", "label", "group", "weight", "a,b", "all", "grouping", "stage", "select", '"', "'; DROP TABLE x; --"),
    *(dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.time(1)),
)
TABLES: tuple[Any, ...] = (
    *(
        [],
        [[]],
        {},
        [1, 2],
        [2, 1],
        [0.5, 0.5],
        [math.nan],
        [10**400],
        ["a"],
        [["a"]],
        [["a"], ["a"]],
        ["a", "a"],
        [None],
    ),
    *(
        {"start": 0, "stop": 1, "count": 5},
        {"start": 0, "stop": 1, "count": 10**12},
        {"start": 1, "stop": 0, "count": 3},
    ),
    *({"start": -1e308, "stop": 1e308, "count": 3}, {"start": 0, "stop": 5e-324, "count": 9}, {"start": 0.1}),
    *({"before": "1h", "after": "1h"}, {"before": 2, "after": 1}, {"before": "0h", "after": "0h"}, {"rule": "max"}),
    *([{"beta": 1}], [{"beta": 1e308}], [{"beta": 5e-324}], [{"min_precision": 0.5}], [{"beta": 1, "min_recall": 1}]),
    *([{"min_precision": 1e-12}], [{}], {"threshold": 1, "size": 1}, {"threshold": -1e308, "size": 10**6, "seed": 0}),
    *(nested(DEPTH), _nested_tables(DEPTH), {"": ""}, {"\0": "\0"}, {"a": {"b": {"c": 1}}}, list(range(3000))),
)
ODD_NAMES = (
    "score",
    "label",
    "group",
    "nobody",
    "",
    "\0",
    "a.b",
    "weight",
    "Group",
    "stage",
    "all",
    "x,y",
    "é",
    "\ud800",
    "1",
    'q"',
)


def value(draw: random.Random) -> Any:  # noqa: ANN401 - any value of a config
    """Any value that a config may hold."""
    return draw.choice(SCALARS if draw.random() < 0.6 else TABLES)


def mapping(draw: random.Random, fields: Sequence[str], columns: Sequence[str]) -> Any:  # noqa: ANN401 - see above
    """A table `columns`: fields of ours, sometimes unknown, and what they may be mapped to."""
    if draw.random() < 0.1:
        return value(draw)
    names = [*columns, *columns, *ODD_NAMES]

    def mapped() -> Any:  # noqa: ANN401 - see above
        choice = draw.random()
        if choice < 0.55:
            return draw.choice(names)
        if choice < 0.7:
            return False
        return {"sql": expression(draw, columns, 2)} if choice < 0.9 else value(draw)

    return {draw.choice((*fields, *fields, *ODD_NAMES)): mapped() for _ in range(draw.randrange(1, 4))}


def grouping(draw: random.Random, columns: Sequence[str]) -> Any:  # noqa: ANN401 - see above
    """A value of `by`: names of columns, odd names, one list or several."""
    if draw.random() < 0.15:
        return value(draw)
    names = [*columns, *columns, *columns, *ODD_NAMES]
    flat = [draw.choice(names) for _ in range(draw.randrange(1, 3))]
    return flat if draw.random() < 0.5 else [[], flat]


LITERALS = (
    *("0", "1", "-1", "0.5", "1e308", "-1e308", "1e400", "9223372036854775807", "9223372036854775808", "9" * 60),
    *("'a'", "''", "'%'", "'2026-01-01'", "NULL", "TRUE", "DATE '2026-01-01'", "TIMESTAMP '9999-12-31'", "'\0'"),
    *("INTERVAL 1 DAY", "INTERVAL '9999999999' YEAR", "'NaN'::DOUBLE", "'x'::BLOB", "$1", "?", "$x"),
)
BINARY = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "=",
    "<>",
    "<",
    ">=",
    "AND",
    "OR",
    "||",
    "LIKE",
    "ILIKE",
    "IS NOT DISTINCT FROM",
    "<<",
    "^",
    "**",
)
CALLS = (
    *(
        "abs({})",
        "lower({})",
        "upper({})",
        "length({})",
        "trim({})",
        "substring({}, 2)",
        "substring({}, -5, 99999999999)",
    ),
    *("round({}, 400)", "floor({})", "year({})", "month({})", "coalesce({}, 0)", "-({})", "NOT ({})", "({}) IS NULL"),
    *(
        "CAST({} AS BIGINT)",
        "CAST({} AS TINYINT)",
        "TRY_CAST({} AS DATE)",
        "CAST({} AS DECIMAL(38, 37))",
        "CAST({} AS BOOLEAN)",
    ),
    *("CAST({} AS TIMESTAMP)", "{} BETWEEN 0 AND 1", "{} IN (1, 2, NULL)", "{} IN ('a', 1)", "starts_with({}, 'a')"),
    *(
        "CASE WHEN {} THEN 1 ELSE 'a' END",
        "regexp_matches({}, '(')",
        "regexp_matches({}, 'a*')",
        "~({})",
        "{} LIKE 'a' ESCAPE 'ab'",
    ),
)
ATTACKS = (
    *(
        "1=1; DROP TABLE x",
        "1=1 --",
        "1 /* ",
        "(SELECT 1)",
        "score IN (SELECT 1)",
        "read_csv('/etc/passwd') = 1",
        "getenv('HOME') = 'x'",
    ),
    *(
        "score = 1 UNION SELECT 1",
        "count(*) > 1",
        "row_number() OVER () = 1",
        "EXISTS (SELECT 1)",
        "current_setting('x') = ''",
    ),
    *(
        "",
        " ",
        ";",
        "(",
        ")",
        "'",
        '"',
        "score =",
        "WHERE 1",
        "SELECT",
        "\0",
        "\ud800",
        "é = 1",
        "score score",
        "score.x = 1",
        "*",
    ),
    *(
        "(" * 200 + "1" + ")" * 200 + " = 1",
        "NOT " * 200 + "TRUE",
        "(" * 3000 + "1=1" + ")" * 3000,
        "1=1" + " AND 1=1" * 3000,
    ),
    *(
        "1" + "+1" * 200 + " > 0",
        "-" + " -" * 200 + "1 < 0",
        "score = 1 LIMIT 0",
        "score > ALL (SELECT 1)",
        "[1, 2] = [1]",
        "{'a': 1} = 1",
    ),
    *(
        "x -> x",
        "score::UNKNOWN = 1",
        "CAST(score AS INTEGER[]) = 1",
        "1::DECIMAL(99, 3) = 1",
        "score COLLATE nocase = 'a'",
        "interval '1' day",
    ),
)


def expression(draw: random.Random, columns: Sequence[str], depth: int) -> str:
    """A random scalar expression over columns; seldom of fitting types."""
    choice = draw.random()
    if depth == 0 or choice < 0.15:
        name = draw.choice((*columns, *columns, "nobody"))
        return f'"{name}"' if draw.random() < 0.6 else draw.choice(LITERALS)
    if choice < 0.6:
        left, right = expression(draw, columns, depth - 1), expression(draw, columns, depth - 1)
        return f"({left} {draw.choice(BINARY)} {right})"
    return draw.choice(CALLS).format(expression(draw, columns, depth - 1))


def predicate(draw: random.Random, columns: Sequence[str]) -> str:
    """A random predicate: sometimes an attack, mostly comparisons of random expressions."""
    if draw.random() < 0.25:
        return draw.choice(ATTACKS)
    left, right = expression(draw, columns, 2), expression(draw, columns, 1)
    return f"{left} {draw.choice(('=', '<', '>=', '<>', 'LIKE', 'IS NOT DISTINCT FROM'))} {right}"
