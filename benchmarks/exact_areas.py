"""The exact areas of a Parquet file of predictions, and nothing else of the stage.

python benchmarks/exact_areas.py FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import sqlglot.expressions as exp

from pipeline.base.interrupts import StopRequest
from pipeline.base.schemas import Grouping
from pipeline.engines.duckdb import DuckDB
from pipeline.engines.engine import Resources
from pipeline.plan.accounting import begin, run_nodes
from pipeline.plan.area_work import Areas, areas
from pipeline.plan.nodes import Phase
from pipeline.runs.config import parse_config
from pipeline.runs.opening import open_inputs


def main() -> None:
    """Count the labels, which a run knows from its counts, and put the rows in order."""
    path = Path(sys.argv[1]).resolve()
    stage = {"kind": "threshold_sweep", "predictions": str(path)}
    config = parse_config({"stages": [stage]}, base=path.parent, origin="benchmark")
    params, plan = config.stages[0].params, open_inputs(config, config.stages[0]).plan
    with DuckDB(Resources(), [path.parent], StopRequest()) as engine:
        run_nodes(engine, params, plan, begin(params, plan), Phase.RELATIONS, Phase.RELATIONS)
        labels = ("count_if(label) AS n_positive", "count_if(NOT label) AS n_negative")
        query = exp.select("'all' AS grouping", *labels, dialect="duckdb").from_("predictions_read")
        counts = engine.fetch(query).with_columns(
            pl.lit(0).alias(name)
            for name in (
                "replicate",
                "weight_positive",
                "weight_negative",
                "n_weighted_positive",
                "n_weighted_negative",
            )
        )
        asked = next(node for node in plan.nodes if isinstance(node, Areas))
        print(areas(engine, asked, [Grouping(())], [], counts))


if __name__ == "__main__":
    main()
