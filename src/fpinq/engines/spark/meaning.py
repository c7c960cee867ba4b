"""What the SQL means does not depend on how a cluster is set up.

Spark has hundreds of settings, and many change results: how sets associate,
what an empty list means, which files of a folder are read. A list of the
harmful ones would never be complete, so it is the other way round: our sessions
keep the few kinds of settings that say where things are and how much of them to
take at a time. Every other SQL setting is as Spark ships it, or as said here.

Settings that are fixed when a cluster starts cannot be undone:
spark.sql.extensions may put any rule into Spark's planner. Whoever starts the
cluster is trusted with the data as it is.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEANING = {
    # One round per layer of subqueries; a plan may have hundreds.
    "spark.sql.analyzer.maxIterations": "10000",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # A file is asked for columns and nothing else: its statistics decide nothing (docs/decisions/0070).
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # The parser never forgets what it learnt from a text, unless told how much to keep, in % of the memory.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushRatio": "10",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # On by default since Spark 4.1, and wrong together with reused exchanges (docs/decisions/0033).
    "spark.sql.unionOutputPartitioning": "false",
    # A column may be called ${this}.
    "spark.sql.variable.substitute": "false",
}

# No record decides how the others are worked on: nothing is chosen by sizes, and nothing is planned again
# once it is known what is empty (docs/decisions/0062).
STEADY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in ("ConvertToLocalRelation", "PropagateEmptyRelation")
    ),
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
}

_CATALOGS = "spark.sql.catalog."

# Beginnings of the names of settings that say where and how much.
_KEPT = (
    "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    "spark.sql.adaptive.autoBroadcastJoinThreshold",
    "spark.sql.adaptive.coalescePartitions.",
    "spark.sql.adaptive.skewJoin.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    _CATALOGS,
    "spark.sql.codegen.",
    "spark.sql.defaultCatalog",
    "spark.sql.files.maxPartition",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.hive.metastore",
    "spark.sql.maxBroadcastTableSize",
    "spark.sql.parquet.columnarReaderBatchSize",
    "spark.sql.parquet.enableVectorizedReader",
    "spark.sql.redaction.",
    "spark.sql.shuffle.partitions",
    "spark.sql.sources.parallelPartitionDiscovery.",
)


def settle(session: "SparkSession", conf: Mapping[str, str], *, steady: bool) -> None:
    """Make a session mean what we mean. It must be one of our own: the owner's settings are the owner's."""
    for key, value in conf.items():
        # Spark says of what it does not know that it cannot be modified; catalogs have names of their own.
        if key.startswith(_KEPT) and (key.startswith(_CATALOGS) or session.conf.isModifiable(key)):
            session.conf.set(key, value)
    for key in _strange(session):
        session.conf.unset(key)
    for key, value in {**MEANING, **(STEADY if steady else {})}.items():
        session.conf.set(key, value)


def _strange(session: "SparkSession") -> Iterator[str]:
    """The settings that somebody made, that are not kept and can be undone."""
    for key in list(session.conf.getAll):
        if key.startswith("spark.sql.") and not key.startswith(_KEPT) and session.conf.isModifiable(key):
            yield key
