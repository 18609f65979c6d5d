"""Opening a stage: its inputs are found and their footers read, then its plan is made; nothing else is read."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import field as dataclass_field
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import ConfigError, DataError, NoInputError, Note, ResourceError, together
from ..base.paths import is_remote, read_file
from ..base.records import dataclass
from ..base.schemas import result_names
from ..engines.engine import bytes_of, limit_of, limit_process
from ..engines.expression_types import truths, type_of
from ..sources.bindings import Binding
from ..sources.finding import RENAME, skipped_words
from ..sources.inputs import EngineRows, Expression, Input, is_passed_in, relabelled
from ..sources.parquet_files import DataFile
from ..sources.source import judged_by_itself, open_source, with_others
from ..sources.types import as_mapping, as_renaming, in_expression
from ..stages.stage import UpstreamParameters, UpstreamStage, counts_table
from ..storage.layout import RUN_RECORD, Layout, own_sha256
from ..storage.state import require_latest
from .variables import NO_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..plan.plan import Plan
    from ..sources.inputs import Looks, Rows
    from ..sources.remote import Copies
    from ..sources.source import Source
    from ..stages.parameters import StageParameters
    from ..stages.stage import Stage
    from .config import Config, ConfiguredStage, ResourceLimits
    from .variables import Variables


def _published(config: Config, params: UpstreamParameters) -> list[UpstreamStage]:
    """Return the upstream stages as the latest run of a results folder has them, here or on a store.

    Raises:
        ConfigError: it is the folder that this run is published to.
        NoInputError: no run was published there, or its latest run lacks a stage.
        DataError: that run is damaged.
    """
    upstream_place = config.at(config.variables.expanded(params.results), what=f"results of stage {params.name!r}")
    if upstream_place.results == config.results:
        message = f"{config.origin}: results of stage {params.name!r} is the output folder of this run itself"
        raise ConfigError(message, remedy="Put both stages into one config and leave results out, or change output.")
    if upstream_place.store is None:
        return _of_latest(upstream_place.output, params)
    with upstream_place.store.naming():
        return _of_latest(upstream_place.store.read_mirror(), params)


def _of_latest(root: Path, params: UpstreamParameters) -> list[UpstreamStage]:
    _, latest, _ = require_latest(Layout(root))
    path = latest.folder / RUN_RECORD
    stages = {}
    try:
        record = json.loads(read_file(path))
        omitted = record.get("omitted", {})  # runs of earlier versions have every table
        for stage in record["configuration"]["stages"]:
            name, by, cluster = stage["name"], tuple(map(tuple, stage["by"])), stage.get("cluster")
            stages[name] = UpstreamStage(
                *(name, stage["kind"], by, path.parent, omitted.get(name, {}), tuple(stage.get("measures", ()))),
                cluster=cluster if isinstance(cluster, str) else None,
                cluster_order=stage.get("cluster_order"),
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is not the record of a run ({error})"
        raise DataError(message, remedy=f"thresher verify {root} lists what is damaged.") from error
    for name in params.of:
        if name not in stages:
            message = f"the latest run in {root} has no stage {name!r}"
            raise NoInputError(message, remedy=f"Its stages are: {', '.join(stages)}.")
    return [stages[name] for name in params.of]


def _named_by_address(file: Rows) -> Rows:
    """Let a file of results on a store be called by its address, and be identified by its content alone."""
    run = file.path.parent.parent if isinstance(file, DataFile) else Path()
    if not isinstance(file, DataFile) or not (address := Layout(run.parent.parent).address):
        return file
    sha256, name = own_sha256(file.path), file.path.relative_to(run.parent).as_posix()
    identity = {"size": file.identity["size"], "etag": sha256, "sha256": sha256}  # as of a copied object
    return replace(file, label=f"{address}/{run.parent.name}/{name}", identity=identity)


def looks_of(config: Config) -> Looks | None:
    """Return how the engine looks at tables and addresses; None for an engine that reads files here alone.

    Spark is started when it is first asked.
    """
    if config.engine != "spark":
        return None
    from ..engines.spark import looks  # noqa: PLC0415 - an optional extra

    return looks(config.spark, config.resources.of_engine)


def _check_verifiable(config: Config, sources: Mapping[str, Source]) -> None:
    """Check that inputs which the engine reads are not to be verified here, where their files cannot be reached."""
    if config.verify_inputs == "none":
        return
    for source in sources.values():
        for rows in source.files:
            if isinstance(rows, EngineRows):
                message = (
                    f'{config.origin}: verify_inputs = "{config.verify_inputs}" cannot verify {rows.name} '
                    f"(input {source.name}), which {config.engine} reads"
                )
                raise ConfigError(message, remedy='Set verify_inputs = "none", or read the files here, by their paths.')


BATCH_ROWS = 2048  # that a thread of DuckDB has in hand; their text is not counted to its memory limit
MOST_FILES = 8  # of an input that are looked at
WIDE = 1_000.0  # bytes: with smaller values it is the limit that is at fault, of which the engine tells
_UNITS = {"GB": 1e9, "MB": 1e6, "KB": 1e3}


def _refuse_wide_values(plan: Plan, limits: ResourceLimits) -> None:
    """Refuse columns of which the batches of all threads together take more than the memory limit.

    Footers and a few values tell, before a scan begins.
    """
    limit, workers = limit_of(limits.memory_bytes), limits.threads or os.cpu_count() or 1
    for source in plan.sources:
        files = (file for file in source.files if isinstance(file, DataFile))
        large = (file for file in files if file.largest_group > limit / BATCH_ROWS / workers)
        for file in islice(large, MOST_FILES):
            for column in dict.fromkeys(columns_read(plan, source)):
                batch = min(BATCH_ROWS, file.rows)
                size = file.value_bytes(column, limit / batch / workers, limit / 4)
                if size > WIDE and size * batch * workers > limit:
                    message = (
                        f"input {source.name}: the values of column {column!r} in {file.name} have about "
                        f"{_in_words(size)} each: the engine reads {batch:,} at a time in each of {workers} threads, "
                        f"{_in_words(size * batch * workers)} together, and its memory limit is {_in_words(limit)}"
                    )
                    remedy = "Write shorter values, such as hashes, or lower threads or raise memory in [resources]."
                    raise ResourceError(message, remedy=remedy)


def _in_words(size: float) -> str:
    unit = next((unit for unit, n_bytes in _UNITS.items() if size >= n_bytes), "KB")
    return f"{size / _UNITS[unit]:,.0f} {unit}"


def columns_read(plan: Plan, source: Source) -> Iterator[str]:
    """Yield the columns of the files of an input that a plan reads, some of them several times."""
    yield from source.where_columns
    for relation in plan.relations:
        if relation.source is not None and relation.source.name == source.name:
            for name in relation.reads:
                yield from source.columns_read(name)


@dataclass(frozen=True)
class FoundInputs:
    """A stage whose inputs have been found, which tells whether it would bring what an earlier run brought.

    Attributes:
        sources: Its inputs by name.
        run: Folder of the unfinished run in which its inputs were made; None if they existed before.
        variables: What the references of its config stand for.
        cut: What is said of tokens that gold and predictions do not have in common.
    """

    configured: ConfiguredStage
    sources: dict[str, Source]
    run: Path | None = None
    variables: Variables = NO_VARIABLES
    cut: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the stage."""
        return self.configured.params.name

    @property
    def folders(self) -> set[Path]:
        """The folders of its input files, as they are named and as links lead to them."""
        files = (file for source in self.sources.values() for file in source.files)
        paths = [file.path for file in files if isinstance(file, DataFile)]
        named = {path.parent for path in paths}
        links = (path for path in paths if path.is_symlink())  # to resolve every path takes six times as long
        return named | {folder.resolve() for folder in named} | {path.resolve().parent for path in links}

    @property
    def engine_rows(self) -> tuple[EngineRows, ...]:
        """The rows that the engine reads itself."""
        files = (file for source in self.sources.values() for file in source.files)
        return tuple(file for file in files if isinstance(file, EngineRows))


