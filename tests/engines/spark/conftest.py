"""One Spark on this machine for all tests of this folder that a process runs."""

from __future__ import annotations

import os

import pytest

from pipeline.base.errors import ConfigError
from pipeline.engines.spark_session import SparkSettings, check_spark

SMALL_DATA = {  # a job of a few rows is faster without all that pays for many
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.adaptive.enabled": False,
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # likewise of Java, whose compiled code must have room: it is thrown away and compiled again where it fills up
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
}


@pytest.fixture(scope="session")
def spark_settings() -> SparkSettings:
    """Where Spark runs in tests; they are skipped where it cannot."""
    settings = SparkSettings(master="local[2]", options=SMALL_DATA)
    try:
        check_spark(settings)
    except ConfigError as error:
        if "THRESHER_SPARK" in os.environ:  # where they must not be skipped
            raise
        pytest.skip(f"no Spark here: {error.message}")
    return settings
