"""Where events go: a server. Errors are the caller's to bear."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from http.client import HTTPMessage

ENDPOINT = "/api/v1/lineage"
KEY = "OPENLINEAGE_API_KEY"
TIMEOUT, SHORT_TIMEOUT = 5.0, 1.0  # seconds; the short one where a signal asked to stop


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is meant for the server that the config names."""

    def redirect_request(
        self, _req: urllib.request.Request, _fp: IO[bytes], _code: int, _msg: str, _headers: HTTPMessage, _newurl: str
    ) -> None:
        return None


def post(url: str, content: bytes, timeout: float = TIMEOUT) -> None:
    """Send an event to a server, with the key in OPENLINEAGE_API_KEY if there is one.

    Args:
        url: Address of the server, with a path of its own or none.
        content: The event as JSON.
        timeout: Seconds that it may take to connect, and to answer.

    Raises:
        OSError: the server cannot be reached in time, or refuses the event.
    """
    address = url if urlsplit(url).path not in {"", "/"} else url.rstrip("/") + ENDPOINT
    headers: dict[str, Any] = {"Content-Type": "application/json"}
    if key := os.environ.get(KEY):
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(address, content, headers, method="POST")  # noqa: S310 - http or https, checked
    try:
        with urllib.request.build_opener(_NoRedirects()).open(request, timeout=timeout) as answer:
            answer.read(1)
    except urllib.error.HTTPError as refusal:
        refusal.close()  # an answer as well, whose connection would stay open as long as the error is held
        raise
