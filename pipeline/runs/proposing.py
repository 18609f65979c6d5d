"""`thresher init --from`: a config proposed from files, for people to read; what it guesses it says."""

from __future__ import annotations

import json
import math
import re
import shlex
from contextlib import suppress
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from ..base.errors import UsageError
from ..base.visible_text import cleaned
from ..sources.bindings import USUAL
from ..sources.inputs import tags_in_words
from ..sources.types import TEXTS as ARROW_TEXTS
from ..sources.types import in_expression
from ..sources.unnesting import ROW
from .found_files import (
    BY_VALUES,
    ID,
    INVALID_SCORES,
    MOST_DIGITS,
    OF_KEYS,
    SCORE,
    SCORED,
    TAGS,
    UNNEST,
    Found,
    look_at_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from ..sources.inputs import Field, Format, InputContract
    from ..stages.stage import Stage

    Files: TypeAlias = dict[str, Found]  # by the input that each is
    Fields: TypeAlias = dict[str, tuple[str, float]]  # column, and how well it fits, by field
    Bindings: TypeAlias = dict[str, Fields]  # by input

STEPS = 100
_BY = "#   by = "
USUAL_GROUPS = (
    *("system", "model", "method", "classifier", "matcher", "dataset", "source", "language", "lang"),
    *("type", "category", "class", "domain", "country", "region", "split", "group"),
)
SELDOM_GROUPS = re.compile(
    r"(?i)q0|from_name|to_name|iteration|text|title|url|link|comment|.*_?id|doc(ument)?|name|date|time|day"
)


def propose(
    stages: Sequence[Stage],
    paths: Sequence[str],
    base: Path,
    *,
    delimiter: str | None = None,
    format_: Format | None = None,
) -> str:
    """Write a config for some files, TOML with a comment on everything that was guessed.

    Args:
        stages: The task; or several, of which the files must be enough for one alone.
        paths: Files, folders or patterns; `input=path` says which input one is.
        base: Folder that relative paths start from.
        delimiter: What separates the columns of its CSV files; None: guessed for each from its header.
        format_: Format of the files; None: by their endings, or for other endings by their first lines.

    Raises:
        UsageError: an input is unknown, or files fit no input, or more than one task.
        NoInputError: a file does not exist.
        DataError: a file cannot be read.
    """
    look_at = cache(partial(look_at_file, base=base, delimiter=delimiter, format_=format_))
    by_values = cache(lambda path: replace(look_at(path), by_values=True))
    if len(stages) == 1 and any(path.partition("=")[0] in _brought(stages[0]) for path in paths if "=" in path):
        of_sample = _of_sample(stages[0], ())
        return _config_of(of_sample, _assigned(of_sample, paths, by_values), paths)
    try:
        return _config_of(*_task_of(stages, paths, look_at), paths)
    except UsageError:
        with suppress(UsageError):
            return _config_of(*_task_of(stages, paths, by_values), paths)
        if len(stages) == 1 or any(look_at(path).fields(SCORED) for path in paths):
            for stage in stages:
                with suppress(UsageError):
                    of_sample = _of_sample(stage, map(look_at, paths))
                    files = _assigned(of_sample, paths, by_values)
                    if all(each.name in files for each in of_sample.inputs if each.required):
                        return _config_of(of_sample, files, paths)
        raise


def _of_sample(stage: Stage, files: Iterable[Found]) -> Stage:
    """A task whose primary input lacks what another input brings by `id`: labels of a sample.

    A UsageError says that no input brings it, or that a file has a column that is called so, whatever it holds.
    """
    brought = [field for field in stage.inputs[0].fields if field.given_by]
    if not brought or any(file.is_called(field) for file in files for field in brought):
        message = f"rows of {stage.kind} are to have what it needs"
        raise UsageError(message)
    primary = stage.inputs[0].beside(_brought(stage))
    with_id = tuple(replace(field, required=True) if field.name == ID else field for field in primary.fields)
    return replace(stage, inputs=(replace(primary, fields=with_id), *stage.inputs[1:]))


def _brought(stage: Stage) -> set[str]:
    """The inputs that bring what the primary input may lack."""
    return {field.given_by for field in stage.inputs[0].fields if field.given_by}


def _task_of(
    stages: Sequence[Stage], paths: Sequence[str], look_at: Callable[[str], Found]
) -> tuple[Stage, dict[str, Found]]:
    """The task, and which of its inputs each file is."""
    stage = stages[0] if len(stages) == 1 else _only_task(stages, paths, look_at)
    return stage, _assigned(stage, paths, look_at)


def _config_of(stage: Stage, files: Files, paths: Sequence[str]) -> str:
    """The config of a task whose files are known."""
    bindings = {name: file.fields(_contract(stage, name)) for name, file in files.items()}
    alignment = list(_alignment(stage, bindings))
    lines = [
        f"# Proposed by thresher init {stage.kind} {cleaned(' '.join(paths), layout='')}",
        "# Names and ranges are guesses: read every line, then run thresher check on this file.",
        "",
        'output = "results"',
        "",
        "[[stages]]",
        f'kind = "{stage.kind}"',
    ]
    for contract in stage.inputs:
        if contract.name in files:
            lines += ["", *_input(contract, files[contract.name], bindings[contract.name])]
        elif contract.required:
            lines += ["", f"# {contract.name} is required and no file fits it: {contract.meaning}"]
            lines.append(f'#{contract.name} = "…"')
    # people label a sample of rows that have an id
    if "labels" not in files and any(field.name == ID and field.required for field in stage.inputs[0].fields):
        lines += [
            "",
            "# no column is a label: people may label a sample, such as this draws from the config my.toml,",
            "#   thresher sample my.toml --size 1000 --to sheet.csv",
            "# and fill in the column label of the sheet, from the top; see docs/sample.md",
            'labels = "sheet.csv"',
        ]
    if "by" in stage.parameters.keys() and not any(line.startswith(_BY) for line in lines):  # noqa: SIM118 - as below
        lines += [
            "",
            '# no column looks like one to group by; of a column "g", by = ["g"] gives the total and each value,',
        ]
        lines += ['# by = [["g"]] these alone, and by = [[], ["g"], ["h"]] the total and those of each of two columns']
    lines += _by_that_tells_apart(stage, files, bindings)
    lines += ["", *alignment, *_thresholds(stage, files, bindings), *_window(stage, files, bindings)]
    lines += [*_margin(stage, files, bindings), *_invalid_scores(stage, files, bindings)]
    lines += _required(stage, {*files, "thresholds", "window", "margin"})
    return "\n".join(lines) + "\n"


def _only_task(stages: Sequence[Stage], paths: Sequence[str], look_at: Callable[[str], Found]) -> Stage:
    """The task that files are enough for; a UsageError says that there is none, or several."""
    enough = []
    for stage in stages:
        with suppress(UsageError):
            files = _assigned(stage, paths, look_at)
            enough += [] if any(each.required and each.name not in files for each in stage.inputs) else [stage]
    if len(enough) == 1:
        return enough[0]
    written = shlex.join(word for path in paths for word in ("--from", path))
    if enough:
        message = f"the files are enough for {' and '.join(stage.kind for stage in enough)}"
        raise UsageError(message, remedy=f"Name the task: thresher init {enough[0].kind} {written}")
    message = f"the files are enough for none of the tasks {', '.join(stage.kind for stage in stages)}"
    files_alone = shlex.join(path.partition("=")[2] or path for path in paths)
    raise UsageError(message, remedy=f"thresher doctor {files_alone} says what is missing for each.")


def diagnose(
    stages: Iterable[Stage], paths: Sequence[str], base: Path, delimiter: str | None, format_: Format | None
) -> str:
    """Say what files hold, what they are enough for, and what else other tasks would need.

    Raises:
        ThresherError: as `propose`, but for files that fit nothing.
    """
    files = [look_at_file(path, base, delimiter, format_) for path in paths]
    lines = [line for file in files for line in _seen(file)]
    enough, lacking = [], []
    for stage in stages:
        fitting, _ = _fitting(stage, files)
        required = [contract for contract in stage.inputs if contract.required]
        missing = [contract for contract in required if contract.name not in fitting]
        named = [f"{name} = {files[number].best(_contract(stage, name)).written}" for name, number in fitting.items()]
        if fitting and not missing:
            words = " ".join(f"--from {name}={files[number].written}" for name, number in fitting.items())
            enough += [f"  {stage.kind}: {', '.join(named)}", f"    thresher init {stage.kind} {words} > my.toml"]
            continue
        enough += _enough_for_sample(stage, files)
        if needs := [
            need for contract in missing for need in _needs(contract, files, has_others=len(missing) < len(required))
        ]:
            lacking += [f"  {stage.kind}{': ' if named else ''}{', '.join(named)}", *needs]
    lines += ["", "They are enough for", *enough] if enough else ["", "They are enough for no task."]
    return "\n".join(lines + (["", "More would be needed for", *lacking] if lacking else [])) + "\n"


def _enough_for_sample(stage: Stage, files: Sequence[Found]) -> list[str]:
    """A hint that the files are enough once people have labelled a sample; nothing if they are not."""
    with suppress(UsageError):
        primary = (of_sample := _of_sample(stage, files)).inputs[0]
        for file in files:
            if file.fields(SCORED) and replace(file, by_values=True).fit(primary)[0] > 0:
                words = f"{primary.name}={file.written}"
                return [
                    f"  {stage.kind}, once a sample is labelled: {primary.name} = {file.written}",
                    f"    thresher init {of_sample.kind} --from {words} > my.toml",
                ]
    return []


def _seen(file: Found) -> Iterator[str]:
    """A file's content: rows, columns with their types, and how its lines are written."""
    yield f"{file.written}: {file.rows:,} {'row' if file.rows == 1 else 'rows'}"
    columns = (f"{_text(field.name)} {field.type if file.typed else 'text'}" for field in file.file.schema)
    yield f"  columns: {', '.join(columns)}"
    settings = ", ".join(f"{key} = {_text(value)}" for key, value in file.keys.items())
    if settings:
        yield f"  as its first lines are written: {settings}"


def _needs(contract: InputContract, files: Sequence[Found], *, has_others: bool) -> Iterator[str]:
    """The missing parts of an input, where other inputs are there or at least half of its required columns."""
    required = [field for field in contract.fields if field.required]
    lacking = [[field for field in required if field.name not in file.fields(contract)] for file in files]
    fewest = min(lacking, key=len, default=required)
    if fewest and 2 * len(fewest) <= len(required):
        nearest = files[lacking.index(fewest)].written
        for field in fewest:
            yield f"    {contract.name} = {nearest} lacks {field.name}: {field.meaning}"
    elif has_others:
        yield f"    {contract.name} is missing: {contract.meaning}"


def _contract(stage: Stage, name: str) -> InputContract:
    return next(contract for contract in stage.inputs if contract.name == name)


def _assigned(stage: Stage, paths: Sequence[str], look_at: Callable[[str], Found]) -> Files:
    """Which input each file is: as it was said, else the one that its columns fit best, no two the same."""
    names = [contract.name for contract in stage.inputs]
    files: Files = {}
    undecided = []
    for path in paths:
        name, equals, named_path = path.partition("=")
        if equals and name in names:
            files[name] = look_at(named_path)
        else:
            undecided.append(look_at(path))
    fitting, placed = _fitting(stage, undecided, files)
    files |= {name: undecided[number] for name, number in fitting.items()}
    for number, file in enumerate(undecided):
        if number not in placed:
            message = f"the columns of {file.written} fit no input of {stage.kind} that has no file yet"
            columns = ", ".join(file.file.schema.names[:12])
            remedy = f"Its columns are: {columns}. Say which input it is: --from {_written(names)}={file.written}."
            remedy += tags_in_words(file.file, names[0])
            raise UsageError(message, remedy=remedy)
    return {name: file.best(_contract(stage, name)) for name, file in files.items()}


def _fitting(stage: Stage, files: Sequence[Found], taken: Iterable[str] = ()) -> tuple[dict[str, int], set[int]]:
    """Which file is which input, those that fit best first; and the numbers of those files.

    No two are the same, unless a file has several lists of tags, such as those of gold and those of predictions. Inputs
    that are taken have a file already.
    """
    fits = sorted(
        (-file.best(contract).fit(contract)[0], order, number)
        for order, contract in enumerate(stage.inputs)
        for number, file in enumerate(files)
    )
    names = [contract.name for contract in stage.inputs]
    fitting: dict[str, int] = {}
    placed: dict[int, set[str]] = {}  # with the lists of tags that are taken
    for negative, order, number in fits:
        if not order and len(files[number].best(stage.inputs[0]).fields(stage.inputs[0])) == 1:
            continue  # a key alone: nothing to evaluate
        if negative < 0 and names[order] not in (*fitting, *taken):
            tags = files[number].best(stage.inputs[order]).keys.get(TAGS, "")
            if number not in placed or (tags and tags not in placed[number]):
                fitting[names[order]] = number
                placed.setdefault(number, set()).add(tags)
    if _brought(stage) and names[0] not in (*fitting, *taken):
        return {}, set()  # what brings labels is of no use alone
    return fitting, set(placed)


def _written(names: Sequence[str]) -> str:
    """The name of the only input, or of any of several as usage lines write a choice."""
    return names[0] if len(names) == 1 else f"{{{'|'.join(names)}}}"


def _input(contract: InputContract, file: Found, fields: Fields) -> Iterator[str]:
    yield f"# {contract.name}: {contract.meaning}; {file.rows:,} {'row' if file.rows == 1 else 'rows'}"
    for field in contract.fields:
        yield from _field(field, file, fields.get(field.name))
    unfit = [name for name, word in file.called.items() if not word and contract.field(name) is not None]
    used = {column for column, _ in fields.values()}
    unused = [name for name in file.file.schema.names if name not in (*used, *unfit) and not name.endswith(ROW)]
    if unused:
        yield f"#   in no role: {', '.join(map(_text, unused))}"
        yield from _groups(unused, file)
    mapping: dict[str, str | bool] = {
        field.name: fields[field.name][0]
        for field in contract.fields
        if field.name in fields and (fields[field.name][0] != field.name or field.mapped_only)
    }
    for name in unfit:
        if name not in mapping:
            yield f"#   {_text(name)} stands beside the list, so it is not the {name} of an element"
            mapping[name] = False
    if ID in fields and contract.field(ID) is not None:  # read only where it is mapped
        column = fields[ID][0]
        if file.repeats(column):
            mapping.pop(ID, None)
            yield f"#   {_text(column)} repeats and is not mapped: group by what tells its rows apart, or set cluster"
        else:
            mapping[ID] = column
    yield from _written_input(contract, file, fields, mapping)


def _written_input(
    contract: InputContract, file: Found, fields: Fields, mapping: dict[str, str | bool]
) -> Iterator[str]:
    """The line of an input, below what is said of its keys."""
    columns = ", ".join(f"{name} = {column}" for name, column in _columns(contract, file, fields, mapping).items())
    keys = file.keys
    if len(keys.get(UNNEST, ())) == 1:  # a single list that is unnested is a name alone
        keys = keys | {UNNEST: keys[UNNEST][0]}
    settings = [f"{key} = {_text(value)}" for key, value in keys.items()]
    written = [setting for setting in settings if not setting.startswith((f"{UNNEST} = ", f'{TAGS} = "'))]
    if written:
        yield f"#   as its first lines are written: {', '.join(written)}"
    if isinstance(file.keys.get(TAGS), str):
        yield f"#   each row of the file is a sentence, and the tags in {_text(file.keys[TAGS])} make its mentions"
    if UNNEST in file.keys:
        within = " of ".join(map(_text, reversed(file.keys[UNNEST])))
        yield f"#   each element of {within} is a row, with the columns that stand beside the list"
        if fields.get("doc_id", ("", 0.0))[0].endswith(ROW):
            yield "#   each row of the file is taken for a document, in the order of the file"
    items = [f"path = {_text(file.written)}", *settings]
    if conditions := list(_conditions(contract, file, fields)):
        yield "#   where leaves out rows without a value that every row must have"
        items.append(f"where = {_text(' AND '.join(conditions))}")
    text = ", ".join([*items, f"columns = {{ {columns} }}"] if columns else items)
    yield f"{contract.name} = {{ {text} }}"


def _columns(contract: InputContract, file: Found, fields: Fields, mapping: dict[str, str | bool]) -> dict[str, str]:
    """The mapping `columns` as TOML: names of columns, false, and expressions where text means something else."""
    written = {name: _text(column) for name, column in mapping.items()}
    for field in contract.fields:
        if field.name in fields and mapping.get(field.name, True):
            expression = file.expression(fields[field.name][0], field.kind)
            written |= {field.name: f"{{ sql = {_text(expression)} }}"} if expression else {}
    return written


def _conditions(contract: InputContract, file: Found, fields: Fields) -> Iterator[str]:
    """The condition of rows that have everything required; scores have a key of their own."""
    for field in contract.fields:
        if not field.required or field.name == SCORE or field.name not in fields:
            continue
        column = fields[field.name][0]
        if file.has_gaps(column):
            name = in_expression(column)
            yield f"{name} IN (0, 1)" if file.is_zero_or_one(column, field.kind) else f"{name} IS NOT NULL"


def _invalid_scores(stage: Stage, files: Files, bindings: Bindings) -> Iterator[str]:
    """The treatment of rows without a score, where the primary input has some."""
    name = stage.inputs[0].name
    column = bindings.get(name, {}).get(SCORE, ("", 0.0))[0]
    if INVALID_SCORES in stage.parameters.keys() and column and files[name].has_invalid(column):  # noqa: SIM118
        yield '# some rows have no score: "drop" leaves them out, "missed" counts them as below every threshold'
        yield f'{INVALID_SCORES} = "drop"'


def _groups(unused: Sequence[str], file: Found) -> Iterator[str]:
    """Say what results can be grouped by, likely columns first, and in which forms."""
    groups = _likely_groups(unused, file)
    if groups:
        first, *more = map(_text, groups)
        yield f"{_BY}[{first}] gives the total and results for each value of {first}, by = [[{first}]] these alone"
        if more:
            yield f"#   by = [[], [{first}], [{more[0]}]] gives the total and each of the two"


def _likely_groups(unused: Iterable[str], file: Found) -> list[str]:
    """Columns of text whose values repeat, those first that are called as groups are."""
    texts = [name for name in unused if name and str(file.file.schema.field(name).type) in ARROW_TEXTS]
    likely = [name for name in texts if name.lower() in USUAL_GROUPS]
    others = [name for name in texts if name not in likely and not SELDOM_GROUPS.fullmatch(name)]
    likely.sort(key=lambda name: USUAL_GROUPS.index(name.lower()))
    return [name for name in (*likely, *others) if file.repeats(name)]


def _by_that_tells_apart(stage: Stage, files: Files, bindings: Bindings) -> Iterator[str]:
    """`by`, where rows of the primary input repeat unless one column tells them apart, such as that of systems."""
    primary = stage.inputs[0]
    if primary.name not in files or "by" not in stage.parameters.keys():  # noqa: SIM118 - as above
        return
    file, fields = files[primary.name], bindings[primary.name]
    used = {column for column, _ in fields.values()}
    keys = [fields[each.name][0] for each in primary.fields if each.name in fields and each.kind in OF_KEYS]
    if ID in fields or not keys or not file.repeats(*keys):
        return
    unused = [name for name in file.file.schema.names if name not in used]
    column = next((name for name in _likely_groups(unused, file) if not file.repeats(*keys, name)), None)
    if column is not None:
        yield from ("", f"# rows repeat {' and '.join(map(_text, keys))} unless {_text(column)} tells them apart")
        yield f"by = [[{_text(column)}]]"


def _field(field: Field, file: Found, binding: tuple[str, float] | None) -> Iterator[str]:
    if binding is None:
        if field.required:
            yield f'#   {field.name}: NO COLUMN FITS ({field.meaning}); map one: columns = {{ {field.name} = "…" }}'
        return
    column, likeness = binding
    doubt = "" if likeness > USUAL else "GUESSED from its name: " if likeness > 1 else "GUESSED from a like name: "
    doubt = "GUESSED from its values: " if likeness == BY_VALUES else doubt
    if field.mapped_only:
        doubt = "CHANGES EVERY NUMBER, keep it only if it is meant: "
    kind = f"{file.file.schema.field(column).type}, " if file.typed else ""
    example = file.example(column)
    shown = "without a value" if example is None else f"for example {_text(example)}"
    yield f"#   {field.name} ({field.meaning}): {doubt}{_text(column)}, {kind}{shown}"
    if field.kind == "boolean" and (true_class := file.class_that_is_true(column)) and not file.cast(column, "boolean"):
        yield f"#   GUESSED: what is true is {_text(column)} = {true_class}; name the class that the score is of"


def _text(value: object) -> str:
    """A value as TOML writes it."""
    text = json.dumps(value if isinstance(value, str | int | float | bool | list) else str(value), ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")  # the one control character that JSON holds as it is


def _alignment(stage: Stage, bindings: Bindings) -> Iterator[str]:
    """The rule that aligns mentions, where the stage has one and its default does not fit the columns."""
    if "match" not in stage.parameters.keys() or len(bindings) < 2:  # noqa: SIM118, PLR2004 - gold and predicted
        return
    columns = [set(fields) for fields in bindings.values()]
    if all("mention_id" in names for names in columns):
        return
    rules = {"span": ("doc_id", "start", "end"), "text": ("doc_id", "text")}
    rule = next((rule for rule, needs in rules.items() if all(names.issuperset(needs) for names in columns)), None)
    if rule is not None and rule != stage.parameters.model_fields["match"].default:
        for fields in bindings.values():
            fields.pop("mention_id", None)
        needs = ", ".join(rules[rule])
        yield f"# no mention_id in both inputs: mentions are the same where {needs} are equal; see docs/{stage.kind}.md"
        yield f'match = "{rule}"'


def _thresholds(stage: Stage, files: Files, bindings: Bindings) -> Iterator[str]:
    """Even thresholds over the range of the scores, where the stage has thresholds and an input has scores."""
    if "thresholds" not in stage.parameters.keys():  # noqa: SIM118 - a method of its own
        return
    for name, file in files.items():
        if "score" not in bindings[name]:
            continue
        limits = file.limits(bindings[name]["score"][0])
        default = stage.parameters.model_fields["thresholds"].default
        if limits is None or not 0 < limits[1] - limits[0] < math.inf:
            if default != "distinct":
                yield "# the scores of the first file have no range: give the thresholds"
                yield "#thresholds = …"
            return
        low, high = _rounded(*limits)
        comment = "#" if default == "distinct" else ""
        yield f"# scores lie from {limits[0]:.6g} to {limits[1]:.6g} in the first file" + (
            '; the default, "distinct", takes every score' if comment else ""
        )
        yield f"{comment}thresholds = {{ start = {low!r}, stop = {high!r}, count = {STEPS + 1} }}"
        return


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Limits around a range, with the digits that a hundredth of it has."""
    with localcontext(prec=MOST_DIGITS):
        lowest, highest = Decimal(repr(low)), Decimal(repr(high))
        step = Decimal(1).scaleb((highest - lowest).adjusted() - 1)
        down, up = (lowest / step).to_integral(ROUND_FLOOR), (highest / step).to_integral(ROUND_CEILING)
        return float(down * step), float(up * step)


def _window(stage: Stage, files: Files, bindings: Bindings) -> Iterator[str]:
    """Whole days around the lags, where the stage has a window and an input has lags."""
    if "window" not in stage.parameters.keys():  # noqa: SIM118 - a method of its own
        return
    for name, file in files.items():
        for field, hours in (("lag_hours", 1.0), ("lag_days", 24.0)):
            limits = file.limits(bindings[name][field][0]) if field in bindings[name] else None
            if limits is None:
                continue
            before, after = (24 * max(1, math.ceil(abs(limit) * hours / 24)) for limit in limits)
            yield f"# lags lie from {limits[0]:.6g} to {limits[1]:.6g} ({field}) in the first file"
            yield f'window = {{ before = "{before}h", after = "{after}h" }}'
            return


def _margin(stage: Stage, files: Files, bindings: Bindings) -> Iterator[str]:
    """How near a detected point must be, where the stage asks: 5 places, a hundredth of the range, an hour or a day."""
    columns = [(file, bindings[name]["position"][0]) for name, file in files.items() if "position" in bindings[name]]
    if "margin" not in stage.parameters.keys() or not columns:  # noqa: SIM118 - a method of its own
        return
    file, column = columns[0]
    kind = str(file.file.schema.field(column).type)
    limits = None if kind.startswith(("date", "timestamp")) else file.limits(column)
    margin = '"1d"' if kind.startswith("date") else '"1h"'
    if limits is not None:
        are_whole = all(float(limit).is_integer() for limit in limits)
        margin = "5" if are_whole else f"{max(limits[1] - limits[0], 1) / 100:.1g}"
    yield "# GUESSED: a detected point this near to an annotated one is taken for it"
    yield f"margin = {margin}"


def _required(stage: Stage, written: set[str]) -> Iterator[str]:
    """Keys without a default, which only people can set."""
    inputs = {contract.name for contract in stage.inputs}
    for name, field in stage.parameters.model_fields.items():
        if field.is_required() and name not in {*written, *inputs, "name"}:
            yield f"# {name} has no default: see docs/{stage.kind}.md"
            yield f"#{name} = …"
