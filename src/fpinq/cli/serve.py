"""fpinq serve: the protected system over HTTP.

    load ──▸ listen ──▸ announce ──▸ serve

What cannot be served is found before it is announced, and before there are
workers: a worker that cannot start would be started again for ever.
"""

import errno
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from fpinq.cli.options import number, port
from fpinq.cli.output import tell
from fpinq.model.errors import ProgramError

if TYPE_CHECKING:
    import uvicorn

# How many connections may wait to be taken.
BACKLOG = 2048


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq serve`."""
    parser.add_argument("--config", default="fpinq.toml", help="the owner's configuration (%(default)s)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="where to listen (%(default)s); put TLS in front of the rest"
    )
    parser.add_argument("--port", type=port, default=8000, help="0 for any that is free (%(default)s)")
    parser.add_argument(
        "--workers", type=number, default=1, help="how many processes share the ledger (%(default)s)"
    )
    parser.add_argument("--quantum", help="release replies at multiples of this time, such as 250ms")
    parser.add_argument(
        "--new-ledger", action="store_true", help="the ledger is a new one: every budget begins anew"
    )


def run(arguments: Namespace) -> int:
    """Serve until told to stop."""
    needs_server()
    os.environ["FPINQ_CONFIG"] = arguments.config
    if arguments.quantum is None:
        os.environ.pop("FPINQ_QUANTUM", None)
    else:
        os.environ["FPINQ_QUANTUM"] = arguments.quantum
    os.environ["FPINQ_WORKERS"] = str(arguments.workers)
    alone = arguments.workers == 1
    app: Any = application(new_ledger=arguments.new_ledger, watching=alone)
    house = app.state.house
    if not alone:
        house.close()  # each worker loads its own
    listening = listen(arguments.host, arguments.port)
    held = ", ".join(house.data_sets) or "no data sets yet"
    tell(
        f"fpinq serves {held} at {address(listening)}  (a page for people; docs at /docs)",
        file=sys.stderr,
        flush=True,
    )
    if house.config.anchor is None:
        tell(_NO_ANCHOR, file=sys.stderr)
    if alone:
        until_stopped(app, listening)
    else:
        with suppress(KeyboardInterrupt), listening:
            _supervise(_config("fpinq.cli.serve:application", arguments.workers), listening)
    return 0


def until_stopped(app: Any, listening: socket.socket) -> None:
    """Answer what comes in at a socket, in this process, until told to stop."""
    import uvicorn

    with suppress(KeyboardInterrupt), listening:
        uvicorn.Server(_config(app)).run(sockets=[listening])


def _config(app: Any, workers: int = 1) -> "uvicorn.Config":
    import uvicorn

    from fpinq.server.connections import Connection

    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=workers,
        # A reply holds what was asked for and nothing about when or by what it was made.
        date_header=False,
        server_header=False,
        access_log=False,
        log_level="warning",
        http=Connection,
        ws="none",
    )


_NO_ANCHOR = (
    "fpinq: no anchor: if an older copy of the ledger is put back, its budgets come back unnoticed "
    "(anchor = … in the configuration; docs/operating/ledger.md)"
)


def application(*, new_ledger: bool = False, watching: bool = True) -> Any:
    """The application of one worker process, from what `run` left in the environment."""
    from fpinq.engines import owner
    from fpinq.server import create_app, load
    from fpinq.server.config import seconds
    from fpinq.server.connections import Connection
    from fpinq.server.reloading import watch

    if not owner.goes_somewhere():  # whoever starts a server is the owner: this is their terminal
        owner.write_to(logging.StreamHandler(sys.stderr))
    workers = int(os.environ.get("FPINQ_WORKERS", "1"))
    config = replace(load(os.environ["FPINQ_CONFIG"]), new_ledger=new_ledger, workers=workers)
    quantum = os.environ.get("FPINQ_QUANTUM")
    if quantum is not None:  # an empty one is no time, and not none
        config = replace(config, quantum_seconds=seconds(quantum, "--quantum: "))
    Connection.configure(float(config.quantum_seconds))
    app = create_app(config)
    if watching:
        watch(app.state.house, os.environ["FPINQ_CONFIG"])
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        threading.Thread(target=_go_with, args=(supervisor,), name="fpinq-supervisor", daemon=True).start()
    return app


def _go_with(supervisor: Any) -> None:
    """End this worker when its supervisor has ended, however that was killed: nobody would stop it else."""
    supervisor.join()
    os.kill(os.getpid(), signal.SIGTERM)


def needs_server() -> None:
    """ProgramError, with what to install, where the server's packages are missing."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ProgramError(
            'the server needs more packages: pip install fastapi "uvicorn[standard]"'
        ) from None


def listen(host: str, at: int) -> socket.socket:
    """A socket that takes connections from now on; they are answered once there is a worker."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, at), family=family, backlog=BACKLOG)
    except OSError as error:
        why = str(error.strerror or error).partition(" (while")[0]
        other = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise ProgramError(f"cannot listen at {host}, port {at}: {why}. Say another {other}") from None
    listening.set_inheritable(True)
    return listening


def address(listening: socket.socket) -> str:
    host, at = listening.getsockname()[:2]
    return f"http://[{host}]:{at}" if ":" in host else f"http://{host}:{at}"


def _supervise(config: "uvicorn.Config", listening: socket.socket) -> None:
    """Worker processes on one socket, until told to stop."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    more: dict[str, Any] = {}
    if "target" in signature(Multiprocess).parameters:  # uvicorn's earlier versions ask for it
        more["target"] = uvicorn.Server(config).run
    Multiprocess(config, sockets=[listening], **more).run()