@dataclass(frozen=True)
class OpenedStage(FoundInputs):
    """A stage whose inputs have been found and whose plan of what it will ask of an engine has been made."""

    plan: Plan = dataclass_field(kw_only=True)

    def fetch(self) -> None:
        """Bring here what the plan reads of files that lie elsewhere."""
        for source in self.plan.sources:
            source.fetch(columns_read(self.plan, source))

    def showing(self, columns: Mapping[str, tuple[str, ...]]) -> OpenedStage:
        """Return the same stage with a plan whose rows carry columns of the files along, by input."""
        sources = {name: replace(source, shown=columns.get(name, ())) for name, source in self.sources.items()}
        sources = with_others(sources)
        return replace(self, sources=sources, plan=self.configured.stage.plan(self.configured.params, sources))

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """The column that every field of every input is read from, followed by other columns that are read."""
        return tuple(binding for source in self.plan.sources for binding in _bindings(source, self.plan))


def open_inputs(
    config: Config,
    configured: ConfiguredStage,
    *,
    run: Path | None = None,
    omitted: Mapping[str, Mapping[str, str]] | None = None,
) -> OpenedStage:
    """Find the files of a stage, read their footers and make its plan; as `find_inputs` and `planned`."""
    return planned(config, find_inputs(config, configured, run=run, omitted=omitted))


