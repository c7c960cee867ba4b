"""The 22 questions of TPC-H, with the customer as the unit: which run, how changed, and how far off.

    pip install tpchgen-cli
    tpchgen-cli parquet -s 0.1 --output-dir=DIR
    python bench/tpch.py DIR [--epsilon 1] [--times 5] [--only 8]
    python bench/tpch.py DIR --plans [--times 25]

What is about customers is one root: customer, orders and lineitem, each with the customer's key as
`custkey`; lineitem has what is known of its part, too (a public table is sent along with every
query). What is not (nation, region, supplier) is public. Each question costs ε of the
customers' budget in all. Every statement is run by DuckDB as it is, too: errors are relative to that,
over the cells of the result, of all runs.

With --plans nothing is asked: medians of the processor time from text to plan, beside what of it the parser
takes that is not ours. The bar is 5 ms.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from sqlglot.dialects.duckdb import DuckDB

import fpinq as fp
from fpinq.sql.front import planned
from fpinq.sql.parsing import parse

PRIVATE = {
    "customer": "SELECT c_custkey AS custkey, c_nationkey, c_phone, c_acctbal::DOUBLE AS c_acctbal, "
    "c_mktsegment FROM '{dir}/customer.parquet'",
    "orders": "SELECT o_custkey AS custkey, o_orderkey, o_orderstatus, o_totalprice::DOUBLE AS o_totalprice, "
    "o_orderdate, o_orderpriority, o_comment FROM '{dir}/orders.parquet'",
    "lineitem": "SELECT o_custkey AS custkey, l_orderkey, l_partkey, l_suppkey, "
    "l_quantity::DOUBLE AS l_quantity, l_extendedprice::DOUBLE AS l_extendedprice, "
    "l_discount::DOUBLE AS l_discount, l_tax::DOUBLE AS l_tax, l_returnflag, l_linestatus, l_shipdate, "
    "l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, ps_supplycost::DOUBLE AS l_supplycost, "
    "p_name, p_brand, p_type, p_size::BIGINT AS p_size, p_container "
    "FROM '{dir}/lineitem.parquet' JOIN '{dir}/orders.parquet' ON l_orderkey = o_orderkey "
    "JOIN '{dir}/partsupp.parquet' ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey "
    "JOIN '{dir}/part.parquet' ON p_partkey = l_partkey",
}
PUBLIC = {
    "nation": "SELECT n_nationkey, n_name, n_regionkey FROM '{dir}/nation.parquet'",
    "region": "SELECT r_regionkey, r_name FROM '{dir}/region.parquet'",
    "supplier": "SELECT s_suppkey, s_name, s_nationkey FROM '{dir}/supplier.parquet'",
}
# From the specification of the data, not from the data.
ROWS_PER_UNIT = {"customer": 1, "orders": 40, "lineitem": 160}
COLUMNS = {
    "customer": {
        "c_acctbal": fp.Column(bounds=(-1000, 10_000)),
        "c_mktsegment": fp.Column(keys=["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]),
        "c_nationkey": fp.Column(keys=range(25), bounds=(0, 24)),
        "c_phone": fp.Column(max_length=15),
    },
    "orders": {
        "o_totalprice": fp.Column(bounds=(0, 600_000)),
        "o_orderpriority": fp.Column(keys=["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]),
        "o_comment": fp.Column(max_length=79),
    },
    "lineitem": {
        "l_quantity": fp.Column(bounds=(0, 50)),
        "l_extendedprice": fp.Column(bounds=(0, 105_000)),
        "l_discount": fp.Column(bounds=(0, 0.1)),
        "p_name": fp.Column(max_length=55),
        "l_supplycost": fp.Column(bounds=(0, 1000)),
        "l_tax": fp.Column(bounds=(0, 0.08)),
        "l_returnflag": fp.Column(keys=["A", "N", "R"]),
        "l_linestatus": fp.Column(keys=["F", "O"]),
        "l_shipmode": fp.Column(keys=["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]),
    },
}


@dataclass(frozen=True)
class Question:
    """A question: its statement, if there is one, and what had to be changed."""

    number: int
    name: str
    statement: str | None
    kind: str
    why: str


PARTS = "what is known of a part is a column of lineitem"
KEYS = "joins name the unit and the order, custkey and orderkey, so that they stay inside a person"
LINES = "/*+ at_most(o.o_orderkey, 1), at_most(l.l_orderkey, 7) */"

QUESTIONS = [
    Question(1, "pricing summary", """
        SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
            SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
            SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, AVG(l_quantity) AS avg_qty,
            AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""", "as written", ""),
    Question(2, "minimum cost supplier", None, "public", "parts and suppliers only: no customer is in it"),
    Question(3, "shipping priority", f"""
        SELECT COUNT(*) AS customers, SUM(CLAMP(revenue, 0, 500000)) AS revenue FROM (
            SELECT {LINES} c.custkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue
            FROM customer c JOIN orders o ON c.custkey = o.custkey
                JOIN lineitem l ON o.custkey = l.custkey AND o_orderkey = l_orderkey
            WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15'
                AND l_shipdate > DATE '1995-03-15'
            GROUP BY c.custkey) AS waiting""",
        "adapted", f"ten orders are ten persons' records: what waits in all, bounded per customer; {KEYS}"),
    Question(4, "order priority checking", """
        SELECT o_orderpriority, COUNT(*) AS order_count FROM orders o
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
            AND EXISTS (SELECT 1 FROM lineitem l WHERE l.custkey = o.custkey AND l.l_orderkey = o.o_orderkey
                AND l.l_commitdate < l.l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority""", "adapted", KEYS),
    Question(5, "local supplier volume", f"""
        SELECT {LINES} n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer c, orders o, lineitem l, supplier, nation, region
        WHERE c.custkey = o.custkey AND o.custkey = l.custkey AND l_orderkey = o_orderkey
            AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01'
            AND o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR
        GROUP BY n_name ORDER BY revenue DESC""", "adapted", KEYS),
    Question(6, "forecasting revenue change", """
        SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
            AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24""", "as written", ""),
    Question(7, "volume shipping", f"""
        SELECT {LINES} n1.n_name AS supp_nation, n2.n_name AS cust_nation, YEAR(l_shipdate) AS l_year,
            SUM(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer c JOIN orders o ON c.custkey = o.custkey
            JOIN lineitem l ON o.custkey = l.custkey AND o_orderkey = l_orderkey
            JOIN supplier ON l_suppkey = s_suppkey JOIN nation n1 ON s_nationkey = n1.n_nationkey
            JOIN nation n2 ON c_nationkey = n2.n_nationkey
        WHERE n1.n_name IN ('FRANCE', 'GERMANY') AND n2.n_name IN ('FRANCE', 'GERMANY')
            AND n1.n_name <> n2.n_name AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
        GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
        "adapted", f"the sub-query is written out; {KEYS}"),
    Question(8, "national market share", f"""
        SELECT {LINES} YEAR(o_orderdate) AS o_year,
            SUM(CASE WHEN n2.n_name = 'BRAZIL' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
                / NULLIF(SUM(l_extendedprice * (1 - l_discount)), 0) AS mkt_share
        FROM customer c JOIN orders o ON c.custkey = o.custkey
            JOIN lineitem l ON o.custkey = l.custkey AND o_orderkey = l_orderkey
            JOIN supplier ON l_suppkey = s_suppkey
            JOIN nation n1 ON c_nationkey = n1.n_nationkey JOIN region ON n1.n_regionkey = r_regionkey
            JOIN nation n2 ON s_nationkey = n2.n_nationkey
        WHERE r_name = 'AMERICA' AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
            AND p_type = 'ECONOMY ANODIZED STEEL'
        GROUP BY o_year ORDER BY o_year""", "adapted", f"the sub-query is written out; {PARTS}; {KEYS}"),
    Question(9, "product type profit", f"""
        SELECT {LINES} n_name AS supp_nation, YEAR(o_orderdate) AS o_year,
            SUM(CLAMP(l_extendedprice * (1 - l_discount) - l_supplycost * l_quantity, -50000, 105000))
                AS profit
        FROM orders o JOIN lineitem l ON o.custkey = l.custkey AND o_orderkey = l_orderkey
            JOIN supplier ON l_suppkey = s_suppkey
            JOIN nation ON s_nationkey = n_nationkey
        WHERE p_name LIKE '%green%' AND YEAR(o_orderdate) BETWEEN 1992 AND 1998
        GROUP BY supp_nation, o_year ORDER BY supp_nation, o_year DESC""",
        "adapted", f"years are named, profit is bounded; {PARTS}, and its cost; {KEYS}"),
    Question(10, "returned item reporting", f"""
        SELECT n_name, SUM(CLAMP(revenue, 0, 300000)) AS revenue FROM (
            SELECT {LINES} c.custkey, MIN(c_nationkey) AS nationkey,
                SUM(l_extendedprice * (1 - l_discount)) AS revenue
            FROM customer c JOIN orders o ON c.custkey = o.custkey
                JOIN lineitem l ON o.custkey = l.custkey AND o_orderkey = l_orderkey
            WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1993-10-01' + INTERVAL '3' MONTH
                AND l_returnflag = 'R'
            GROUP BY c.custkey) AS returned JOIN nation ON nationkey = n_nationkey
        GROUP BY n_name ORDER BY revenue DESC""",
        "adapted", f"customers are what must not be told: by nation, bounded per customer; {KEYS}"),
    Question(11, "important stock", None, "public", "parts and suppliers only: no customer is in it"),
    Question(12, "shipping modes and priority", f"""
        SELECT {LINES} l_shipmode,
            SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END)
                AS high_line_count,
            SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END)
                AS low_line_count
        FROM orders o JOIN lineitem l ON o.custkey = l.custkey AND o_orderkey = l_orderkey
        WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
            AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1994-01-01' + INTERVAL '1' YEAR
        GROUP BY l_shipmode ORDER BY l_shipmode""", "adapted", KEYS),
    Question(13, "customer distribution", """
        SELECT c_count, COUNT(*) AS custdist FROM (
            SELECT c.custkey, COUNT(o_orderkey) AS c_count
            FROM customer c LEFT JOIN orders o ON c.custkey = o.custkey AND o_comment NOT LIKE '%special%'
            GROUP BY c.custkey) AS c_orders
        WHERE c_count BETWEEN 0 AND 40 GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
        "adapted", "one word of the comment, not two in order; the counts are named"),
    Question(14, "promotion effect", """
        SELECT 100.00 * SUM(CLAMP(promo, 0, 200000)) / SUM(CLAMP(revenue, 0, 200000)) AS promo_revenue FROM (
            SELECT custkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue,
                SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) END) AS promo
            FROM lineitem WHERE l_shipdate >= DATE '1995-09-01'
                AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH
            GROUP BY custkey) AS each""",
        "adapted", f"bounded per customer; {PARTS}"),
    Question(15, "top supplier", """
        SELECT s_suppkey, s_name, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue
        FROM lineitem JOIN supplier ON s_suppkey = l_suppkey
        WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
        GROUP BY s_suppkey, s_name""",
        "adapted", "the view and its maximum are ORDER BY … DESC LIMIT 1; errors are of all suppliers"),
    Question(16, "parts and suppliers", None, "public", "parts and suppliers only: no customer is in it"),
    Question(17, "small-quantity-order revenue", """
        SELECT SUM(CLAMP(price, 0, 20000)) / 7.0 AS avg_yearly FROM (
            SELECT custkey, SUM(l_extendedprice) AS price FROM lineitem
            WHERE p_brand = 'Brand#23' AND l_quantity < (
                SELECT 0.2 * AVG(CLAMP(q, 0, 50)) FROM (
                    SELECT custkey, AVG(l_quantity) AS q FROM lineitem GROUP BY custkey) AS bought)
            GROUP BY custkey) AS each""",
        "adapted", f"bounded per customer; the average of all customers, not of each part; {PARTS}"),
    Question(18, "large volume customer", """
        SELECT COUNT(*) AS orders, SUM(CLAMP(q, 300, 350)) AS quantity FROM (
            SELECT custkey, l_orderkey, SUM(l_quantity) AS q FROM lineitem
            GROUP BY custkey, l_orderkey HAVING SUM(l_quantity) > 300) AS large""",
        "adapted", "names of customers are what must not be told: how many such orders there are"),
    Question(19, "discounted revenue", """
        SELECT SUM(CLAMP(revenue, 0, 60000)) AS revenue FROM (
            SELECT custkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem
        WHERE l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
            (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
                AND l_quantity >= 1 AND l_quantity <= 1 + 10 AND p_size BETWEEN 1 AND 5)
            OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
                AND l_quantity >= 10 AND l_quantity <= 10 + 10 AND p_size BETWEEN 1 AND 10)
            OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
                AND l_quantity >= 20 AND l_quantity <= 20 + 10 AND p_size BETWEEN 1 AND 15))
            GROUP BY custkey) AS each""",
        "adapted", f"bounded per customer; {PARTS}"),
    Question(20, "potential part promotion", None, "cannot",
        "which suppliers hold twice what was sold of a part: seven sales of each decide, below any noise"),
    Question(21, "suppliers who kept orders waiting", """
        SELECT s_name, COUNT(*) AS numwait FROM (
            SELECT custkey, l_orderkey, MIN(l_suppkey) AS first_supp, MAX(l_suppkey) AS last_supp,
                MIN(CASE WHEN l_receiptdate > l_commitdate THEN l_suppkey END) AS late,
                MAX(CASE WHEN l_receiptdate > l_commitdate THEN l_suppkey END) AS also_late
            FROM lineitem GROUP BY custkey, l_orderkey) AS waiting
            JOIN supplier ON late = s_suppkey JOIN nation ON s_nationkey = n_nationkey
        WHERE first_supp <> last_supp AND late = also_late AND n_name = 'SAUDI ARABIA'
        GROUP BY s_name""",
        "adapted", "orders with one late supplier of several, as a GROUP BY of each order's lines"),
    Question(22, "global sales opportunity", """
        SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
        FROM (SELECT SUBSTRING(c_phone, 1, 2) AS cntrycode, c_acctbal FROM customer c
            WHERE SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
                AND c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0.00
                    AND SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17'))
                AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.custkey = c.custkey)) AS custsale
        GROUP BY cntrycode ORDER BY cntrycode""", "as written", ""),
]  # fmt: skip


def plain(folder: Path) -> duckdb.DuckDBPyConnection:
    """The tables as DuckDB has them."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE MACRO clamp(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END"
    )
    for name, query in {**PRIVATE, **PUBLIC}.items():
        connection.execute(f"CREATE TABLE {name} AS {query.format(dir=folder)}")
    return connection


