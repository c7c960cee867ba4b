"""Reloading: data sets that are written into the configuration while a server runs are served, too.

Only what is new is taken: what is held stays as it is until a restart, for a
budget, a cap or a schema is a promise that was made when it was registered.
"""

import logging
import os
import threading
from collections.abc import Callable
from weakref import ref

from fpinq.model.errors import FpinqError
from fpinq.server.config import load
from fpinq.server.house import House

# How often a server looks whether its configuration was written.
EVERY_SECONDS = 2.0

_owner = logging.getLogger("fpinq.owner")


def take_new(house: House, path: str) -> list[str]:
    """Hold what a configuration has and is not held yet; the names. The owner reads what is wrong."""
    taken = []
    try:
        config = load(path)
    except FpinqError as error:
        _owner.error("%s was written and cannot be read: %s", path, error)
        return []
    for name, data_set in config.data_sets.items():
        if name in house.data_sets:
            continue
        try:
            house.add(data_set)
        except FpinqError as error:
            _owner.error("%s is not served: %s", name, error)
        else:
            taken.append(name)
            _owner.warning("%s is served now", name)
    return taken


def watch(house: House, path: str) -> Callable[[], None]:
    """Look now and then whether the configuration was written, while there is the house; ends when called."""
    ended = threading.Event()
    seen, held = _state(path), ref(house)

    def look() -> None:
        nonlocal seen
        while not ended.wait(EVERY_SECONDS):
            now, still = _state(path), held()
            if still is None or not still.healthy:
                return
            if now is not None and now != seen:
                take_new(still, path)
            seen = now
            del still

    threading.Thread(target=look, name="fpinq-reloading", daemon=True).start()
    return ended.set


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
