"""`thresher render`: the SQL of a stage as text, in the order in which it would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.areas import rows_in_order
from pipeline.dialect import render
from pipeline.queries import expand, load
from pipeline.stages.plan import Computed, Placed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlglot.expressions as exp

    from pipeline.opening import OpenedStage
    from pipeline.stages.plan import Areas


def render_stage(opened: OpenedStage, *, dialect: str) -> str:
    """Relations, checks and counting queries of a stage, each with its name, in a dialect."""
    return "\n\n".join(_parts(opened, dialect)) + "\n"


def _parts(opened: OpenedStage, dialect: str) -> Iterator[str]:
    plan = opened.plan
    for relation in plan.relations:
        for scan in relation.scans:
            more = f" and {len(scan.files) - 1} more" if len(scan.files) > 1 else ""
            yield f"-- {opened.name}: relation {scan.name} is {scan.files[0]}{more}"
        yield _titled(opened, f"relation {relation.name}", relation.query, dialect)
    frames = [(name, each.name, rows) for each in plan.matched for name, rows in each.frames.items()]
    for name, relation_name, rows in frames:
        yield _titled(opened, f"rows {name} for relation {relation_name}, matched part by part", rows, dialect)
    for sweep in plan.sweeps:
        yield _titled(opened, f"relation {sweep.name}", sweep.by_cell(), dialect)
    for number, check in enumerate(plan.checks, start=1):
        yield _titled(opened, f"check {number}: no row may come back", check.query, dialect)
    yield from _counts(opened, dialect)
    yield from _whole_rows(opened, dialect)


def _counts(opened: OpenedStage, dialect: str) -> Iterator[str]:
    plan = opened.plan
    by = [each.name for each in plan.by]
    for query in plan.counts:
        if isinstance(query, Computed):
            for name, rows in query.frames.items():
                yield _titled(opened, f"rows {name} for {query.name}, counted by sorting", rows, dialect)
            continue
        settings = ", ".join(f"${name} = {value!r}" for name, value in query.params.items()) or "none"
        yield _titled(opened, f"query {query.name}, parameters: {settings}", query.tree(by), dialect)
    if plan.areas is not None:
        yield from _areas(opened, plan.areas, by, dialect)


def _whole_rows(opened: OpenedStage, dialect: str) -> Iterator[str]:
    plan = opened.plan
    for name, rows in plan.fetched.items():
        yield _titled(opened, f"rows {name}, fetched as they are", rows, dialect)
    for folded in plan.folded:
        if isinstance(folded.rows, Placed):
            yield _titled(opened, f"rows whose places are found, for {folded.table}", folded.rows.rows, dialect)
            yield _titled(opened, f"rows they have places among, for {folded.table}", folded.rows.among, dialect)
        else:
            yield _titled(opened, f"rows in order, for {folded.table}", folded.rows, dialect)


def _areas(opened: OpenedStage, asked: Areas, by: list[str], dialect: str) -> Iterator[str]:
    yield _titled(opened, "relation scored", asked.rows, dialect)
    if asked.exact:
        yield _titled(opened, "rows in order, for areas", rows_in_order(asked, by), dialect)
        return
    query = load("areas/weighted_cells" if asked.weighted else "areas/cells")
    title = f"query {query.name}, with cells that are made finer until bounds are narrower than {asked.width:g}"
    yield _titled(opened, title, expand(query, by), dialect)
    query = load("areas/extremes")
    title = f"query {query.name}, where the counts alone leave wider bounds"
    yield _titled(opened, title, expand(query, by), dialect)


def _titled(opened: OpenedStage, title: str, query: exp.Query, dialect: str) -> str:
    return f"-- {opened.name}: {title}\n{render(query, dialect)};"
