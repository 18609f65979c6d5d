"""The tables `[lineage]` and `[prometheus]` of a config: where to announce how an attempt went."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, field_validator

from ...errors import ConfigError
from ...sources.paths import local_path

if TYPE_CHECKING:
    from typing import Self

PROM = ".prom"


def _written(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


WrittenPath = Annotated[str, BeforeValidator(_written)]


class _Announced(BaseModel):
    """Somewhere to announce, with the file as it was written."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")
    extra: ClassVar[str]
    client: ClassVar[tuple[str, str]]  # the module, and the package that brings it

    file: WrittenPath | None = None

    def placed(self, base: Path, *, what: str) -> Self:
        """Return the same settings with an absolute path of the file, if what writes it is installed.

        Args:
            base: Folder that relative paths start from.
            what: The table, in messages.

        Raises:
            ConfigError: the path means nothing here, see `local_path`, or the client is not installed.
        """
        module, package = self.client
        if self != type(self)() and find_spec(module) is None:
            message = f"{what} needs the package {package}, which is not installed"
            raise ConfigError(message, remedy=f"pip install 'thresher[{self.extra}]'")
        if self.file is None:
            return self
        return self.model_copy(update={"file": str(local_path(self.file, base, what=f"{what}.file"))})


class LineageSettings(_Announced):
    """The table `[lineage]`: where events in the format of OpenLineage go.

    Attributes:
        file: A file to which they are appended, one line each; None: none.
        url: A server that takes them, with `/api/v1/lineage` unless it has a path of its own; None: none.
        namespace: Namespace of the job.
        job: Name of the job; None: the name of the config without its ending.
    """

    extra: ClassVar[str] = "lineage"
    client: ClassVar[tuple[str, str]] = ("openlineage", "openlineage-python")

    url: str | None = None
    namespace: str = "thresher"
    job: str | None = None

    @field_validator("url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value is None:
            return None
        address = urlsplit(value)
        if address.scheme not in {"http", "https"} or not address.hostname:
            message = 'write a URL that starts with http:// or https://, such as "http://marquez:5000"'
            raise ValueError(message)
        if address.username is not None or address.password is not None:
            message = "a URL must hold no password: the key is read from the variable OPENLINEAGE_API_KEY"
            raise ValueError(message)
        return value

    @field_validator("namespace", "job")
    @classmethod
    def _not_empty(cls, value: str | None) -> str | None:
        if value == "":
            message = "it must not be empty"
            raise ValueError(message)
        return value


class PrometheusSettings(_Announced):
    """The table `[prometheus]`: where a file for the textfile collector of node_exporter goes.

    Attributes:
        file: The file, replaced as a whole at the end of every attempt; None: none.
    """

    extra: ClassVar[str] = "prometheus"
    client: ClassVar[tuple[str, str]] = ("prometheus_client", "prometheus-client")

    @field_validator("file")
    @classmethod
    def _collected(cls, value: str | None) -> str | None:
        if value is not None and not value.endswith(PROM):
            message = f"the name must end in {PROM}, because node_exporter reads no other file"
            raise ValueError(message)
        return value


NO_LINEAGE, NO_METRICS = LineageSettings(), PrometheusSettings()
