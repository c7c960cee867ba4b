"""Statements made at random, of the shapes that analysts write: each runs in DuckDB as it is."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Statement:
    """A statement, the columns that are its keys, and those that are 0 where DuckDB has null."""

    text: str
    keys: tuple[str, ...]
    empty: tuple[str, ...]
    # Rows that are put together have no key: they are compared one after the other.
    ordered: bool = False


class Generator:
    """Statements from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.nest = 2  # how deep sub-queries that are values may be in one another

    def one_of(self, *options: str) -> str:
        return self.chance.choice(options)

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    # ── expressions ──────────────────────────────────────────────────────────────────

    def whole(self, depth: int, of: str) -> str:
        """An integer expression."""
        if self.nest and self.maybe(0.06):
            return self.scalar(of)
        columns = {"people": ["age", "gender"], "visits": ["units"], "both": ["age", "units", "gender"]}[of]
        if depth <= 0 or self.maybe(0.3):
            return self.one_of(*columns, str(self.chance.randint(-5, 60)))
        a, b = (self.whole(depth - 1, of) for _ in range(2))
        n = self.chance.randint(2, 7)
        return self.one_of(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {n})", f"({a} // {n})", f"({a} % {n})", f"ABS({a})",
            f"-({a})",
            f"COALESCE({a}, {b})", f"NULLIF({a}, {b})", f"GREATEST({a}, {b})", f"LEAST({a}, {b})",
            f"CASE WHEN {self.test(depth - 1, of)} THEN {a} ELSE {b} END",
            f"CASE {a} WHEN {n} THEN {b} END", f"SIGN({a})",
            f"CAST({self.real(depth - 1, of)} / 8 AS BIGINT)",
            f"LENGTH({self.text(of)})", f"EXTRACT({self.part()} FROM {self.day(of)})",
            f"IF({a} > {n}, {a}, {b})",
            f"YEAR({self.day(of)})", f"DATE_DIFF('{self.one_of('day', 'month', 'year', 'quarter')}', "
            f"{self.day(of)}, DATE '2021-03-05')", f"({self.day(of)} - DATE '2020-02-29')",
        )  # fmt: skip

    def scalar(self, of: str) -> str:
        """A sub-query that is a whole number, of a private or of a public table."""
        self.nest -= 1
        inner = self.one_of("people", "visits")
        test = self.test(1, inner)
        found = self.one_of(
            f"(SELECT COUNT(*) FROM {inner} WHERE {test})", f"(SELECT COUNT(*) FROM {inner})",
            f"(SELECT CAST(ROUND(AVG(CLAMP(COALESCE({self.whole(1, inner)}, 3), -50, 150))) AS BIGINT) "
            f"FROM {inner})",
            f"(SELECT COUNT(*) // 7 - COUNT(*) FILTER (WHERE {test}) FROM {inner})",
            "(SELECT MAX(size) FROM regions)",
            "(SELECT SUM(size) - COUNT(*) FROM regions WHERE region = 'south')",
            f"(SELECT size FROM regions WHERE town = '{self.one_of('Bern', 'Cork', 'Rome')}')",
        )  # fmt: skip
        self.nest += 1
        return found

    def part(self) -> str:
        return self.one_of("year", "month", "day", "dow", "isodow", "quarter")

    def real(self, depth: int, of: str) -> str:
        """A float expression."""
        column = {"people": "income", "visits": "cost", "both": "income"}[of]
        if depth <= 0 or self.maybe(0.4):
            return column
        a = self.real(depth - 1, of)
        return self.one_of(
            f"({a} * 0.5)", f"({a} + {self.whole(depth - 1, of)})", f"({a} / {self.chance.randint(2, 9)})",
            f"ROUND({a})", f"ROUND({a} / 8, 1)", f"FLOOR({a} / 3)", f"CEIL({a} / 3)", f"TRUNC({a})",
            f"SQRT(ABS({a}))", f"LN(1 + ABS({a}))", f"COALESCE({a}, 1.5)", f"({a} % 7)",
            f"CASE WHEN {self.test(depth - 1, of)} THEN {a} END",
        )  # fmt: skip

    def text(self, of: str) -> str:
        column = {"people": "city", "visits": "kind", "both": "kind"}[of]
        return self.one_of(
            column, f"LOWER({column})", f"UPPER({column})", f"SUBSTRING({column}, 2, 2)",
            f"LEFT({column}, 3)",
            f"{column} || '!'", f"COALESCE({column}, 'none')", f"TRIM({column})",
            f"CONCAT({column}, '-', {column})",
        )  # fmt: skip

    def day(self, of: str) -> str:
        return {"people": "born", "visits": "day", "both": self.one_of("born", "day")}[of]

    def test(self, depth: int, of: str) -> str:
        """A condition."""
        if depth > 0 and self.maybe(0.45):
            a, b = (self.test(depth - 1, of) for _ in range(2))
            return self.one_of(
                f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})", f"({a}) IS TRUE", f"({a}) IS NOT FALSE"
            )
        a, b = (self.whole(depth - 1, of) for _ in range(2))
        word = self.one_of("a", "Be", "or", "x", "blood")
        sign = self.one_of("=", "<>", "<", "<=", ">", ">=")
        options = [
            f"{a} {sign} {b}", f"{self.real(depth - 1, of)} {sign} {self.chance.randint(0, 900)}.5",
            f"{a} BETWEEN {self.chance.randint(-5, 20)} AND {self.chance.randint(10, 70)}",
            f"{a} IN (1, 2, {self.chance.randint(0, 50)})", f"{a} NOT IN (0, {self.chance.randint(0, 50)})",
            f"{a} IN (1, NULL, 30)", f"{a} IS NULL", f"{a} IS NOT NULL", f"{a} IS DISTINCT FROM {b}",
            f"{a} IS NOT DISTINCT FROM {b}", f"{self.text(of)} LIKE '{word}%'",
            f"{self.text(of)} LIKE '%{word}'",
            f"{self.text(of)} NOT LIKE '%{word}%'", f"{self.text(of)} LIKE 'B%n'",
            f"{self.text(of)} LIKE '_e%'",
            f"{self.text(of)} ILIKE '%A%'", f"{self.text(of)} {sign} 'Bern'",
            f"{self.day(of)} {sign} DATE '2021-06-01' - INTERVAL {self.chance.randint(1, 9)} MONTH",
            f"{self.day(of)} {sign} '1970-01-01'", f"CONTAINS({self.text(of)}, '{word}')",
            f"STARTS_WITH({self.text(of)}, '{word}')",
        ]  # fmt: skip
        if of != "visits":
            options += ["smokes", "NOT smokes", "smokes IS NULL", "(smokes = (age > 40))"]
        return self.chance.choice(options)

    # ── what is asked ────────────────────────────────────────────────────────────────

    def aggregate(self, of: str) -> tuple[str, bool]:
        """An aggregate, and whether it is 0 of nothing where DuckDB has null."""
        n, x = f"CLAMP({self.whole(2, of)}, -50, 150)", f"CLAMP({self.real(1, of)}, -1000, 100000)"
        only = f" FILTER (WHERE {self.test(1, of)})" if self.maybe(0.25) else ""
        kind = self.chance.randint(0, 11)
        if kind <= 2:
            return self.one_of(
                "COUNT(*)", f"COUNT({self.whole(1, of)})", f"COUNT({self.text(of)})"
            ) + only, False
        if kind == 3:
            return f"COUNT(DISTINCT {self.one_of(self.whole(1, of), self.text(of))})" + only, False
        if kind <= 6:
            return f"SUM({self.one_of(n, x)})" + only, True
        if kind == 7:
            return f"COUNT_IF({self.test(1, of)})" + only, True
        if kind <= 9:
            return f"AVG({self.one_of(n, x)})" + only, False
        return f"{self.one_of('VAR_POP', 'STDDEV_POP')}({self.one_of(n, x)})", False

    def source(self) -> tuple[str, str]:
        """FROM, and which columns it has."""
        kind = self.chance.randint(0, 9)
        if kind <= 3:
            return "people", "people"
        if kind <= 5:
            return "visits", "visits"
        if kind == 6:
            return "people JOIN visits USING (pid)", "both"
        if kind == 7:
            return "people p JOIN regions r ON p.city = r.town", "people"
        if kind == 8:
            some = (
                f"SELECT age, gender, city, income, born, smokes FROM people WHERE {self.test(1, 'people')}"
            )
            other = some.replace("WHERE", f"WHERE {self.test(0, 'people')} AND", 1)
            return (
                f"({some} {self.one_of('UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT')} {other}) AS t",
                "people",
            )
        return (f"(SELECT {self.one_of('', 'DISTINCT ')}units, cost, kind, day FROM visits "
                f"WHERE {self.test(1, 'visits')}) AS v"), "visits"  # fmt: skip

    def key(self, of: str) -> str:
        options = {
            "people": ["gender", "city", "age > 40", "CASE WHEN age < 30 THEN 'young' ELSE 'old' END",
                       "EXTRACT(month FROM born)", "COALESCE(city, 'none')"],
            "visits": ["kind", "units > 0", "MONTH(day)",
                       "CASE WHEN cost < 300 THEN 1 WHEN cost < 600 THEN 2 END"],
            "both": ["gender", "kind", "city", "age > units"],
        }  # fmt: skip
        return self.chance.choice(options[of])

    def statement(self) -> Statement:
        """One of them."""
        if self.maybe(0.15):
            return self.nested()
        if self.maybe(0.08):
            return self.both()
        source, of = self.source()
        aggregates = [self.aggregate(of) for _ in range(self.chance.randint(1, 4))]
        keys = [self.key(of)] if self.maybe(0.5) else []
        if keys and self.maybe(0.3):
            more = self.key(of)
            keys += [more] if more not in keys else []
        named = [f"{text} AS a{i}" for i, (text, _) in enumerate(aggregates)]
        if self.maybe(0.25):
            whole = self.one_of(
                "COUNT(*) * 2 + 1", "SUM(CLAMP(1, 0, 1)) / NULLIF(COUNT(*), 0)", "ROUND(COUNT(*) / 7, 2)",
                "CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END", "COALESCE(COUNT(*), 0) % 3",
                f"COUNT(*) - {self.scalar(of)}", f"COUNT(*) / NULLIF({self.scalar(of)}, 0)",
                f"CASE WHEN COUNT(*) > {self.scalar(of)} THEN 1 END",
            )  # fmt: skip
            named.append(f"{whole} AS post")
        listed = [f"{key} AS k{i}" for i, key in enumerate(keys)]
        text = f"SELECT {', '.join(listed + named)} FROM {source}"
        if self.maybe(0.6):
            text += f" WHERE {self.test(2, of)}"
        if keys:
            text += (
                f" GROUP BY {self.one_of(', '.join(keys), ', '.join(str(i + 1) for i in range(len(keys))))}"
            )
        empty = tuple(f"a{i}" for i, (_, is_zero) in enumerate(aggregates) if is_zero)
        return Statement(text, tuple(f"k{i}" for i in range(len(keys))), empty)

    def both(self) -> Statement:
        """Rows of SELECTs, put together and in an order."""
        selects = [self.row_of(number) for number in range(self.chance.randint(2, 3))]
        signs = ["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]
        text = selects[0]
        for each in selects[1:]:
            text += f" {self.one_of(*signs[:2], *signs)} {each}"
        limit = self.one_of("", "", " LIMIT 2", " LIMIT 3 OFFSET 1")
        return Statement(f"{text} ORDER BY 1, b, n DESC{limit}", (), (), ordered=True)

    def row_of(self, number: int) -> str:
        """A SELECT of a text, a condition and a number; by keys that all have records, or of one row."""
        of = self.one_of("people", "visits")
        n = self.one_of(
            "COUNT(*)", "COUNT(*) // 30", f"COUNT(*) FILTER (WHERE {self.test(1, of)})", "COUNT(*) * 0.5"
        )
        if self.maybe(0.5):
            return f"SELECT '{self.one_of('a', 'Bern')}' AS k, TRUE AS b, {n} AS n FROM {of}"
        key = {"people": "city", "visits": "kind"}[of]
        least = self.one_of("", " HAVING COUNT(*) > 12", f" HAVING COUNT(*) > {self.scalar(of)}")
        return (
            f"SELECT {key} AS k, FALSE AS b, {n} AS n FROM {of} WHERE {key} IS NOT NULL GROUP BY {key}{least}"
        )

    def nested(self) -> Statement:
        """A GROUP BY in a sub-query or a CTE."""
        of = self.one_of("people", "visits")
        key = {"people": "city", "visits": "pid"}[of]
        inner = (
            f"SELECT {key} AS k, COUNT(*) AS n, SUM({self.whole(1, of)}) AS s, "
            f"MAX({self.whole(1, of)}) AS m, AVG({self.whole(1, of)}) AS v, "
            f"COUNT({self.whole(1, of)}) AS c FROM {of}"
        )
        if self.maybe(0.5):
            inner += f" WHERE {self.test(1, of)}"
        inner += f" GROUP BY {key}"
        if self.maybe(0.4):
            inner += (
                f" HAVING {self.one_of('COUNT(*) > 1', f'MIN({self.whole(1, of)}) < 20', 'COUNT(*) % 2 = 0')}"
            )
        outer = (
            "SELECT COUNT(*) AS a0, SUM(CLAMP(n, 0, 100)) AS a1, SUM(CLAMP(s, -500, 9000)) AS a2, "
            "COUNT(m) AS a3, SUM(CLAMP(m, -99, 999)) AS a4, SUM(CLAMP(v, -99, 999)) AS a5, "
            "SUM(CLAMP(c, 0, 99)) AS a6"
        )
        test = self.one_of("", " WHERE n > 1", " WHERE s IS NOT NULL AND m > 3", " WHERE v < 50")  # fmt: skip
        if self.maybe(0.5):
            text = f"WITH g AS ({inner}) {outer} FROM g{test}"
        else:
            text = f"{outer} FROM ({inner}) AS g{test}"
        return Statement(text, (), ("a1", "a2", "a4", "a5", "a6"))