def find_inputs(
    config: Config,
    configured: ConfiguredStage,
    *,
    run: Path | None = None,
    omitted: Mapping[str, Mapping[str, str]] | None = None,
) -> FoundInputs:
    """Find the files of a stage and read their footers; nothing else is read.

    A stage with upstream stages in the same config needs the folder of the unfinished run, and the tables that its
    stages did not make, with the reasons, by stage.

    Raises:
        NoInputError: no file matches.
        DataError: an input cannot be read, or an upstream stage did not make the table that is needed.
        ConfigError: the config does not fit the inputs.
    """
    with config.variables.concealing():
        params = config.variables.bound(configured.params)
        configured = replace(configured, params=params)
        if isinstance(params, UpstreamParameters) and params.of:
            if params.results:
                upstream = _published(config, params)
            else:
                stages = {each.params.name: each.as_upstream(run or Path()) for each in config.every}
                upstream = [replace(stages[name], omitted=(omitted or {}).get(name, {})) for name in params.of]
            configured = configured.with_upstream(upstream, origin=config.origin)
        opened = _opened(config, configured)
        if isinstance(params, UpstreamParameters) and params.results:
            opened = {
                name: replace(source, files=tuple(map(_named_by_address, source.files)))
                for name, source in opened.items()
            }
        opened, cut = _aligned(config, params, opened)
        sources = with_others(_labelled(opened, config.variables, run))
        return FoundInputs(configured, sources, run, config.variables, cut)


def planned(config: Config, inputs: FoundInputs) -> OpenedStage:
    """Make the plan of a stage whose inputs have been found.

    Raises:
        DataError: the footers show that an input breaks its contract.
        ConfigError: the config does not fit the inputs.
    """
    with config.variables.concealing():
        configured, sources = inputs.configured, inputs.sources
        plan = configured.stage.plan(configured.params, sources)
        if config.engine == "duckdb":
            _refuse_wide_values(plan, config.resources)
        _check_mappings(plan, where=f"{config.origin}: stage {configured.params.name!r}")
        notices = (*inputs.cut, *_notices(sources.values()), *_unbound_by_rule(plan))
        said = (*notices, *judged_by_itself(plan.sources, _read(plan)), *plan.warnings)
        warnings = tuple(type(text)(config.variables.concealed(text)) for text in said)  # a note stays one
        return OpenedStage(configured, sources, inputs.run, inputs.variables, plan=replace(plan, warnings=warnings))


