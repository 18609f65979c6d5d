"""The public function of each stage: its keywords are a config, which is run in memory, and what it returns."""

from __future__ import annotations

import inspect
import os
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import polars as pl

from ..base.errors import ConfigError, ThresherError, UsageError
from ..base.paths import path_text
from ..base.schemas import users_name
from ..engines.engine import scratch_folder
from ..runs.config import parse_config
from ..runs.evaluation import evaluate_in_memory
from ..sources.frames import is_frame
from ..sources.inputs import Input
from ..stages import find_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb
    import pyarrow.dataset
    from pydantic.fields import FieldInfo

    from ..report.charts import Group, Panels
    from ..report.explanation import Explained
    from ..report.pictures import Chart
    from ..report.planned import Planned
    from ..report.published import PublishedRun
    from ..runs.config import Config
    from ..runs.evaluation import Evaluation
    from ..runs.stage_results import Run
    from ..stages import StageEntry
    from ..stages.parameters import StageParameters
    from ..stages.stage import Summary


class ArrowStream(Protocol):
    """Anything that exports its rows as an Arrow stream: Polars, pandas and Arrow tables, readers, relations."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Rows: TypeAlias = (
    "str | os.PathLike[str] | ArrowStream | pl.LazyFrame | pyarrow.dataset.Dataset | duckdb.DuckDBPyRelation"
)
InputRows: TypeAlias = "Rows | Sequence[Rows] | Mapping[str, Any]"


# What a config says, as Python says it: `cluster = "a"` becomes `cluster="a"`.


_SETTING = re.compile(r"(?<![\w.'\"])([a-z_]\w+(?:\.\w+)*) = (?=[\[{'\"\d-]|true|false)|(?=\{ [a-z_]+ = )")
_LEFT_OPEN, _QUOTED = "…", '= "…"'  # what a message leaves to the reader, and how TOML can read it
_PATH = '{"path": …, '
_CLOSING = {"[": "]", "{": "}"}  # a text in quotes ends as it begins


def in_python(text: str) -> str:
    """Return a sentence in which settings of a config, `key = value` as in TOML, are written as keywords of a call."""
    parts: list[str] = []
    done, of_input = 0, False
    for setting in _SETTING.finditer(text):
        if setting.start() < done:
            continue  # within the value of the one before
        value, end = _value(text, setting.end())
        if end == setting.end():
            continue
        between, written = text[done : setting.start()], _written(setting[1], value) if setting[1] else _shown(value)
        if of_input and between == ", " and setting[1] in Input.model_fields:
            parts[-1] = f"{parts[-1][:-1]}, {written.removeprefix(_PATH)}"
        else:
            parts += [between, written]
        done, of_input = end, written.startswith(_PATH)
    return "".join([*parts, text[done:]])


def _value(text: str, start: int) -> tuple[Any, int]:
    """Return the value of TOML that begins there, and where it ends: the shortest text that is one.

    Numbers and words go as far as they can.
    """
    line_end = text.find("\n", start) % (len(text) + 1)
    if text[start] not in "[{'\"":
        word = re.compile(r"true|false|-?\d+(?:\.\d+)?(?:e-?\d+)?").match(text, start)
        return (tomllib.loads(f"a = {word[0]}")["a"], word.end()) if word else (None, start)
    end = start + 1
    while end := text.find(_CLOSING.get(text[start], text[start]), end, line_end) + 1:
        try:
            return tomllib.loads(f"a = {text[start:end].replace(f'= {_LEFT_OPEN}', _QUOTED)}")["a"], end
        except tomllib.TOMLDecodeError:
            continue
    return None, start


def _written(key: str, value: object) -> str:
    """Return a setting as a keyword, and one of an input as a dictionary; so are the inner names of a dotted key."""
    name, *inner = key.split(".")
    for part in reversed(inner):
        value = {part: value}
    if name in Input.model_fields:
        return f'{_PATH}"{name}": {_shown(value)}}}'
    return f"{name}={_shown(value)}"


def _shown(value: object) -> str:
    """Return a value as Python writes it, texts in double quotes where they have none."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(key)}: {_shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if value == _LEFT_OPEN:
        return _LEFT_OPEN
    if isinstance(value, str) and '"' not in value and value.isprintable() and "\\" not in value:
        return f'"{value}"'
    return repr(value)


FIGURES_SHOWN = 2
MOST_GROUPS = 12


