"""What a published row and its run say of a number, in words: definition, interval, inputs, bindings, parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...metrics.uncertainty.qualities import INTERVAL_QUALITY, MEANINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...stages.stage import Stage
    from ..published import PublishedRun, PublishedStage

_FILES_NAMED = 2
_NOT_SHOWN = ("name", "kind", "by")
_WITHOUT_SCORE = ("infinite_score", "nan_score", "null_score")


def meaning_of(stage: Stage, table: str, name: str) -> str:
    """The meaning of a column of a result table: the definition of the number."""
    columns = next(each.columns for each in stage.tables if each.name == table)
    return next(column.definition for column in columns if column.name == name)


def why_undefined(row: Mapping[str, Any], name: str) -> str:
    """Why the number is NULL, or has no limits, in the words of the table."""
    if row[name] is None:
        return f"undefined: {row.get('undefined') or 'no value'}"
    lacks_limits = f"{name}_lower" in row and row[f"{name}_lower"] is None
    return f"no interval: {row.get('undefined_interval') or 'none can be given'}" if lacks_limits else ""


def interval_in_words(run: PublishedRun, stage: PublishedStage, row: Mapping[str, Any], name: str) -> str:
    """How the limits of the number were made and how far they can be trusted; empty without limits."""
    if row.get(f"{name}_lower") is None:
        return ""
    parameters = stage.parameters
    independent = run.record.get("facts", {}).get(stage.name, {}).get("independent", _independent(stage))
    ways = {
        "jackknife": f"closed form, from the spread between {independent}",
        "bootstrap": f"bootstrap-t, {parameters.get('resamples')} resamples of {independent}, seed "
        f"{parameters.get('seed')}",
    }
    way = ways.get(parameters.get("uncertainty", "jackknife"), "closed form")
    quality = row.get(INTERVAL_QUALITY)
    meaning = dict(MEANINGS).get(quality) if quality is not None else None
    words = "" if meaning is None else f"; interval_quality = {quality}: {meaning}"
    return f"{100 * parameters.get('confidence', 0.95):.6g}% confidence, {way}{words}"


def _independent(stage: PublishedStage) -> str:
    return "rows" if stage.stage.evidence is None else stage.stage.evidence.independent


def files_in_words(run: PublishedRun, stage: PublishedStage, name: str) -> str:
    """The files that an input was read from: one or two of them by their paths, of more the first and the last."""
    paths = [
        str(file["path"])
        for file in run.record.get("inputs", ())
        if (file["stage"], file["input"]) == (stage.name, name)
    ]
    if len(paths) <= _FILES_NAMED:
        return f"{name}: {', '.join(paths)}" if paths else ""
    return f"{name}: {len(paths):,} files, {paths[0]} to {paths[-1]}"


def account_in_words(name: str, account: Mapping[str, int], *, missed: bool) -> str:
    """How many rows of an input were used, and what became of the others.

    Args:
        name: The input.
        account: Its rows by status, and `rows_in`.
        missed: Whether rows without a finite score count, as below every threshold.
    """
    counted = _WITHOUT_SCORE if missed else ()
    others = {status: number for status, number in account.items() if status not in {"used", "rows_in"} and number}
    left_out = [f"{number:,} {status}" for status, number in sorted(others.items()) if status not in counted]
    below = [f"{number:,} {status}" for status, number in sorted(others.items()) if status in counted]
    words = f"{name}: {account.get('used', 0):,} of {account['rows_in']:,} rows used"
    words += f"; left out: {', '.join(left_out)}" if left_out else ""
    return words + (f"; counted as below every threshold: {', '.join(below)}" if below else "")


def bindings_of(run: PublishedRun, stage: PublishedStage) -> dict[str, str]:
    """What every field that is read comes from, by input."""
    words: dict[str, list[str]] = {}
    for name, binding in run.record.get("bindings", {}).get(stage.name, {}).items():
        input_name, _, field_name = name.partition(".")
        origin = binding["source"]
        if origin != "absent":
            column = binding.get("column") or binding.get("sql") or ""
            same = f"{field_name} ({origin})" if origin == "named" else f"{field_name} = {column} ({origin})"
            words.setdefault(input_name, []).append(same)
    return {name: ", ".join(fields) for name, fields in words.items()}


def deciding_parameters(run: PublishedRun, stage: PublishedStage, decides: tuple[str, ...]) -> dict[str, Any]:
    """What decides the numbers: the keys that the stage names, and all others that differ from their defaults.

    A key that is not set has the value that the stage chose by itself, where the run record tells it.
    """
    inputs = {contract.name for contract in stage.stage.inputs}
    fields = stage.stage.parameters.model_fields
    defaults = {name: _plain(field.get_default(call_default_factory=True)) for name, field in fields.items()}
    facts = run.record.get("facts", {}).get(stage.name, {})
    return {
        name: facts.get(name) if value is None else value
        for name, value in stage.parameters.items()
        if name not in inputs
        and name not in _NOT_SHOWN
        and (name in decides or value != defaults.get(name))
        and (value is not None or name in decides)
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - a default of any type
    """A default as JSON would hold it."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value