def _aligned(
    config: Config, params: StageParameters, sources: dict[str, Source]
) -> tuple[dict[str, Source], tuple[str, ...]]:
    """Hold the tokens of gold and predictions against each other, for a stage that says how; say what that cuts."""
    align = getattr(params, "align", None)  # of entity_recognition
    if align is None:
        return sources, ()
    from ..sources.line_formats import aligned  # noqa: PLC0415 - loads polars

    gold, predicted, cut = aligned(
        sources["gold"], sources["predicted"], align, config.resources.scratch, judged="documents" in sources
    )
    return sources | {"gold": gold, "predicted": predicted}, cut


def _read(plan: Plan) -> set[tuple[str, str]]:
    """Return (input, canonical name) of every column that a plan reads."""
    return {(each.source.name, name) for each in plan.relations if each.source is not None for name in each.reads}


def _bindings(source: Source, plan: Plan) -> Iterator[Binding]:
    read = [name for input_name, name in sorted(_read(plan)) if input_name == source.name]
    for name in dict.fromkeys((*(field.name for field in source.contract.fields), *read)):
        binding, how = source.binding(name), plan.derived.get(f"{source.name}.{name}")
        if name in read and binding.origin == "absent" and source.offers(name):
            yield replace(binding, origin="named", column=name)
        elif name in read and binding.is_bound:
            yield binding
        else:
            yield Binding(source.name, name, "absent" if how is None else "derived", sql=how)


def _check_mappings(plan: Plan, *, where: str) -> None:
    """Refuse a mapping that has no effect, with the reason: it is misspelt, or something else is used instead."""
    read = _read(plan)
    for source in plan.sources:
        names = [field.name for field in source.contract.fields]
        for name, mapped in source.spec.columns.items():
            if name not in names and ((source.name, name) not in read or mapped is False):
                near = get_close_matches(name, names, n=1)
                message = f"{where}: input {source.name}: columns maps {name!r}, which is not used"
                remedy = f"Did you mean {near[0]!r}?" if near else f"Known columns: {', '.join(names)}."
                raise ConfigError(message, remedy=remedy)
            if mapped is not False and (source.name, name) not in read:
                otherwise = "nothing reads it with these parameters and inputs"
                effect = f"which has no effect: {plan.inapplicable.get(f'{source.name}.{name}', otherwise)}"
                message = f"{where}: input {source.name}: {name} is mapped to {source.source_name(name)!r}, {effect}"
                raise ConfigError(message, remedy="Remove it from columns, or change what prevents its use.")


def _unbound_by_rule(plan: Plan) -> Iterator[str]:
    """Yield notices of columns that have the name of a field which must be mapped to be bound."""
    read = _read(plan)
    for source in plan.sources:
        for field in source.contract.fields:
            if source.bindings.is_unused_by_rule(field.name) and (source.name, field.name) not in read:
                yield (
                    f"input {source.name}: the column {field.name!r} is not used, since it is not mapped: "
                    f'columns = {{ {field.name} = "{field.name}" }} makes it the {field.name} ({field.meaning}), '
                    f"columns = {{ {field.name} = false }} ends this notice"
                )


def _opened(config: Config, configured: ConfiguredStage) -> dict[str, Source]:
    """Open the inputs by name; the faults of all of them are reported together."""
    sources, faults = {}, []
    limits = config.resources
    limit_process(limits.memory_bytes)
    look = looks_of(config)
    specs = {contract.name: getattr(configured.params, contract.name) for contract in configured.stage.inputs}
    others = {name for name, spec in specs.items() if spec is not None}
    for contract in configured.stage.inputs:
        spec = specs[contract.name]
        if spec is None:
            continue
        try:
            sources[contract.name] = open_source(
                contract.beside(others),
                spec,
                config.base,
                type_of,
                limits.scratch,
                truths=truths,
                copies=_copies(limits, spec),
                look=look,
                results=config.output,
            )
        except (DataError, NoInputError) as error:
            faults.append(error)
    if faults:
        raise together(faults)
    _check_verifiable(config, sources)
    return sources