class Result:
    """The result of one stage, in memory.

    Its tables are attributes under their short names: `result.curve`, or `result["curve"]`, is the table
    `threshold_sweep_curve` of a threshold sweep.

    Attributes:
        name: Name of the stage.
        kind: Its task.
        tables: Its result tables by their full names, as `docs/results.md` describes them; and `counts`, `inputs` and
            `bindings`.
        omitted: Tables that were not made, with the reason.
        warnings: What to know before using the numbers.
        notes: What was noticed besides, which changes no decision.
        summary: The main result, for people.
    """

    def __init__(self, config: Config, evaluation: Evaluation) -> None:
        self._read: tuple[Config, Evaluation] | None = config, evaluation
        stage = evaluation.result
        self.name: str = stage.name
        self.kind: str = stage.kind
        self.tables: dict[str, pl.DataFrame] = {table.name: frame for table, _, frame, _ in evaluation.tables}
        params = evaluation.opened.configured.params
        self._by_columns, self._confidence = params.by_columns, params.confidence
        self.omitted: dict[str, str] = {table: in_python(reason) for table, reason in stage.omitted.items()}
        self.warnings: tuple[str, ...] = tuple(in_python(warning) for warning in stage.warnings)
        self.notes: tuple[str, ...] = tuple(in_python(note) for note in stage.notes)
        self.summary: Summary = stage.summary
        self._shown = replace(stage, omitted=self.omitted, warnings=self.warnings, notes=self.notes)

    def __getstate__(self) -> dict[str, object]:
        """Leave out what was read: a result that was pickled has its tables, its summary and its figures."""
        return {name: value for name, value in vars(self).items() if name != "_figures"} | {"_read": None}

    def __getattr__(self, name: str) -> pl.DataFrame:
        """Return a table by its short name; an AttributeError says which tables there are, or why it was not made."""
        if name.startswith("_"):
            raise AttributeError(name)
        full = f"{self.kind}_{name}"
        if full in self.omitted:
            message = f"the table {full} was not made: {self.omitted[full]}"
            raise AttributeError(message)
        if full not in self.tables:
            message = f"{self.kind} has no table {name!r}; it has {', '.join(self._short_names())}"
            raise AttributeError(message)
        return self.tables[full]

    def __getitem__(self, name: str) -> pl.DataFrame:
        """Return a table by its short or its full name; a KeyError says which there are, or why it was not made."""
        try:
            return self.tables[name] if name in self.tables else self.__getattr__(name)
        except AttributeError as error:
            raise KeyError(str(error) or name) from None

    def __dir__(self) -> list[str]:
        """List the attributes, the tables among them, so that editors complete them."""
        return sorted({*super().__dir__(), *self._short_names()})

    def _short_names(self) -> list[str]:
        return [name.removeprefix(f"{self.kind}_") for name in self.tables if name.startswith(f"{self.kind}_")]

    def __repr__(self) -> str:
        """Say what it is, the main result, and what there is to look at."""
        from ..report.summary import notes_in_words

        lines = [f"{self.name}: {self.summary.sentence}"]
        lines += [f"warning: {warning}" for warning in self.warnings]
        lines += [f"{notes_in_words(self.notes)}: see notes"] if self.notes else []
        lines.append(f"tables: {', '.join(self._short_names())}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Say the same with a table and figures, for notebooks."""
        from ..report.summary import blocks_of_stage, notes_block, warnings_block
        from ..report.text import drawing, element, joined, markup_of

        warnings = (warnings_block(self.warnings),) if self.warnings else ()
        charts = [self._chart(drawn, drawn.first)._repr_svg_() for drawn in self._figures[:FIGURES_SHOWN]]
        figures = [element("div", drawing(chart)) for chart in charts]
        notes = (notes_block(self.notes),) if self.notes else ()
        return str(joined(markup_of((*warnings, *blocks_of_stage(self._shown, MOST_GROUPS), *notes)), *figures))

    @cached_property
    def _figures(self) -> tuple[Panels, ...]:
        from ..report.charts import panels

        entry = find_stage(self.kind)
        inside = {users_name(column): column for column in self._by_columns}
        tables = {
            name: frame.rename({column: inside[column] for column in frame.columns if column in inside})
            for name, frame in self.tables.items()
        }
        return tuple(panels(figure) for figure in entry.load().figures(tables, self._confidence)) if entry else ()

    @property
    def figures(self) -> list[str]:
        """Names of the figures that `plot` draws."""
        return [drawn.figure.name for drawn in self._figures]

    def plot(self, figure: str = "", **group: object) -> Chart:
        """Draw a figure, which notebooks show and which can be saved as SVG, PNG or PDF.

        Args:
            figure: Its name, one of `figures`; default: the first.
            group: The group by its grouping columns, `source="north"`, None for NULL; default: all rows, or the
                first group.

        Raises:
            UsageError: there is no such figure, or it has no such group.
        """
        from ..report.evidence import NULL, text_of
        from ..report.pictures import chosen_group

        drawn = next((drawn for drawn in self._figures if figure in {"", drawn.figure.name}), None)
        if drawn is None:
            message = f"no figure is called {figure!r}" if figure else "there is nothing to draw"
            raise UsageError(message, remedy=f"The figures are: {', '.join(self.figures) or 'none'}.")
        values = {
            name: text_of(value) if value is None or value == NULL else str(value) for name, value in group.items()
        }
        return self._chart(drawn, chosen_group(drawn, values))

    def _chart(self, drawn: Panels, group: Group) -> Chart:
        from ..report.pictures import Chart

        return Chart(drawn, group, f"{self.name} · thresher {version('thresher')}")

    def explain(
        self,
        metric: str = "",
        threshold: float | None = None,
        *,
        sql: bool = False,
        rows: int | None = None,
        **group: object,
    ) -> Explained:
        """Explain where a number comes from: definition, counts, inputs, parameters, and the rows behind it.

        Rows are read again from the files of the inputs. Of frames there are none to show, as they are not kept.

        Args:
            metric: The number; default: the main one of the stage.
            threshold: Its threshold; default: that of the first operating point. The nearest at or below it is taken.
            sql: Whether the SQL that counts it is wanted, too.
            rows: Most rows of a section; None: ten; 0: no rows.
            group: The group by its grouping columns, `source="north"`, None for NULL, or by other columns that tell
                rows apart, `average="macro"`; default: the total, or the first group.

        Raises:
            ThresherError: there is no such number, threshold or group, or an input has changed since it was read.
        """
        from ..report.evidence import MOST_ROWS, Wish
        from ..report.explaining import Shown, explain
        from ..report.explanation import Explained
        from ..runs.evaluation import render_opened

        wish = Wish.of_python(metric, threshold, group, option="")
        shown = Shown(most_rows=MOST_ROWS if rows is None else rows, rows=rows != 0)
        with self._published() as run:
            explanation = explain(run, self.name, wish, shown)
        statements = render_opened(self._as_read()[1].opened, dialect="duckdb") if sql else ""
        return Explained(replace(explanation, run="", published_at="", sql=statements))

    def plan(
        self,
        metric: str = "",
        threshold: float | None = None,
        *,
        width: float | None = None,
        difference: float | None = None,
        margin: float | None = None,
        claim: str = "not_worse",
        power: float = 0.8,
        confidence: float | None = None,
        criterion: str = "",
        **group: object,
    ) -> Planned:
        """Say how many units an interval of a wanted width, or a test, needs, with this result as the pilot.

        Args:
            metric: The number; default: the main one of the stage.
            threshold: Its threshold; default: that of the first operating point. The nearest at or below it is taken.
            width: Wanted width of the interval, upper less lower limit.
            difference: Difference that a test is to find, as for `plan_sample`.
            margin: Difference of two systems that a test is to rule out, likewise.
            claim: What a test with a margin shows: `not_worse` or `equivalent`.
            power: Probability that the test shows it.
            confidence: Level of the interval, or 1 less the level of the test; default: that of the result.
            criterion: Operating point whose threshold is meant, such as `max_f1`.
            group: The group by its grouping columns, `source="north"`, None for NULL; default: the total, or the first.

        Raises:
            ThresherError: there is no such number, threshold or group, or nothing can be planned of it.
        """
        from ..report.evidence import Wish
        from ..report.planned import Goal
        from ..report.planning import plan_run

        goal = Goal(width, difference, margin, claim, power, confidence).checked(str)
        wish = Wish.of_python(metric, threshold, group, option="", criterion=criterion, verb="planned")
        with self._published() as run:
            return replace(plan_run(run, self.name, wish, goal), run="")

    def save(self, folder: str | os.PathLike[str]) -> Run:
        """Publish the result as a run in a results folder; nothing is counted again.

        Args:
            folder: The results folder, here or on a store; it is created if it does not exist.

        Returns:
            The published run, or the existing one if its latest run has the same inputs, config, code and tables.

        Raises:
            ThresherError: the folder is no path or cannot be written, or an input has changed since it was read.
        """
        from ..runs import runner

        config, evaluation = self._as_read()
        return runner.run(config.at(path_text(folder, what="folder"), what="folder"), evaluation=evaluation)

    @contextmanager
    def _published(self) -> Iterator[PublishedRun]:
        """Publish the result in a temporary folder, for what reads published runs."""
        from ..report.published import read_run

        config, _ = self._as_read()
        with TemporaryDirectory(dir=scratch_folder(config.resources.scratch)) as folder:
            yield read_run(self.save(folder).path)

    def _as_read(self) -> tuple[Config, Evaluation]:
        """Return what the result was made of, unless it was pickled, and has its tables alone."""
        if self._read is None:
            message = f"this result of {self.kind} was pickled, and has its tables, its summary and its figures alone"
            raise UsageError(message, remedy=f"Call thresher.{self.kind} again, and save that.")
        return self._read


# The public function of each stage: its keywords are the config of that stage, which is run in memory.
#
# A function is made from the parameter class of its stage when it is first asked for; for editors and type checkers
# tests/api/generating.py writes all of them into thresher/__init__.pyi.


_PLAIN = (str, int, float, tuple)
_WIDTH = 108
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_RESOURCES = "Limits, as in the config: `memory`, `threads`, `scratch`, `scratch_limit`."


@cache
def stage_function(kind: str) -> Callable[..., Result]:
    """Return the public function of a stage, whose signature and help are made from the parameter class."""
    entry = find_stage(kind)
    if entry is None:
        message = f"no stage is called {kind!r}"
        raise ConfigError(message)
    keywords = keywords_of(entry)

    def function(*values: object, **given: Any) -> Result:  # noqa: ANN401 - any value of a parameter
        # refuse a call as Python would, with what was meant
        first = next(iter(keywords))
        if values:
            message = f"{kind}() takes every value by its name: {kind}({first}=…, by=…)"
            raise TypeError(message)
        for name in given:
            if name not in keywords:
                close = get_close_matches(name, keywords, n=1)
                meant = f"did you mean {close[0]}?" if close else f"it takes {', '.join(keywords)}"
                message = f"{kind}() has no keyword {name}; {meant}"
                raise TypeError(message)
        missing = [name for name, field in keywords.items() if is_required(name, field) and name not in given]
        if missing:
            message = f"{kind}() needs {' and '.join(f'{name}=…' for name in missing)}"
            raise TypeError(message)
        return _evaluate(entry, given)

    function.__name__ = function.__qualname__ = kind
    function.__module__ = "thresher"
    function.__doc__ = docstring(entry)
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # which inspect and editors look for
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_default(field))
            for name, field in keywords.items()
        ],
        return_annotation=Result,
    )
    return function


