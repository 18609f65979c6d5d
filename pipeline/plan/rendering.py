"""`thresher render`: the SQL of a stage as text, in the order in which it would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.plan.areas import rows_in_order
from pipeline.plan.nodes import Computed, Placed
from pipeline.queries.dialect import render
from pipeline.queries.load import expand, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlglot.expressions as exp

    from pipeline.plan.nodes import Areas, Plan


def render_stage(name: str, plan: Plan, *, dialect: str) -> str:
    """Relations, checks and counting queries of a stage, each with its name, in a dialect."""
    return "\n\n".join(_parts(name, plan, dialect)) + "\n"


def _parts(stage: str, plan: Plan, dialect: str) -> Iterator[str]:
    for relation in plan.relations:
        for scan in relation.scans:
            more = f" and {len(scan.files) - 1} more" if len(scan.files) > 1 else ""
            yield f"-- {stage}: relation {scan.name} is {scan.files[0]}{more}"
        yield _titled(stage, f"relation {relation.name}", relation.query, dialect)
    frames = [(name, each.name, rows) for each in plan.matched for name, rows in each.frames.items()]
    for name, relation_name, rows in frames:
        yield _titled(stage, f"rows {name} for relation {relation_name}, matched part by part", rows, dialect)
    for sweep in plan.sweeps:
        yield _titled(stage, f"relation {sweep.name}", sweep.by_cell(), dialect)
    for number, check in enumerate(plan.checks, start=1):
        yield _titled(stage, f"check {number}: no row may come back", check.query, dialect)
    yield from _counts(stage, plan, dialect)
    yield from _whole_rows(stage, plan, dialect)


def _counts(stage: str, plan: Plan, dialect: str) -> Iterator[str]:
    by = [each.name for each in plan.by]
    for query in plan.counts:
        if isinstance(query, Computed):
            for name, rows in query.frames.items():
                yield _titled(stage, f"rows {name} for {query.name}, counted by sorting", rows, dialect)
            continue
        settings = ", ".join(f"${name} = {value!r}" for name, value in query.params.items()) or "none"
        yield _titled(stage, f"query {query.name}, parameters: {settings}", query.tree(by), dialect)
    if plan.areas is not None:
        yield from _areas(stage, plan.areas, by, dialect)


def _whole_rows(stage: str, plan: Plan, dialect: str) -> Iterator[str]:
    for name, rows in plan.fetched.items():
        yield _titled(stage, f"rows {name}, fetched as they are", rows, dialect)
    for folded in plan.folded:
        if isinstance(folded.rows, Placed):
            yield _titled(stage, f"rows whose places are found, for {folded.table}", folded.rows.rows, dialect)
            yield _titled(stage, f"rows they have places among, for {folded.table}", folded.rows.among, dialect)
        else:
            yield _titled(stage, f"rows in order, for {folded.table}", folded.rows, dialect)


def _areas(stage: str, asked: Areas, by: list[str], dialect: str) -> Iterator[str]:
    yield _titled(stage, "relation scored", asked.rows, dialect)
    if asked.exact:
        yield _titled(stage, "rows in order, for areas", rows_in_order(asked, by), dialect)
        return
    query = load("areas/weighted_cells" if asked.weighted else "areas/cells")
    title = f"query {query.name}, with cells that are made finer until bounds are narrower than {asked.width:g}"
    yield _titled(stage, title, expand(query, by), dialect)
    query = load("areas/extremes")
    title = f"query {query.name}, where the counts alone leave wider bounds"
    yield _titled(stage, title, expand(query, by), dialect)


def _titled(stage: str, title: str, query: exp.Query, dialect: str) -> str:
    return f"-- {stage}: {title}\n{render(query, dialect)};"
