"""The nightly run as an Airflow DAG: tried again only where that can help, skipped while another run is at work."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta, timezone

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

COMMAND = ["/srv/news/.venv/bin/thresher", "--log-format", "json", "run", "/srv/news/nightly.toml"]
SKIP = {75}  # as skip_on_exit_code of a BashOperator
NO_RETRY = {2, 3, 65, 70, 77, 78}


@dag(
    dag_id="thresher_nightly",
    schedule="15 3 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
)
def thresher_nightly() -> None:
    @task(retries=3, retry_delay=timedelta(minutes=10), execution_timeout=timedelta(hours=4))
    def thresher() -> str:
        """Return the path of the published run; the log of the task holds the lines of stderr."""
        done = subprocess.run(COMMAND, stdout=subprocess.PIPE, text=True, check=False)
        words = f"thresher ended with exit code {done.returncode}"
        if done.returncode in SKIP:
            raise AirflowSkipException(words)
        if done.returncode in NO_RETRY:
            raise AirflowFailException(words)
        if done.returncode:
            raise AirflowException(words)
        return done.stdout.strip()

    thresher()


thresher_nightly()