def keywords_of(entry: StageEntry) -> dict[str, FieldInfo | None]:
    """Return the parameters of a stage in the order of its function, required ones first; None of `resources`."""
    stage = entry.load()
    fields = {
        name: field
        for name, field in stage.parameters.model_fields.items()
        if name != "kind" and name not in stage.parameters.inapplicable
    }
    inputs = [contract.name for contract in stage.inputs]
    order = [*inputs, *(name for name in fields if name not in {*inputs, "name"}), "name"]
    order.sort(key=lambda name: not is_required(name, fields[name]))
    return {name: fields[name] for name in order} | {"resources": None}


def is_required(name: str, field: FieldInfo | None) -> bool:
    """Say whether a function cannot be called without a keyword."""
    return field is not None and field.is_required() and name != "name"


def docstring(entry: StageEntry) -> str:
    """Return the help of the function of a stage, from the words of its parameter class."""
    stage = entry.load()
    meanings = {contract.name: contract.meaning for contract in stage.inputs} | dict(_meanings(stage.parameters))
    lines = [entry.summary, "", "Args:"]
    for name in keywords_of(entry):
        meaning = _RESOURCES if name == "resources" else meanings.get(name, "")
        text = f"{name}: {meaning[:1].upper()}{meaning[1:]}"
        lines += textwrap.wrap(
            text if text.endswith(".") else f"{text}.",
            _WIDTH,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
            break_on_hyphens=False,
        )
    lines += ["", "Returns:", "    Its result tables, as Polars frames.", "", "Raises:"]
    return "\n".join([*lines, "    ThresherError: its class and its `code` say what went wrong.", ""])


