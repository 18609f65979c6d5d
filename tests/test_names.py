"""A local name says what it holds: the emptiest words are barred from assignments, loops and parameters."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
EMPTY_WORDS = re.compile(
    "each|found|given|info|known|made|many|own|parts?|places?|rest|rows_|some|stuff|temp|things?|those|tmp|whole"
)
HIGHEST_SHARE = 0.03
HIGHEST_SHARE_BEFORE = 0.12  # of folders whose names are still to be gone through
TO_DO: tuple[str, ...] = ()
NONE_LEFT = (
    *("benchmarks", "studies", "pipeline/cli", "pipeline/engines", "pipeline/metrics", "pipeline/base"),
    *("pipeline/runs", "pipeline/sources", "pipeline/storage", "thresher"),
    *("tests/base", "tests/cli", "tests/engines", "tests/fuzz", "tests/metrics", "tests/runs"),
    *("tests/sources", "tests/storage"),
)


def names_in(target: ast.expr) -> Iterator[ast.Name]:
    """The names that a target binds; attributes and subscripts bind none."""
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, ast.Starred):
        yield from names_in(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from names_in(element)


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every assignment, loop outside comprehensions, `with … as`, walrus and parameter."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For | ast.NamedExpr):
            targets = [node.target]
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            targets = [node.optional_vars]
        for target in targets:
            for name in names_in(target):
                yield name.lineno, name.id


def names_by_file(folder: str) -> Iterator[tuple[str, int, str]]:
    """File, line and name of everything that the modules of a folder bind; those of `pipeline` itself lie in it."""
    paths = (ROOT / folder).glob("*.py") if folder == "pipeline" else (ROOT / folder).rglob("*.py")
    for path in sorted(paths):
        for line, name in bound_names(ast.parse(path.read_text(encoding="utf-8"))):
            yield path.relative_to(ROOT).as_posix(), line, name


def folders() -> list[str]:
    subfolders = [path.parent.name for path in (ROOT / "pipeline").glob("*/__init__.py")]
    return sorted(["pipeline", "thresher", *NONE_LEFT, *(f"pipeline/{name}" for name in subfolders)])


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("folder", sorted(set(folders())))
def test_local_names_say_what_they_hold(folder: str) -> None:
    names = list(names_by_file(folder))
    empty = [f"{path}:{line} {name}" for path, line, name in names if EMPTY_WORDS.fullmatch(name)]
    allowed = HIGHEST_SHARE_BEFORE if folder in TO_DO else 0.0 if folder in NONE_LEFT else HIGHEST_SHARE
    share = len(empty) / max(len(names), 1)
    assert share <= allowed, f"{share:.1%} of {len(names)} names say nothing:\n" + "\n".join(empty)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("found = 1", "found"),
        ("a, (b, *rest) = x", "rest"),
        ("each: int = 1", "each"),
        ("for place in x: pass", "place"),
        ("with x as part: pass", "part"),
        ("if (made := x): pass", "made"),
        ("def f(own): pass", "own"),
        ("whole += 1", "whole"),
    ],
)
def test_an_empty_name_would_be_found(code: str, name: str) -> None:
    assert [bound for _, bound in bound_names(ast.parse(code)) if EMPTY_WORDS.fullmatch(bound)] == [name]


def test_comprehensions_and_attributes_may_have_any_name() -> None:
    assert list(bound_names(ast.parse("[each for each in x]\nself.own = 1\nfound[0] = 1"))) == []
