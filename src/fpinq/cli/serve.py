"""fpinq serve: the protected system over HTTP."""

import os
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

from fpinq.model.errors import ProgramError


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq serve`."""
    parser.add_argument("--config", default="fpinq.toml", help="the owner's configuration")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; put TLS in front of the rest")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1, help="how many processes share the ledger")
    parser.add_argument("--quantum", help="release replies at multiples of this time, such as 250ms")


def run(arguments: Namespace) -> int:
    """Serve until told to stop."""
    needs_server()
    import uvicorn

    from fpinq.server.config import load, seconds

    config = load(arguments.config)
    if arguments.quantum is not None:
        seconds(arguments.quantum)
    print(
        f"fpinq serves {', '.join(config.data_sets) or 'no data sets yet'} at "
        f"http://{arguments.host}:{arguments.port}  (docs at /docs)",
        file=sys.stderr,
    )
    os.environ["FPINQ_CONFIG"] = arguments.config
    os.environ["FPINQ_QUANTUM"] = arguments.quantum or ""
    uvicorn.run(
        "fpinq.cli.serve:application",
        factory=True,
        host=arguments.host,
        port=arguments.port,
        workers=arguments.workers,
        # A reply holds what was asked for and nothing about when or by what it was made.
        date_header=False,
        server_header=False,
        access_log=False,
        log_level="warning",
    )
    return 0


def application() -> Any:
    """The application of one worker process, from what `run` left in the environment."""
    from fpinq.server import create_app, load
    from fpinq.server.config import seconds

    config = load(os.environ["FPINQ_CONFIG"])
    quantum = os.environ.get("FPINQ_QUANTUM")
    return create_app(replace(config, quantum_seconds=seconds(quantum)) if quantum else config)


def needs_server() -> None:
    """ProgramError, with what to install, where the server's packages are missing."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ProgramError('the server needs more packages: pip install "fpinq[server]"') from None