def _meanings(parameters: type[StageParameters]) -> Iterator[tuple[str, str]]:
    """Yield what the docstrings of a class, and of those that it derives from, say of their attributes."""
    for parent in reversed(parameters.__mro__):
        text = inspect.cleandoc(parent.__doc__ or "")  # Python 3.13 leaves indentation out itself
        _, _, attributes = text.partition("Attributes:\n")
        for name, meaning in _ATTRIBUTE.findall(attributes):
            yield name, " ".join(meaning.split())


def _default(field: FieldInfo | None) -> Any:  # noqa: ANN401 - any default
    if field is None:
        return None
    return inspect.Parameter.empty if field.is_required() else field.default


def _evaluate(entry: StageEntry, given: Mapping[str, Any]) -> Result:
    """Run one stage on files and frames; nothing is written but temporary data.

    Of its parameters None stands for the default, and what is the default is left out, so that a config says the same
    whether a default is written or not.
    """
    stage = entry.load()
    names = {contract.name for contract in stage.inputs}
    inputs = {name: as_rows(entry.kind, name, value) for name, value in given.items() if name in names}
    fields = stage.parameters.model_fields
    chosen = {
        name: inputs[name] if name in inputs else _as_written(value)
        for name, value in given.items()
        if name != "resources"
        and value is not None
        and not (isinstance(value, _PLAIN) and value == fields[name].default)
    }
    limits = given.get("resources")
    document = {"stages": [{"kind": entry.kind, **chosen}]} | ({} if limits is None else {"resources": dict(limits)})
    try:
        config = replace(parse_config(document, base=Path.cwd(), origin=f"thresher.{entry.kind}"), output=Path())
        evaluation = evaluate_in_memory(config)
    except ThresherError as error:
        for remedy in filter(None, {fault.remedy for fault in error.faults}):  # of several, their message holds them
            error.message = error.message.replace(remedy, in_python(remedy))
        error.remedy = error.remedy and in_python(error.remedy)
        raise
    return Result(config, evaluation)


