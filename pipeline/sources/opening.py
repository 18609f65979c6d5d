"""Opening an input: its files are found, its frames opened, and their columns checked against its contract."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..errors import ConfigError, DataError, together
from . import predicates
from .bindings import Bindings
from .listing import find_files
from .partition_filter import none_known
from .source import Source, no_engine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .bound_sql import TypeOf
    from .engine_rows import Looks
    from .inputs import Input, InputContract, Kind
    from .partition_filter import Truths
    from .remote.reading import Copies


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
    """Find the files of an input and check their footers against its contract.

    Args:
        contract: What the stage expects of it.
        spec: What the config says about it.
        base: Folder of the config file.
        type_of: Returns the type of an expression on the columns of a schema.
        scratch: Folder for temporary data; None: that of the system.
        truths: Says for which partitions a predicate holds; files whose rows `where` leaves out are not opened.
        copies: Where copies of remote objects are; None: in the user's folder for caches.
        look: How the engine looks at tables and addresses; None: it reads files here alone.
        results: The results folder of the run, which is never an input; None: it has none here.

    Raises:
        ConfigError: a required column is unbound.
        NoInputError: no file matches.
        DataError: required or mapped columns are missing, or have types that their fields do not accept, or `where`
            does not fit the columns; it lists all.
    """
    kinds = partial(_kinds, contract, spec)
    listing = find_files(
        spec,
        base,
        scratch,
        name=contract.name,
        kinds=kinds,
        reads=_reads(contract, spec),
        truths=truths,
        copies=copies,
        look=look,
        results=results,
    )
    source = Source(
        contract,
        spec,
        listing.files,
        type_of,
        truths,
        listing.skipped,
        listing.left_out,
        listing.tables,
        results_left_out=listing.results_left_out,
    )
    faults = []
    for field in contract.fields:
        if field.required and spec.columns.get(field.name) is False:
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
    if faults:
        raise together(faults)
    return source


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