def _copies(limits: ResourceLimits, spec: Input) -> Copies | None:
    """Where objects of remote stores are copied to; None where the input names none."""
    if not any(isinstance(text, str) and is_remote(text) for text in spec.path):
        return None
    from ..sources.remote import DEFAULT_LIMIT, Copies  # noqa: PLC0415 - most inputs lie here

    return Copies(limits.copies, DEFAULT_LIMIT if limits.copies_limit is None else bytes_of(limits.copies_limit))


def _labelled(sources: Mapping[str, Source], variables: Variables, run: Path | None) -> Mapping[str, Source]:
    """Let messages and tables call files by names without values of the environment, but for the files of a run."""
    if not variables.secrets:
        return sources

    def label(file: Rows) -> Rows:
        if isinstance(file, EngineRows):
            return relabelled(file, variables.concealed(file.name))
        if not isinstance(file, DataFile) or is_passed_in(file) or (run is not None and file.path.is_relative_to(run)):
            return file
        origin = file.origin if file.is_versioned else file.origin or file.path
        return replace(file, label=variables.concealed(file.name), origin=origin)

    return {name: replace(source, files=tuple(map(label, source.files))) for name, source in sources.items()}


def _notices(sources: Iterable[Source]) -> Iterator[str]:
    """Yield what is said of results and files that are not read, and of rows that are read otherwise."""
    for source in sources:
        for folder in source.results_left_out:
            yield Note(f"input {source.name}: what thresher publishes in {folder} is not read")
    for source in sources:
        if source.skipped:
            remedy = f". {RENAME}" if any(each.is_parquet for each in source.skipped) else ""
            yield f"input {source.name}: {skipped_words(source.skipped)}{remedy}"
    for source in sources:
        totals: Counter[str] = Counter()
        for file in source.files:
            totals.update(file.notices if isinstance(file, DataFile) else {})
        for notice, total in totals.items():
            share = f"in {total:,} of {source.rows:,} rows " if total else ""
            yield Note(f"input {source.name}: {share}{notice}")


def check_names(stage: Stage, params: StageParameters, where: str) -> None:
    """Refuse grouping columns with the name of a column of the results, in upper or lower case.

    Raises:
        ConfigError: there is one; the remedy maps its column under another name.
    """
    taken = result_names((*stage.tables_of(params), counts_table(stage)))
    for name in dict.fromkeys(name for grouping in params.by for name in grouping):
        if name.lower() in taken:
            message = f"{where}: by: {name!r} is also a column of the results"
            raise ConfigError(message, remedy=_under_another_name(stage, params, name))


def _under_another_name(stage: Stage, params: StageParameters, name: str) -> str:
    """A mapping that groups by the same values: of a copy where the column has a role, which it must keep."""
    inputs = (getattr(params, contract.name, None) for contract in stage.inputs)
    mappings = [each.columns for each in inputs if isinstance(each, Input)]
    mapped = next((columns[name] for columns in mappings if columns.get(name)), name)
    other = f"my_{name}"
    fields = {field.name for contract in stage.inputs for field in contract.fields}
    role = next((key for columns in mappings for key, column in columns.items() if column == name), None)
    if role not in fields | {None}:
        return f"Write {role} in by, which is mapped to that column."
    is_field = name in fields
    if isinstance(mapped, Expression):
        mapping = as_mapping(other, mapped.sql)
    elif is_field or role is not None:
        mapping = as_mapping(other, in_expression(str(mapped)))
    else:
        mapping = as_renaming(other, str(mapped))
    in_place_of = "" if is_field or mapped == name else f" in place of {name}"
    return f"Give it another name: {mapping}{in_place_of}, and write {other} in by."