def as_rows(kind: str, name: str, value: Any) -> Any:  # noqa: ANN401 - any value
    """Return an input as a config can hold it: arrays by name are a frame.

    A ConfigError says that it cannot be an input in the words of Python, where a config has words of its own.
    """
    if isinstance(value, Mapping) and "path" in value and set(value) <= set(Input.model_fields):
        return {**value, "path": as_rows(kind, name, value["path"])}
    if isinstance(value, Mapping) and isinstance(value.get("database"), str | os.PathLike):
        return dict(value)
    columns = value.values() if isinstance(value, Mapping) else ()
    are_arrays = (isinstance(each, list | tuple | pl.Series) or getattr(each, "ndim", 0) > 0 for each in columns)
    if columns and all(are_arrays):
        return _frame_of(kind, name, value)
    if (fields := getattr(getattr(value, "dtype", None), "names", None)) is not None:
        return _frame_of(kind, name, {field: value[field] for field in fields})
    if value is None or isinstance(value, str | os.PathLike) or is_frame(value):
        return value
    if not isinstance(value, list | tuple):
        is_named = isinstance(value, Mapping)
        what = f"a dictionary without path: {', '.join(map(repr, value))}" if is_named else _type_in_words(value)
        message = f"thresher.{kind}: {name} is {what}, which is no input"
        remedy = 'Pass a path, a frame, arrays by name, a list of them, or {"path": …, "columns": …}.'
        raise ConfigError(message, remedy=remedy)
    for number, each in enumerate(value, start=1):
        if not isinstance(each, str | os.PathLike) and not is_frame(each):
            message = f"thresher.{kind}: {name} has {_type_in_words(each)} at place {number:,}, which is no input"
            remedy = "Pass a list of paths and frames; pl.DataFrame makes a frame of dictionaries."
            raise ConfigError(message, remedy=remedy)
    return value


def _frame_of(kind: str, name: str, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Make a frame of arrays by name, if they do not differ in length, and columns can hold their values."""
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{column} {length:,}" for column, length in lengths.items())
        message = f"thresher.{kind}: the columns of {name} differ in length: {told}"
        raise ConfigError(message, remedy="Pass arrays with one value for each row.")
    try:
        # in a series of pandas NaN stands for no value, as in its frames
        from_pandas = {name for name, values in columns.items() if type(values).__module__.startswith("pandas.")}
        series = {name: pl.from_pandas(columns[name]) if name in from_pandas else columns[name] for name in columns}
        return pl.DataFrame([pl.Series(name, values) for name, values in series.items()])
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        message = f"thresher.{kind}: {name} cannot be made a frame: {str(error).splitlines()[0]}"
        raise ConfigError(message, remedy="Pass arrays of numbers, texts, times or truth values.") from None


def _type_in_words(value: object) -> str:
    """Return its type, with an article: `an int`, `a numpy.ndarray`."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _as_written(value: Any) -> Any:  # noqa: ANN401 - any value of a parameter
    """Return a value as a config can hold it: arrays, series and ranges are lists, numbers of NumPy are numbers."""
    if isinstance(value, Mapping):
        return {key: _as_written(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_as_written(item) for item in value]
    to_list = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    return value if to_list is None else to_list()
