"""Spark Connect: a client without Java, and a Spark in another process, on the loopback interface."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason='no Spark Connect: pip install "pyspark[connect]"')
pytest.importorskip("grpc_status", reason='no Spark Connect: pip install "pyspark[connect]"')

# Ends when its standard input does, and after three minutes in any case.
SERVER = """
import select, sys
from fpinq.engines.spark.java import find_java
from pyspark.sql import SparkSession
find_java()
conf = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-Xss32m -XX:+ExitOnOutOfMemoryError -XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": sys.argv[1],
    "spark.sql.warehouse.dir": sys.argv[2],
    # As a cluster may be set up.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.legacy.setopsPrecedence.enabled": "true",
}
session = SparkSession.builder.config(map=conf).getOrCreate()
session.range(10).withColumnRenamed("id", "x").write.saveAsTable("numbers")
print("READY", flush=True)
select.select([sys.stdin], [], [], 180)
session.stop()
"""

CLIENT = """
import io, logging, os, sys, traceback
from pathlib import Path

# Threads of the connection would keep a failed client alive.
sys.excepthook = lambda *error: (traceback.print_exception(*error), os._exit(1))
os.environ["PATH"], os.environ["JAVA_HOME"] = "", ""  # no Java here
import pytest
import fpinq as fp
from client.small_data import SURE, PLENTY
from engines.test_conformance import compare, load
from fpinq import _
from fpinq.engines.spark import sources
from spark import test_spark_engine as tests
from spark import test_spark_files as files
from spark.test_spark_conformance import examples
from spark.test_spark_front_door import EXPECTED, PEOPLE, counted

url, folder = sys.argv[1], Path(sys.argv[2])
engine = fp.Spark(remote=url)
assert "connect" in type(engine._sessions[0]).__module__
for session in engine._sessions:
    assert session.conf.get("spark.sql.ansi.enabled") == "true"
    assert session.conf.get("spark.sql.legacy.setopsPrecedence.enabled") == "false"
    assert session.conf.get("spark.sql.shuffle.partitions") == "2"
assert counted(fp.protect(PEOPLE, budget=PLENTY, engine=engine)) == EXPECTED
numbers = fp.protect("table:numbers", budget=PLENTY, engine=engine)
assert numbers.noisy_sum(SURE, _.x, bounds=(0, 9)).value == 45
tests.test_parquet_files_directories_globs_and_frames_are_read(engine, folder)
(folder / "text").mkdir()
tests.test_csv_is_read_with_or_without_a_schema(engine, folder / "text")
for here in ("names", "columns", "url"):
    (folder / here).mkdir()
files.test_a_file_of_any_name_is_that_file_and_no_other(engine, folder / "names")
files.test_columns_are_found_by_their_names_in_each_file(engine, folder / "columns")
files.test_files_of_a_url_are_found_once_and_pinned(engine, folder / "url")
tests.test_equal_unions_side_by_side_count_no_row_twice(engine)
tests.test_sums_beyond_64_bits_are_exact(engine)
tests.test_a_plan_that_would_explode_when_written_out_is_kept_instead(engine)
for example in examples(8):
    compare(engine, example, load(engine, example))
failing = engine._sessions[0].sql("SELECT CAST(raise_error('secret row') AS BIGINT) AS y FROM range(3)")
said = io.StringIO()
logging.getLogger("fpinq.owner").addHandler(logging.StreamHandler(said))
with pytest.raises(fp.BadData):
    fp.protect(failing, budget=1, engine=engine)
assert "secret row" in said.getvalue()
sources.check_values = lambda *given: None  # only so does it fail at a measurement
table = fp.protect(failing, budget=1, engine=engine)
with pytest.raises(fp.EngineError) as raised:
    table.noisy_sum("1/2", _.y, bounds=(0, 9))
assert "secret" not in str(raised.value)
assert "secret row" in said.getvalue()
assert table.remaining * 2 == 1
engine.close()
print("THE SAME", flush=True)
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER, str(port), str(tmp_path / "warehouse")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "READY\n"
        yield f"sc://127.0.0.1:{port}"
    finally:
        try:
            server.communicate(timeout=30)  # closes its standard input
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def test_spark_connect_gives_the_same_integers_and_fails_as_quietly(url: str, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, url, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        check=False,
    )
    assert "THE SAME" in found.stdout, found.stderr[-3000:]
    assert "secret" not in found.stdout + found.stderr
