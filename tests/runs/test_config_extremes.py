"""Values of a config that no person writes: they are refused in a short message all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cli.calls import call
from running import nested

from pipeline.base.errors import ConfigError
from pipeline.runs.config import load_config, parse_config

if TYPE_CHECKING:
    from pathlib import Path


def refusal(document: dict[str, Any], folder: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_config(document, base=folder)
    return str(raised.value)


@pytest.mark.parametrize("key", ["pairs", "by", "thresholds", "kind", "cluster"])
def test_a_value_that_is_nested_very_deeply_is_cut_in_the_message(tmp_path: Path, key: str) -> None:
    stage = {"kind": "before_after", "pairs": {"path": "p", "where": nested(500)}, "thresholds": [1], key: nested(500)}
    assert len(refusal({"stages": [stage]}, tmp_path)) < 1000


def test_of_thousands_of_faults_ten_are_told_with_their_number(tmp_path: Path) -> None:
    stage = {"kind": "before_after", "pairs": list(range(3000)), "thresholds": [1]}
    message = refusal({"stages": [stage]}, tmp_path)
    assert message.startswith("3,000 faults\n")
    assert "and 2,990 more faults" in message
    assert "pairs.9: 9 is not allowed" in message
    assert "pairs.10:" not in message


@pytest.mark.parametrize(
    "document",
    [
        {"output": "\ud800"},
        {"output": "a\0b"},
        {"pairs": {"path": "p", "columns": {"score": "\ud800"}}},
        {"pairs": {"path": "p", "columns": {"\ud800": "score"}}},
        {"pairs": {"path": "p", "where": "a = '\0'"}},
    ],
)
def test_text_that_no_file_can_hold_is_refused_with_its_key(tmp_path: Path, document: dict[str, Any]) -> None:
    stage = {"kind": "before_after", "pairs": "p", "thresholds": [1]}
    stage |= {key: value for key, value in document.items() if key == "pairs"}
    spoilt = {key: value for key, value in document.items() if key == "output"} | {"stages": [stage]}
    message = refusal(spoilt, tmp_path)
    assert "is not Unicode" in message or "holds a NUL character" in message
    message.encode()


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000 + "]" * 5000])
def test_a_number_too_long_and_lists_too_deep_are_no_toml(tmp_path: Path, value: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"output = {value}\n")
    with pytest.raises(ConfigError, match="cannot be read as TOML"):
        load_config(path)
    called = call("run", path, "--set", f"engine={value}")
    assert called.code in {2, 78}


def test_a_number_beyond_every_double_is_refused(tmp_path: Path) -> None:
    stage = {"kind": "before_after", "pairs": "p", "thresholds": [1, 10**400]}
    assert "[[stages]] 1: thresholds: a number is too large" in refusal({"stages": [stage]}, tmp_path)
