"""The protected system over HTTP, for clients that nobody trusts.

1. ``config``   what the owner writes
2. ``tokens``   who may come in; ``limits`` how much at a time; ``admission`` what may be asked at all
3. ``house``    everything a server holds
4. ``actions``  the one way to data; ``bodies`` and ``replies`` are its two ends
   ``quantum``  when a reply leaves; ``places``, ``turns`` and ``connections``: not after others'
5. ``questions`` for those who have no client; ``watching`` for those who watch; ``told`` what they are told
6. ``app``      the addresses; ``openapi`` and ``schemas`` say what they take and give
"""

from fpinq.server.app import create_app
from fpinq.server.config import Config, DataSet, TableConfig, load

__all__ = ["Config", "DataSet", "TableConfig", "create_app", "load"]
