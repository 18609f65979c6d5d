"""What SQL is written otherwise for DuckDB, to have the same result sooner."""

from __future__ import annotations

from sqlglot import exp

OF_DOUBLES = "of_doubles"  # key of the meta data of a sum of decimals that are made of doubles
SCALE = 15
_SHORT = ("DECIMAL(18, 15)", "DECIMAL(19, 15)")  # times ten to the fifteenth they are a BIGINT, up to 9,223


def mark_sums(tree: exp.Expr) -> None:
    """Mark the sums in a tree whose terms are short decimals, all of which are made of doubles."""
    for total in tree.find_all(exp.Sum):
        if isinstance(total.this, exp.Cast) and total.this.to.sql() in _SHORT:
            total.meta[OF_DOUBLES] = True


def for_duckdb(tree: exp.Expr, *, copy: bool) -> exp.Expr:
    """Return a tree with sums of integers for those sums of decimals that are marked.

    A cast to a decimal multiplies by a power of ten and rounds halves away from zero, as is written out here: the sums
    are the same to the last digit, in half the time.

    Args:
        tree: Any tree.
        copy: Whether the tree must stay as it is.
    """
    if not any(node.meta.get(OF_DOUBLES) for node in tree.find_all(exp.Sum)):
        return tree
    tree = tree.copy() if copy else tree
    for total in list(tree.find_all(exp.Sum)):
        if total.meta.get(OF_DOUBLES):
            total.replace(_sum_of_integers(total.this.this))
    return tree


def _sum_of_integers(term: exp.Expr) -> exp.Expr:
    power = exp.cast(exp.Literal.string(repr(10.0**SCALE)), "DOUBLE")
    in_units = exp.Round(this=exp.Mul(this=exp.paren(term.copy()), expression=power))
    total = exp.cast(exp.Sum(this=exp.cast(in_units, "BIGINT")), "DECIMAL(38, 0)")
    unit = exp.cast(exp.Literal.string(f"{10**-SCALE:.{SCALE}f}"), f"DECIMAL({SCALE}, {SCALE})")
    return exp.paren(exp.Mul(this=total, expression=unit))
