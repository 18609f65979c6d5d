"""Every specification is one that Vega-Lite knows: a word it does not know would be left out in silence."""

from __future__ import annotations

import altair as alt
import pytest

from pipeline.report.charts import chart, panels
from pipeline.report.pictures import picture_specification
from report.test_charts import ALL, FIGURE, OTHER_KINDS

FIGURES = {"line": FIGURE, **OTHER_KINDS}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", FIGURES)
def test_a_chart_has_the_schema_of_vega_lite(kind: str) -> None:
    alt.Chart.from_dict(chart(panels(FIGURES[kind]), ALL))


def test_a_picture_has_the_schema_of_vega_lite() -> None:
    alt.Chart.from_dict(picture_specification(panels(FIGURE), ALL, source="a run"))


def test_a_wrong_word_would_be_seen() -> None:
    wrong = chart(panels(FIGURE), ALL)
    wrong["layer"][0]["mark"]["strokeWidht"] = 2
    with pytest.raises(Exception, match="Failed validating"):
        alt.Chart.from_dict(wrong)
