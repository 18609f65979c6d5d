"""How much memory the engine may use if the config does not say: Python and Polars need room beside it."""

from __future__ import annotations

MIB = 1 << 20
LEAST_RESERVE = 256 * MIB  # Python, Polars and what is handed over, measured at 180 to 230 MiB for small inputs
RESERVED_SHARE = 0.3
LEAST_SHARE = 0.2
SHARE_OF_ENGINE = 0.8  # DuckDB's own default: of the machine's memory, or of the container's


def default_limit(own_default: int) -> int:
    """Return the memory limit in bytes: what the machine or container has, less a reserve for everything else.

    Args:
        own_default: The limit that the engine would choose by itself, in bytes.
    """
    available = own_default / SHARE_OF_ENGINE
    reserve = max(RESERVED_SHARE * available, LEAST_RESERVE)
    return int(max(available - reserve, LEAST_SHARE * available))