def protected(connection: duckdb.DuckDBPyConnection, folder: Path) -> dict[str, Any]:
    """The same, protected; public is what is about no customer."""
    files = {}
    for name in PRIVATE:
        files[name] = str(folder / f"{name}_by_customer.parquet")
        connection.execute(f"COPY {name} TO '{files[name]}' (FORMAT parquet)")
    tables = fp.protect(
        files, unit="custkey", rows_per_unit=ROWS_PER_UNIT, columns=COLUMNS, budget=10**9, name="tpch"
    )
    found = {name: fp.public(connection.sql(f"SELECT * FROM {name}").to_arrow_table()) for name in PUBLIC}
    return {**tables, **found}


def errors(question: Question, ours: Any, theirs: duckdb.DuckDBPyConnection) -> Iterator[float]:
    """The relative errors of the cells of a result."""
    assert question.statement is not None
    found = theirs.execute(question.statement)
    names = [column[0] for column in found.description or ()]
    lines = list(ours.values()) if ours.is_level else [ours]
    answered = list(lines[0])
    keys = [name for name in names if name not in answered]
    exact = {tuple(row[names.index(key)] for key in keys): row for row in found.fetchall()}
    for line in lines:
        row = exact.get(tuple(line.cells[key] for key in keys))
        for name in answered if row is not None else ():
            true = float(row[names.index(name)] or 0)
            value = line[name].value
            if true:
                yield math.inf if value is None else abs(float(value) - true) / abs(true)


