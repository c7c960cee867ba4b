"""However a cluster is set up, the same SQL means the same."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from engines.test_conformance import compare, load
from fpinq.engines.spark import Spark
from fpinq.engines.spark.meaning import MEANING
from spark.conftest import CONF
from spark.test_spark_conformance import examples

# Each of them changes a result somewhere, or makes Spark refuse what it would compute.
NASTY = {
    "spark.speculation": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.analyzer.maxIterations": "30",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.ansi.relationPrecedence": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.crossJoin.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoredPathSegmentRegex": "^[._x]",
    "spark.sql.groupByAliases": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.icu.caseMappings.enabled": "false",
    "spark.sql.legacy.bangEqualsNot": "true",
    "spark.sql.legacy.ctePrecedencePolicy": "EXCEPTION",
    "spark.sql.legacy.duplicateBetweenInput": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
    "spark.sql.legacy.inSubqueryNullability": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "false",
    "spark.sql.legacy.nullInEmptyListBehavior": "true",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "true",
    "spark.sql.legacy.setopsPrecedence.enabled": "true",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.truncateForEmptyRegexSplit": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding,"
    "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation,"
    "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates",
    "spark.sql.optimizer.maxIterations": "1",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.retainGroupColumns": "false",
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.sources.useV1SourceList": "",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.unionOutputPartitioning": "true",
    "spark.sql.variable.substitute": "true",
}

# Random plans, values and files under nasty settings, in a Spark that was started with them.
PROGRAM = """
import json, sys
from spark.test_spark_meaning import check_under_nasty_settings
check_under_nasty_settings(sys.argv[1], json.loads(sys.argv[2]))
print("THE SAME", flush=True)
"""


def check_under_nasty_settings(folder: str, nasty: dict[str, str]) -> None:
    """What the engine's other tests check, in a few examples."""
    from spark import test_spark_engine as tests

    engine = Spark("local[2]", {**CONF, **nasty})
    for session in engine._sessions:
        for key, value in MEANING.items():
            assert session.conf.get(key) == value, key
        kept = [key for key in nasty if key in session.conf.getAll and key.startswith("spark.sql.")]
        assert set(kept) <= {*MEANING, "spark.sql.adaptive.enabled"}, kept
    tests.test_equal_unions_side_by_side_count_no_row_twice(engine)
    tests.test_memory_of_all_kinds_is_read(engine)
    tests.test_sums_beyond_64_bits_are_exact(engine)
    tests.test_keys_too_many_to_list_cost_one_small_job_more(engine)
    for name in ("parquet", "csv"):
        (Path(folder) / name).mkdir()
    tests.test_parquet_files_directories_globs_and_frames_are_read(engine, Path(folder) / "parquet")
    tests.test_csv_is_read_with_or_without_a_schema(engine, Path(folder) / "csv")
    for example in examples(12):
        compare(engine, example, load(engine, example))
    engine.close()


def test_a_cluster_with_nasty_settings_gives_the_same_integers(spark: Any, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path), json.dumps(NASTY)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        check=False,
    )
    assert "THE SAME" in found.stdout, found.stderr[-3000:]


def test_settings_that_say_how_much_are_kept_and_the_others_are_not(spark: Any) -> None:
    conf = {
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.catalog.lake": "org.example.Lake",
        "spark.sql.legacy.setopsPrecedence.enabled": "true",
        "spark.sql.ansi.enabled": "false",
    }
    engine = Spark(session=spark._sessions[0], conf=conf)
    for session in engine._sessions:
        settings = session.conf.getAll
        assert settings["spark.sql.shuffle.partitions"] == "7"
        assert settings["spark.sql.catalog.lake"] == "org.example.Lake"
        assert "spark.sql.legacy.setopsPrecedence.enabled" not in settings
        assert settings["spark.sql.ansi.enabled"] == "true"
    engine.close()
