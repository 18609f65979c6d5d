"""Whether predictions are compared with themselves, so that their scores say nothing."""

from __future__ import annotations

from filecmp import cmp
from typing import TYPE_CHECKING

from ..visible_text import listed
from .parquet_files import DataFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from .rows import Rows
    from .source import Source


def judged_by_itself(sources: Iterable[Source], reads: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield a warning for every truth that is what it is to judge: the same rows, or made of the same column.

    Args:
        sources: The inputs of a stage.
        reads: What is read of them, as (input, canonical name).
    """
    named = {source.name: source for source in sources}
    for source in named.values():
        names = [field.name for field in source.contract.fields if (source.name, field.name) in reads]
        yield from _made_of_the_judged(source, names)
        judged = named.get(source.contract.truth_of)
        columns = {name: source.columns_read(name) for name in names if source.binding(name).is_bound}
        if judged is None or not all(_reads_alike(judged, name, read) for name, read in columns.items()):
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


def _reads_alike(judged: Source, name: str, columns: tuple[str, ...]) -> bool:
    return judged.contract.field(name) is not None and judged.columns_read(name) == columns


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