def plans(tables: dict[str, Any], times: int, only: int | None) -> None:
    """Print how long it takes from each text to its plan."""
    dialect = DuckDB()
    print(f"{'ms':>4}{'parser':>10}{'parse':>10}{'plan':>10}")
    for question in QUESTIONS:
        text = question.statement
        if text is None or only not in (None, question.number):
            continue
        ways: list[Callable[[str], Any]] = [
            lambda text: dialect.parser().parse(dialect.tokenize(text), text),
            parse,
            lambda text: planned(text, tables),
        ]
        took: list[list[float]] = [[], [], []]
        for _ in range(times + 1):  # in turns
            for each, way in zip(took, ways, strict=True):
                start = time.process_time()
                way(text)
                each.append(1000 * (time.process_time() - start))
        shown = "".join(f"{statistics.median(each[1:]):>10.2f}" for each in took)
        print(f"{question.number:>4}{shown}", flush=True)


def main() -> None:
    """Ask all of them, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", type=int)
    parser.add_argument("--plans", action="store_true")
    arguments = parser.parse_args()
    connection = plain(arguments.folder)
    tables = protected(connection, arguments.folder)
    if arguments.plans:
        plans(tables, arguments.times, arguments.only)
        return
    print(f"| | question | runs | median relative error at ε = {arguments.epsilon} | plan, ms | why |")
    print("|---|---|---|---|---|---|")
    for question in QUESTIONS:
        if arguments.only not in (None, question.number):
            continue
        shown, took = "", ""
        if question.statement is not None:
            fp.sql(f"EXPLAIN {question.statement}", **tables)
            start = time.process_time()
            fp.sql(f"EXPLAIN {question.statement}", **tables)
            took = f"{1000 * (time.process_time() - start):.1f}"
            explained: Any = fp.sql(f"EXPLAIN {question.statement}", epsilon=1, **tables)
            # What is charged to the root is ε: a customer has so many records in the tables that are asked.
            epsilon = Fraction(arguments.epsilon) / explained.price
            found: list[float] = []
            for _ in range(arguments.times):
                ours = fp.sql(question.statement, epsilon=epsilon, **tables)
                found += errors(question, ours, connection)
            middle = 100 * statistics.median(found) if found else math.nan
            shown = f"{middle:,.0f} %" if middle >= 10 else f"{middle:.2g} %"
        print(
            f"| {question.number} | {question.name} | {question.kind} | {shown} | {took} | {question.why} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
