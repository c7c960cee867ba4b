"""Files as Spark reads them: exactly those that were found, one by one.

Files of this machine are found by engines.files. Those of a url, which only the
cluster can list (hdfs://, s3a://), are found once by Spark, each with its size
and the time of its last change. Either way Spark is handed the files themselves:
no glob, no folder, no column made of a folder's name, no checksum file beside
them. Before anything is measured it says which files it is going to read.
"""

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from fpinq.engines.files import TEXT, Files
from fpinq.model.errors import BadData
from fpinq.model.frozen import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A folder c=1 is a folder, and makes no column.
_EVERYTHING = {"recursiveFileLookup": "true"}
# Hadoop's own local file system also reads .name.crc, which nobody pinned, and no name with a colon.
_NO_CHECKSUMS = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
_URL = re.compile(r"(?P<scheme>[^:/]+):(//(?P<host>[^/]*))?(?P<path>/.*)", re.DOTALL)
_GLOB = re.compile(r"[\\{}\[\]*?]")
_AT_A_TIME = 8

DIFFERENT = "the files of one table must have the same columns and types"


# ── where they are ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Listed:
    """A file that the cluster sees, as it was when it was protected."""

    url: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class Elsewhere:
    """Distinct files of one format, parquet or csv, that only the cluster can list; sorted by url."""

    files: tuple[Listed, ...]
    format: str

    @property
    def urls(self) -> list[str]:
        """Where they are."""
        return [file.url for file in self.files]

    def hold(self, session: "SparkSession") -> bool:
        """Whether all of them still are what they were."""
        try:
            return _listed(session, map(_literally, self.urls)) == self.files
        except Exception:
            return False


def is_url(path: object) -> bool:
    """Whether a path is one that the cluster is asked about, not this machine."""
    return isinstance(path, str) and "://" in path


def url_of(path: str) -> str:
    """A file of this machine, by its absolute path, as Spark wants it; a url is one already."""
    return f"file:{path}" if path.startswith("/") else path


def _literally(url: str) -> str:
    """A url in which Hadoop finds no glob. (Spark's own way to say so, __globPaths__, is not for Connect.)"""
    return _GLOB.sub(r"\\\g<0>", url)


def resolve(session: "SparkSession", source: Any) -> Elsewhere:
    """The files that urls stand for, now; BadData if there are none, or of several formats.

    A url of a file is that file; one of a folder the files below it; any other is a glob, as Hadoop
    understands it. Names that begin with . or _ are left out, and files without a byte.
    """
    given = [source] if isinstance(source, str) else source
    found = tuple(sorted({file for one in given for file in _found(session, one)}, key=lambda file: file.url))
    formats = {"csv" if file.url.lower().endswith(TEXT) else "parquet" for file in found}
    if len(formats) > 1:
        raise BadData("the files of one table must have one format: all parquet or all csv")
    return Elsewhere(found, formats.pop())


def _found(session: "SparkSession", given: str | Path) -> Sequence[Listed]:
    url = given if is_url(given) else f"file:{os.path.abspath(os.path.expanduser(os.fspath(given)))}"
    assert isinstance(url, str)
    found = _listed(session, [_literally(url)]) or _listed(session, [url])
    if not any(file.size for file in found):
        raise BadData(f"no such file, or an empty one: {url}")
    return [file for file in found if file.size]


def _listed(session: "SparkSession", urls: Iterable[str]) -> tuple[Listed, ...]:
    """What Spark finds, by looking at the files' names and sizes only."""
    from pyspark.errors import AnalysisException

    reader = session.read.format("binaryFile").options(**_EVERYTHING)
    try:
        rows = reader.load(list(urls)).select("path", "length", "modificationTime").collect()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return ()
        raise
    return tuple(sorted({Listed(*row) for row in rows}, key=lambda file: file.url))


# ── what Spark reads ─────────────────────────────────────────────────────────────────


def read(session: "SparkSession", urls: Sequence[str], format_: str, **options: str) -> "DataFrame":
    """A frame over files; BadData if Spark would read any others, or not all of them."""
    given = {**_EVERYTHING, **_NO_CHECKSUMS, **options}
    frame = session.read.format(format_).options(**given).load([_literally(url) for url in urls])
    check_files(frame.inputFiles(), urls)
    return frame


def check_files(reads: Iterable[str], urls: Iterable[str]) -> None:
    """BadData unless what Spark says that it reads are these files, each of them once."""
    if sorted(_place(url, unquote) for url in reads) != sorted(_place(url) for url in urls):
        raise BadData(
            "Spark would not read exactly the files that were found: "
            "rename those whose names begin with . or _, and see that the cluster sees all of them"
        )


def _place(url: str, decode: Any = str) -> tuple[str, str, str]:
    found = _URL.fullmatch(url)
    if found is None:
        raise BadData(f"not the url of a file: {url}")
    return found["scheme"].lower(), found["host"] or "", decode(found["path"])


# ── parquet ──────────────────────────────────────────────────────────────────────────


def check_footers(files: Files) -> int:
    """How many records parquet files of this machine have; BadData if their columns are not the same."""
    import pyarrow.parquet as pq

    footers = [pq.read_metadata(path) for path in files.paths]
    if len({_columns(footer.schema) for footer in footers}) > 1:
        raise BadData(DIFFERENT)
    return sum(footer.num_rows for footer in footers)


def _columns(schema: Any) -> frozenset[tuple[Any, ...]]:
    """A parquet file's columns, in any order; whether one may be null is all the same."""
    columns = (schema.column(i) for i in range(len(schema)))
    return frozenset((c.path, c.physical_type, c.length, str(c.logical_type)) for c in columns)


def check_columns(session: "SparkSession", urls: Sequence[str]) -> None:
    """BadData unless parquet files have the same columns. Spark looks into each of them."""

    def columns(url: str) -> frozenset[tuple[str, str]]:
        fields = read(session, [url], "parquet").schema.fields
        return frozenset((field.name, field.dataType.simpleString()) for field in fields)

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        if len(set(pool.map(columns, urls))) > 1:
            raise BadData(DIFFERENT)
