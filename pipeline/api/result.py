"""What a public function returns: the tables of one stage, in memory."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ..engines.limits import scratch_folder
from ..errors import UsageError
from ..sources.paths import path_text
from ..stages import find_stage
from ..tables.groupings import users_name
from .python_words import in_python

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import polars as pl

    from ..report.figures.charts import Group, Panels
    from ..report.figures.pictures import Chart
    from ..report.published import PublishedRun
    from ..runs.config import Config
    from ..runs.evaluation import Evaluation
    from ..runs.stage_results import Run
    from ..stages.stage import Summary
    from .explained import Explained
    from .planned import Planned


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
        """Return a table by its short name.

        Raises:
            AttributeError: the stage has no such table, or did not make it; the message says which it has, or why.
        """
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
        """Return a table by its short or its full name.

        Raises:
            KeyError: the stage has no such table, or did not make it; the message says which it has, or why.
        """
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
        from ..report.text.summary import notes_in_words

        lines = [f"{self.name}: {self.summary.sentence}"]
        lines += [f"warning: {warning}" for warning in self.warnings]
        lines += [f"{notes_in_words(self.notes)}: see notes"] if self.notes else []
        lines.append(f"tables: {', '.join(self._short_names())}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Say the same with a table and figures, for notebooks."""
        from ..report.page.markup import drawing, element, joined
        from ..report.text.html import markup_of
        from ..report.text.summary import blocks_of_stage, notes_block, warnings_block

        warnings = (warnings_block(self.warnings),) if self.warnings else ()
        charts = [self._chart(drawn, drawn.first)._repr_svg_() for drawn in self._figures[:FIGURES_SHOWN]]
        figures = [element("div", drawing(chart)) for chart in charts]
        notes = (notes_block(self.notes),) if self.notes else ()
        return str(joined(markup_of((*warnings, *blocks_of_stage(self._shown, MOST_GROUPS), *notes)), *figures))

    @cached_property
    def _figures(self) -> tuple[Panels, ...]:
        from ..report.figures.charts import panels

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
        from ..report.explain.evidence import NULL, text_of
        from ..report.figures.pictures import chosen_group

        drawn = next((drawn for drawn in self._figures if figure in {"", drawn.figure.name}), None)
        if drawn is None:
            message = f"no figure is called {figure!r}" if figure else "there is nothing to draw"
            raise UsageError(message, remedy=f"The figures are: {', '.join(self.figures) or 'none'}.")
        values = {
            name: text_of(value) if value is None or value == NULL else str(value) for name, value in group.items()
        }
        return self._chart(drawn, chosen_group(drawn, values))

    def _chart(self, drawn: Panels, group: Group) -> Chart:
        from ..report.figures.pictures import Chart

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
        from ..report.explain.evidence import MOST_ROWS, Wish
        from ..report.explain.explaining import Shown, explain
        from ..runs.evaluation import render_opened
        from .explained import Explained

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
        from ..report.explain.evidence import Wish
        from ..report.planning.pilots import Goal
        from ..report.planning.planning import plan_run
        from .planned import Planned

        goal = Goal(width, difference, margin, claim, power, confidence).checked(str)
        wish = Wish.of_python(metric, threshold, group, option="", criterion=criterion, verb="planned")
        with self._published() as run:
            return Planned(replace(plan_run(run, self.name, wish, goal), run=""))

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
        """Return what the result was made of.

        Raises:
            UsageError: it was pickled, and has its tables alone.
        """
        if self._read is None:
            message = f"this result of {self.kind} was pickled, and has its tables, its summary and its figures alone"
            raise UsageError(message, remedy=f"Call thresher.{self.kind} again, and save that.")
        return self._read
