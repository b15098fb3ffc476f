"""What an operator sets: by flags, by environment variables TACIT_SERVE_..., or in a TOML file; the first of them wins.

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
    """All of it is public but ``database``, which may hold a password and is never printed."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True)

    # where things are; what is not named lies in ``home``
    home: Path = Path("tacit-home")
    models: Path | None = None  # versions that `tacit fit` published
    database: SecretStr | None = None  # of impressions: a file, or postgresql://...
    keys: Path | None = None
    listings: Path | None = (
        None  # what is offered: CSV with item,bid_micros,ppm; without it, the most liked items, free
    )
    federations: Path | None = None  # run folders of `tacit federate`

    # who listens where
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    workers: int = Field(1, ge=1, le=256)
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    https: bool = False  # behind a proxy that ends TLS: browsers are told to come by https only
    proxies: str = ""  # addresses of proxies whose X-Forwarded-For is believed
    origins: Annotated[tuple[str, ...], NoDecode] = ()  # other sites whose pages may call this one, with commas between

    # what a caller may do
    most_body: int = Field(1 << 20, ge=1024)  # bytes
    body_seconds: float = Field(10.0, gt=0.0)
    header_seconds: float = Field(10.0, gt=0.0)
    rate: float = Field(100.0, ge=0.0)  # requests a second for each address, or key; 0: no limit
    burst: int = Field(400, ge=1)
    most_waiting: int = Field(10_000, ge=1)  # requests that wait for the disk; beyond, the answer is "later"
    grace_seconds: int = Field(20, ge=1)  # for requests under way when the process is told to stop

    # how it answers
    most_k: int = Field(20, ge=1, le=255)  # items of a slate: what a request may cost grows with k times t
    algorithm: str = "exact"
    local_model: str = "ridge"
    policy: str = "auto"
    epsilon: float = Field(1.0, gt=0.0)  # of one offer, in nats
    offered: int | None = Field(None, ge=1, le=10_000)  # items that are listed where ``listings`` is not given
    offer_seconds: int = Field(3600, ge=1)
    click_epsilon: float = Field(1.0, gt=0.0)  # of one reported click, in nats
    open_counts: bool | None = None  # anybody may see how often each item was shown; None: of the demonstration
    page: bool = True
    swap_seconds: float = Field(2.0, gt=0.0)  # how often a new version is looked for
    log_requests: bool | None = None  # one line for each; None: unless a person watches at a terminal

    # the curator, which is another process
    data: str | None = None  # ratings: a name from `tacit data list`, or a file or folder
    ledger: SecretStr | None = None
    subject: str | None = None
    head: Path | None = None  # a head of that ledger that was noted elsewhere: an older copy is refused
    budget_epsilon: float | None = Field(None, gt=0.0)  # None: what was agreed before, else 1
    budget_delta: float = Field(0.0, ge=0.0, lt=1.0)

    @field_validator("origins", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(one.strip() for one in value.split(",") if one.strip()) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _whole_budget(self) -> Self:
        if self.budget_delta and self.budget_epsilon is None:
            raise ValueError("budget_delta is part of a budget: say budget_epsilon, too")
        return self

    @property
    def logs_requests(self) -> bool:
        """Whether requests are logged: as set, or by default where nobody watches the terminal."""
        return not sys.stderr.isatty() if self.log_requests is None else self.log_requests

    @property
    def models_folder(self) -> Path:
        """The folder of published versions."""
        return self.models or self.home / "models"

    @property
    def keys_file(self) -> Path:
        """The file of the operators' keys, as digests."""
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
        """Flags win over the environment, and that over the TOML file; there is no other source."""
        file = os.environ.get(FILE)
        if file is None:
            return init_settings, env_settings
        if not Path(file).is_file():
            raise InvalidParameter(f"there is no file of settings at {file}.")
        try:
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=file)
        except ValueError as problem:  # tomllib says where, and shows no line
            raise InvalidParameter(f"{file} is no TOML: {problem}.") from None


def read_settings(**given: Any) -> Settings:
    """The settings of this process; ``given`` are flags, and win. Mistakes are one line that shows no value."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {FILE}
    strange = [name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known]
    if strange:
        raise InvalidParameter(f"there is no setting {strange[0]}: look for a typing error.")
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as problem:
        found = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problem.errors()[:3])
        raise InvalidParameter(f"settings: {found}.") from None


def export(**given: Any) -> None:
    """Hands flags down to the processes that this one starts: they read their settings from the environment."""
    for name, value in given.items():
        if value is not None:
            os.environ[PREFIX + name.upper()] = str(value)
