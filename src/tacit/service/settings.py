"""The settings of a service: flags, environment variables TACIT_SERVE_..., or a TOML file, in this order of precedence.

TACIT_SERVE_PORT=8080 TACIT_SERVE_DATABASE=postgresql://... tacit serve --settings tacit.toml
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from tacit.errors import InvalidParameter

PREFIX = "TACIT_SERVE_"
FILE = f"{PREFIX}SETTINGS"  # names the TOML file


class Settings(BaseSettings):
    """The settings of a service. ``database`` and ``ledger`` may hold a password and are never printed."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True)

    # files; by default in ``home``
    home: Path = Path("tacit-home")
    models: Path | None = None  # the versions that `tacit fit` published
    database: SecretStr | None = None  # the ledger of impressions: a file, or postgresql://...
    keys: Path | None = None
    listings: Path | None = None  # items to offer, as CSV with item,bid_micros,ppm; by default the most liked, free
    federations: Path | None = None  # run folders of `tacit federate`

    # network
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    workers: int = Field(1, ge=1, le=256)
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    https: bool = False  # behind a proxy that ends TLS: tells browsers to use https only
    proxies: str = ""  # addresses of proxies whose X-Forwarded-For is trusted
    origins: Annotated[tuple[str, ...], NoDecode] = ()  # other sites whose pages may call this one, separated by commas

    # limits for callers
    most_body: int = Field(1 << 20, ge=1024)  # bytes
    body_seconds: float = Field(10.0, gt=0.0)
    header_seconds: float = Field(10.0, gt=0.0)
    rate: float = Field(100.0, ge=0.0)  # requests a second for each address or key; 0: no limit
    burst: int = Field(400, ge=1)
    most_waiting: int = Field(10_000, ge=1)  # requests that may wait for the disk; others have to try again
    grace_seconds: int = Field(20, ge=1)  # for requests in progress when the process has to stop

    # answers
    most_k: int = Field(20, ge=1, le=255)  # items of a slate: the work for a request grows with k times t
    algorithm: str = "exact"
    local_model: str = "ridge"
    policy: str = "auto"
    epsilon: float = Field(1.0, gt=0.0)  # for one offer, in nats
    offered: int | None = Field(None, ge=1, le=10_000)  # the number of items to offer without ``listings``
    offer_seconds: int = Field(3600, ge=1)
    click_epsilon: float = Field(1.0, gt=0.0)  # for one reported click, in nats
    open_counts: bool | None = None  # shows the counts to everybody; None: in the demonstration only
    page: bool = True
    swap_seconds: float = Field(2.0, gt=0.0)  # between two checks for a new version
    log_requests: bool | None = None  # one line for each request; None: unless standard error is a terminal

    # the curator, in another process
    data: str | None = None  # ratings: a name from `tacit data list`, or a file or folder
    ledger: SecretStr | None = None
    subject: str | None = None
    head: Path | None = None  # a head of that ledger, noted elsewhere: an older copy is then refused
    budget_epsilon: float | None = Field(None, gt=0.0)  # None: the budget agreed before, or 1
    budget_delta: float = Field(0.0, ge=0.0, lt=1.0)

    @field_validator("origins", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return (
            tuple(origin.strip() for origin in value.split(",") if origin.strip()) if isinstance(value, str) else value
        )

    @model_validator(mode="after")
    def _whole_budget(self) -> Self:
        if self.budget_delta and self.budget_epsilon is None:
            raise ValueError("budget_delta is part of a budget: set budget_epsilon, too")
        return self

    @property
    def logs_requests(self) -> bool:
        """Whether to log requests: as set, or by default if standard error is not a terminal."""
        return not sys.stderr.isatty() if self.log_requests is None else self.log_requests

    @property
    def models_folder(self) -> Path:
        """The folder of published versions."""
        return self.models or self.home / "models"

    @property
    def keys_file(self) -> Path:
        """The file of keys."""
        return self.keys or self.home / "keys.json"

    @property
    def database_target(self) -> str:
        """The ledger of impressions: a file, or a PostgreSQL address that may hold a password."""
        return str(self.home / "server.db") if self.database is None else self.database.get_secret_value()

    @property
    def ledger_target(self) -> str:
        """The curator's ledger: a file, or a PostgreSQL address that may hold a password."""
        return str(self.home / "curator.db") if self.ledger is None else self.ledger.get_secret_value()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags win over the environment, which wins over the TOML file. There is no other source."""
        file = os.environ.get(FILE)
        if file is None:
            return init_settings, env_settings
        if not Path(file).is_file():
            raise InvalidParameter(f"there is no file of settings at {file}.")
        try:
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=file)
        except ValueError as problem:  # tomllib gives the position, and quotes nothing
            raise InvalidParameter(f"{file} is not valid TOML: {problem}.") from None


def read_settings(**flags: Any) -> Settings:
    """The settings of this process. Raises InvalidParameter in one line that shows no value. A flag of None is not set."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {FILE}
    unknown = [name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known]
    if unknown:
        raise InvalidParameter(f"there is no setting {unknown[0]}: check the spelling.")
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as problem:
        mistakes = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in problem.errors()[:3])
        raise InvalidParameter(f"settings: {mistakes}.") from None


def export(**flags: Any) -> None:
    """Passes flags on to the processes that this one starts: they read their settings from the environment."""
    for name, value in flags.items():
        if value is not None:
            os.environ[PREFIX + name.upper()] = str(value)
