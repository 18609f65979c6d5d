"""Data of the benchmarks, made by seed: the same sizes give the same rows, on any machine, in little memory.

`pairs.parquet` holds scored event-article pairs: every article is compared with 25 events.

| column       | type   | values                                                                                    |
|--------------|--------|-------------------------------------------------------------------------------------------|
| `event_id`   | BIGINT | 0 … 199,999, in no order                                                                  |
| `article_id` | BIGINT | row number // 25; (event_id, article_id) never repeats                                    |
| `score`      | DOUBLE | gamma(2, 3); one pair in fifty after its event has gamma(9, 3) added: a true match        |
| `lag_hours`  | DOUBLE | uniform from -168 to 72                                                                   |
| `source`     | string | 40 values; the source of the event                                                        |

`events.parquet` has one row per event: `event_id`, `source`, `n_before`, `n_after` (its rows in pairs, by the sign of
the lag). Parquet with zstd and row groups of one million rows, one of which is in memory at a time.

`predictions.parquet` holds labelled predictions, all scores distinct but for chance, one in twenty positive:

| column       | type    | values                                                                                   |
|--------------|---------|------------------------------------------------------------------------------------------|
| `score`      | DOUBLE  | logistic of a normal deviate, with mean 1 for positives and -1.5 for negatives           |
| `label`      | BOOLEAN | true with probability 0.05                                                               |
| `cluster`    | BIGINT  | row number // 50                                                                         |
| `document`   | BIGINT  | row number // 500                                                                        |

`ranking.parquet` holds rankings of 1,000 documents for each query, `relevance.parquet` 24 judged ones of each query:

| column       | type    | values                                                                                   |
|--------------|---------|------------------------------------------------------------------------------------------|
| `query_id`   | string  | row number // 1000                                                                       |
| `doc_id`     | string  | 1,000 different numbers below 10 million                                                 |
| `score`      | DOUBLE  | uniform, with 6 digits; ties happen; 0.3 is added to relevant documents                  |
| `relevance`  | BIGINT  | 1 for 10 retrieved documents and 2 others, 0 for 10 retrieved documents and 2 others     |

`timeline_events.parquet` (`event_id`, `event_time`) and `timeline_articles.parquet` (`article_id`, `article_time`) are
points in time over three years, in no order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    Columns = list[pa.Array | NDArray[np.generic]]

SEED = 20240101
GENERATION = 1
GENERATION_OF_PREDICTIONS = 2
ROW_GROUP = 1_000_000
EVENTS = 200_000
SOURCES = 40
EVENTS_PER_ARTICLE = 25
STRIDE = 7919
BEFORE_HOURS, AFTER_HOURS = 168.0, 72.0
MATCHED = 0.02
POSITIVE = 0.05
ROWS_PER_CLUSTER, ROWS_PER_DOCUMENT = 50, 500
DOCUMENTS, JUDGED, OUTSIDE = 1_000, 10, 2
YEARS_IN_HOURS = 3 * 365 * 24
FIRST_HOUR = 1_704_067_200_000_000  # 1 January 2024 UTC, in microseconds

PAIRS_SCHEMA = pa.schema(
    [
        ("event_id", pa.int64()),
        ("article_id", pa.int64()),
        ("score", pa.float64()),
        ("lag_hours", pa.float64()),
        ("source", pa.string()),
    ]
)


@dataclass(frozen=True)
class PairFiles:
    """Paths of the pairs and events of one size."""

    folder: Path
    rows: int

    @property
    def pairs(self) -> Path:
        """Scored pairs."""
        return self.folder / "pairs.parquet"

    @property
    def events(self) -> Path:
        """Events of the pairs."""
        return self.folder / "events.parquet"


@dataclass(frozen=True)
class Timelines:
    """Paths of points in time of one size."""

    folder: Path
    n_events: int
    n_articles: int

    @property
    def events(self) -> Path:
        """Events with their times."""
        return self.folder / "timeline_events.parquet"

    @property
    def articles(self) -> Path:
        """Articles with their times."""
        return self.folder / "timeline_articles.parquet"


def pairs_of(root: Path, rows: int) -> PairFiles:
    """Pairs and events of a size, made if they are not there."""
    files = PairFiles(root / f"pairs_{rows}", rows)

    def write() -> None:
        sources = np.random.default_rng([SEED, 0]).integers(0, SOURCES, EVENTS, dtype=np.int8)
        before, after = _write_pairs(files, sources)
        numbers = {"event_id": np.arange(EVENTS, dtype=np.int64), "source": _names(sources)}
        events = pa.table(numbers | {"n_before": before, "n_after": after})
        pq.write_table(events, files.events, compression="zstd", row_group_size=ROW_GROUP)

    _make(files.folder, write, rows=rows)
    return files


def predictions_of(root: Path, rows: int) -> Path:
    """Labelled predictions of a size, made if they are not there."""
    path = root / f"predictions_{rows}" / "predictions.parquet"
    schema = pa.schema(
        [("score", pa.float64()), ("label", pa.bool_()), ("cluster", pa.int64()), ("document", pa.int64())]
    )

    def columns(start: int, number: int) -> Columns:
        rng = np.random.default_rng([SEED, 3, start])
        label = rng.random(number) < POSITIVE
        score = 1 / (1 + np.exp(-np.where(label, 1.0, -1.5) - rng.normal(size=number)))
        row = np.arange(start, start + number, dtype=np.int64)
        return [score, label, row // ROWS_PER_CLUSTER, row // ROWS_PER_DOCUMENT]

    _make(path.parent, lambda: _write(path, schema, rows, columns), generation=GENERATION_OF_PREDICTIONS, rows=rows)
    return path


def items_of(root: Path, rows: int) -> Path:
    """Scored items of a size without labels, with a number and a text as id, made if they are not there."""
    path = root / f"items_{rows}" / "items.parquet"
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("score", pa.float64())])

    def columns(start: int, number: int) -> Columns:
        rng, row = np.random.default_rng([SEED, 4, start]), pa.array(np.arange(start, start + number, dtype=np.int64))
        names = pc.binary_join_element_wise("item", pc.cast(row, pa.string()), "-")
        return [row, names, 1 / (1 + np.exp(4 - 2 * rng.normal(size=number)))]

    _make(path.parent, lambda: _write(path, schema, rows, columns), rows=rows)
    return path


def rankings_of(root: Path, rows: int) -> tuple[Path, Path]:
    """A ranking and its relevance of a size, made if they are not there."""
    ranking, relevance = (root / f"rankings_{rows}" / f"{name}.parquet" for name in ("ranking", "relevance"))
    keys = [("query_id", pa.string()), ("doc_id", pa.string())]
    ranked, judged = (pa.schema([*keys, last]) for last in (("score", pa.float64()), ("relevance", pa.int64())))

    def write() -> None:
        _write(ranking, ranked, rows, lambda start, number: _rankings(start, number)[0])
        _write(relevance, judged, rows, lambda start, number: _rankings(start, number)[1])

    _make(ranking.parent, write, rows=rows)
    return ranking, relevance


def _rankings(start: int, rows: int) -> tuple[list[pa.Array], list[pa.Array]]:
    """Columns of ranking and relevance of some queries; the first documents of a query are the judged ones."""
    rng = np.random.default_rng([SEED, 4, start])
    query, rank = np.divmod(np.arange(start, start + rows, dtype=np.int64), DOCUMENTS)
    doc = (query * STRIDE + rank * 9_973) % 10_000_000
    score = np.round(rng.random(rows) + 0.3 * (rank < JUDGED), 6)
    inside = rank < 2 * JUDGED
    queries = np.unique(query)
    outside = np.tile(np.arange(2 * OUTSIDE, dtype=np.int64), len(queries))
    names = np.concatenate([query[inside], np.repeat(queries, 2 * OUTSIDE)])
    documents = np.concatenate([doc[inside], 10_000_000 + outside])
    relevance = np.concatenate([rank[inside] < JUDGED, outside < OUTSIDE]).astype(np.int64)
    return [_text(query), _text(doc), pa.array(score)], [_text(names), _text(documents), pa.array(relevance)]


def _text(numbers: NDArray[np.int64]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def timelines_of(root: Path, n_events: int, n_articles: int) -> Timelines:
    """Times of events and articles of a size, made if they are not there."""
    files = Timelines(root / f"timelines_{n_events}_{n_articles}", n_events, n_articles)

    def write() -> None:
        rng = np.random.default_rng([SEED, 2])
        for path, name, number in ((files.events, "event", n_events), (files.articles, "article", n_articles)):
            hours = rng.uniform(0.0, YEARS_IN_HOURS, number)
            times = pa.array(FIRST_HOUR + (hours * 3.6e9).astype(np.int64), pa.timestamp("us", tz="UTC"))
            table = pa.table({f"{name}_id": np.arange(number, dtype=np.int64), f"{name}_time": times})
            pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP)

    _make(files.folder, write, n_events=n_events, n_articles=n_articles)
    return files


def _write_pairs(files: PairFiles, sources: NDArray[np.int8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Write the pairs, one row group at a time; returns the rows before and after every event."""
    before, after = np.zeros(EVENTS, dtype=np.int64), np.zeros(EVENTS, dtype=np.int64)

    def columns(start: int, number: int) -> Columns:
        rng = np.random.default_rng([SEED, 1, start])
        article, number_of_pair = np.divmod(np.arange(start, start + number, dtype=np.int64), EVENTS_PER_ARTICLE)
        first = rng.integers(0, EVENTS, number // EVENTS_PER_ARTICLE + 2, dtype=np.int64)
        event = (first[article - article[0]] + number_of_pair * STRIDE) % EVENTS
        lag = rng.uniform(-BEFORE_HOURS, AFTER_HOURS, number)
        matched = (lag >= 0) & (rng.random(number) < MATCHED)
        score = rng.gamma(2.0, 3.0, number)
        score[matched] += rng.gamma(9.0, 3.0, int(matched.sum()))
        before[:] += np.bincount(event[lag < 0], minlength=EVENTS)
        after[:] += np.bincount(event[lag >= 0], minlength=EVENTS)
        return [event, article, score, lag, _names(sources[event])]

    _write(files.pairs, PAIRS_SCHEMA, files.rows, columns, use_dictionary=["source"])
    return before, after


def _names(sources: NDArray[np.int8]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(sources, [f"source_{number:02}" for number in range(SOURCES)]).cast(
        pa.string()
    )


def _make(folder: Path, write: Callable[[], None], *, generation: int = GENERATION, **sizes: int) -> None:
    """Make the files of a folder, unless it says that it has those of these sizes."""
    stamp, facts = folder / "made.json", {"generation": generation, "seed": SEED, **sizes}
    if not stamp.is_file() or json.loads(stamp.read_text()) != facts:
        folder.mkdir(parents=True, exist_ok=True)
        write()
        stamp.write_text(json.dumps(facts))


def _write(
    path: Path,
    schema: pa.Schema,
    rows: int,
    columns: Callable[[int, int], Columns],
    *,
    use_dictionary: bool | list[str] = True,
) -> None:
    """Write a file in row groups, one of which is in memory at a time, from the first row and the number of each."""
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=use_dictionary) as writer:
        for start in range(0, rows, ROW_GROUP):
            table = pa.table(columns(start, min(ROW_GROUP, rows - start)), schema=schema)
            writer.write_table(table, row_group_size=ROW_GROUP)
