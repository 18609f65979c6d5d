"""A paragraph for a methods section about every stage of a run, with its numbers filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...stages.methods import Measured
from .blocks import Heading, Paragraph

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..published import PublishedRun, PublishedStage
    from .blocks import Block


def blocks_of_methods(run: PublishedRun, stages: Sequence[PublishedStage]) -> Iterator[Block]:
    """Return a paragraph for every stage, with its name above it if there are several."""
    for stage in stages:
        if len(stages) > 1:
            yield Heading(stage.name, level=2)
        yield Paragraph(paragraph_of(run, stage))


def paragraph_of(run: PublishedRun, stage: PublishedStage) -> str:
    """Return what a methods section says of a stage."""
    measured = Measured(
        parameters=stage.parameters,
        facts=run.record["facts"][stage.name],
        bindings=run.record["bindings"][stage.name],
        accounts=stage.accounts,
        tables=stage.tables,
    )
    sentences = [_capitalised(sentence) for sentence in stage.stage.methods(measured) if sentence]
    carried = run.record["results"][stage.name].get("carried_from") or {}
    version = carried.get("version") or run.record["versions"]["thresher"]
    return " ".join([*sentences, f"All numbers were computed with thresher {version}."])


def _capitalised(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"
