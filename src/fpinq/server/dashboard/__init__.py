"""The page: one more untrusted client, as files that are the same for everybody.

They are read once, when the server starts, and replied at once: outside the
quantum, because nothing in them depends on data, requests or tokens. What the
page shows, it asks of the public HTTP interface with its reader's own token.
"""

import gzip
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from fpinq.server.quantum import App, AsgiScope, Receive, Send

# Scripts, styles and pictures of this server only; nothing inline, nothing evaluated, no other address.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-cache",  # kept, and asked for again whether it is still the same
    "vary": "accept-encoding",
}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
AT = {"/": "index.html", "/docs": "docs.html"}


class File(NamedTuple):
    """A file, as it is replied."""

    type: str
    body: bytes
    zipped: bytes
    tag: str


def load() -> dict[str, File]:
    """Every file of the page by its address."""
    found = {f"/page/{name}": file for name, file in _below(files(__name__) / "files")}
    return {**found, **{address: found[f"/page/{name}"] for address, name in AT.items()}}


def _below(folder: Traversable, prefix: str = "") -> list[tuple[str, File]]:
    found: list[tuple[str, File]] = []
    for each in folder.iterdir():
        suffix = each.name[each.name.rfind(".") :]
        if each.is_dir():
            found += _below(each, f"{prefix}{each.name}/")
        elif suffix in TYPES:
            body = each.read_bytes()
            zipped = gzip.compress(body, mtime=0)
            tag = f'"{sha256(body).hexdigest()[:32]}"'
            found.append((f"{prefix}{each.name}", File(TYPES[suffix], body, zipped, tag)))
    return found


class Page:
    """The files of the page, and another application for everything else."""

    def __init__(self, others: App) -> None:
        self._others = others
        self._files: Mapping[str, File] = load()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        file = self._files.get(scope["path"]) if _is_reading(scope) else None
        if file is None:
            await self._others(scope, receive, send)
            return
        given = dict(scope["headers"])
        zips = b"gzip" in given.get(b"accept-encoding", b"")
        body = file.zipped if zips else file.body
        tag = file.tag[:-1] + '-gz"' if zips else file.tag
        same = given.get(b"if-none-match", b"").decode("latin-1") == tag
        headers = {**HEADERS, "etag": tag, "content-type": file.type}
        if not same:
            headers |= {"content-length": str(len(body)), **({"content-encoding": "gzip"} if zips else {})}
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 304 if same else 200, "headers": sent})
        empty = same or scope["method"] == "HEAD"
        await send({"type": "http.response.body", "body": b"" if empty else body})


def _is_reading(scope: AsgiScope) -> bool:
    return scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and not scope.get("root_path")
