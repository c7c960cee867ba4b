"""A PostgreSQL from the system's binaries, for the length of a test run, on a Unix socket only."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from uuid import uuid4


class NoPostgreSQL(Exception):
    """Why there is none."""


@contextmanager
def throwaway_postgres() -> Iterator["Server"]:
    """A fresh server; NoPostgreSQL if none can be had. PostgreSQL does not run as root, so nobody runs it.

    FPINQ_POSTGRES names the folder of its programs, if it is to be another one than the system's.
    """
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise NoPostgreSQL("psycopg is not installed") from None
    found = [*sorted(glob("/usr/lib/postgresql/*/bin")), os.path.dirname(shutil.which("initdb") or "")]
    found = [os.environ["FPINQ_POSTGRES"]] if "FPINQ_POSTGRES" in os.environ else found
    binaries = next((Path(b) for b in reversed(found) if b and (Path(b) / "initdb").exists()), None)
    if binaries is None:
        raise NoPostgreSQL("no PostgreSQL binaries on this system")
    folder = tempfile.mkdtemp(prefix="fpinq-pg-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    run: dict[str, object] = {"cwd": folder, "env": {"LC_ALL": "C", "PATH": os.environ.get("PATH", "")}}
    if os.getuid() == 0:
        user = next((u for u in ("postgres", "nobody") if _exists(u)), None)
        if user is None:
            raise NoPostgreSQL("no user but root to run it as")
        found_user = pwd.getpwnam(user)
        os.chown(folder, found_user.pw_uid, found_user.pw_gid)
        run |= {"user": found_user.pw_uid, "group": found_user.pw_gid, "extra_groups": []}
    data = os.path.join(folder, "data")
    server = None
    try:
        made = subprocess.run(  # type: ignore[call-overload]
            [binaries / "initdb", "-D", data, "-A", "trust", "-U", "owner", "-E", "UTF8", "--no-sync"],
            capture_output=True, text=True, **run,
        )  # fmt: skip
        if made.returncode:
            raise NoPostgreSQL(f"initdb failed: {made.stderr.strip()[-300:]}")
        options = [
            "fsync=off",
            "listen_addresses=",
            f"unix_socket_directories={folder}",
            "max_connections=100",
        ]
        command = [binaries / "postgres", "-D", data, *(part for o in options for part in ("-c", o))]
        server = subprocess.Popen(  # type: ignore[call-overload]
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **run
        )
        yield Server(folder).wait()
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # fast: ends the connections that there are still
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


class Server:
    """A running server."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def url(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://owner@/{database}?host={self._folder}"

    def wait(self) -> "Server":
        """This server, once it answers."""
        import psycopg

        for _ in range(200):
            try:
                psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return self
        raise NoPostgreSQL("it does not answer")

    def fresh(self) -> str:
        """The address of a new, empty database."""
        import psycopg

        name = f"ledger_{uuid4().hex}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return self.url(name)
