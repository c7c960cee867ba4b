-- count
SELECT COUNT(*) FROM people
SELECT COUNT(*) AS n FROM people
SELECT COUNT(age) FROM people
SELECT COUNT(DISTINCT city) FROM people
SELECT COUNT(DISTINCT age % 10) AS last_digits FROM people
SELECT COUNT(*) FILTER (WHERE age > 40) AS old, COUNT(*) AS n FROM people
SELECT COUNT_IF(smokes) AS smokers FROM people
SELECT COUNT(smokes) FROM people
SELECT COUNT(1) FROM people
SELECT COUNT() FROM people
select count(*) from PEOPLE where AGE > 17
SELECT "people"."age" > 3 AS old, COUNT(*) FROM people GROUP BY old
SELECT COUNT(*), COUNT(*) FROM people
SELECT COUNT(*) AS n, COUNT(*) AS n FROM people
SELECT COUNT(DISTINCT city, age) FROM people
SELECT COUNT(*) FROM people -- a comment
SELECT /* another */ COUNT(*) FROM people
SELECT COUNT(*) FROM people;
-- sums and averages
SELECT SUM(age) FROM people
SELECT SUM(age), AVG(age), COUNT(*) FROM people
SELECT SUM(CLAMP(income, 0, 50000)) FROM people
SELECT AVG(income) FROM people
SELECT AVG(CLAMP(income, 0, 50000)) AS mean FROM people
SELECT SUM(income * 2 + age) FROM people
SELECT SUM(age * age) FROM people
SELECT SUM(-age) FROM people
SELECT SUM(ABS(age - 50)) FROM people
SELECT SUM(age / 2) FROM people
SELECT SUM(age // 2) FROM people
SELECT SUM(age % 7) FROM people
SELECT SUM(CASE WHEN age > 40 THEN 1 ELSE 0 END) FROM people
SELECT SUM(CASE WHEN city = 'Bern' THEN income END) FROM people
SELECT SUM(smokes) FROM people
SELECT SUM(income) FILTER (WHERE smokes) FROM people
SELECT AVG(age) FILTER (WHERE gender = 1) AS f, AVG(age) FILTER (WHERE gender = 0) AS m FROM people
SELECT SUM(COALESCE(income, 0)) FROM people
SELECT SUM(LEAST(age, 65)) FROM people
SELECT SUM(EXTRACT(month FROM born)) FROM people
SELECT SUM(ROUND(income / 1000)) FROM people
SELECT SUM(SQRT(age)) FROM people
SELECT SUM(LENGTH(city)) FROM people
SELECT SUM(DISTINCT age) FROM people
SELECT SUM(city) FROM people
SELECT AVG(born) FROM people
SELECT SUM(CLAMP(age, 100, 0)) FROM people
SELECT SUM(CLAMP(age, gender, 100)) FROM people
SELECT SUM(CLAMP(city, 0, 100)) FROM people
SELECT SUM(CLAMP(age)) FROM people
SELECT SUM(pid) FROM people
-- spread, order, together
SELECT VAR_POP(age), STDDEV_POP(age) FROM people
SELECT VARIANCE(age), STDDEV(income) FROM people
SELECT VAR_SAMP(age) FROM people
SELECT MEDIAN(age) FROM people
SELECT MEDIAN(income), QUANTILE_CONT(income, 0.9), QUANTILE(age, 0.25) FROM people
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) FROM people
SELECT PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY income) AS q3 FROM people
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age DESC) FROM people
SELECT QUANTILE_CONT(age, 1.5) FROM people
SELECT QUANTILE_CONT(age, gender) FROM people
SELECT MIN(age), MAX(age) FROM people
SELECT MAX(income) FROM people WHERE smokes
SELECT MODE(city) FROM people
SELECT MODE(pid) FROM people
SELECT CORR(age, income), COVAR_POP(age, income) FROM people
SELECT REGR_SLOPE(income, age), REGR_INTERCEPT(income, age) FROM people
SELECT COVAR_SAMP(age, gender) FROM people
SELECT CORR(age, city) FROM people
-- conditions
SELECT COUNT(*) FROM people WHERE age > 17
SELECT COUNT(*) FROM people WHERE age > 17 AND city = 'Bern' OR smokes
SELECT COUNT(*) FROM people WHERE NOT (age > 17)
SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 30
SELECT COUNT(*) FROM people WHERE age NOT BETWEEN 20 AND 30
SELECT COUNT(*) FROM people WHERE age IN (20, 30, NULL)
SELECT COUNT(*) FROM people WHERE age NOT IN (20, 30)
SELECT COUNT(*) FROM people WHERE age NOT IN (20, NULL)
SELECT COUNT(*) FROM people WHERE age IS NULL
SELECT COUNT(*) FROM people WHERE age IS NOT NULL
SELECT COUNT(*) FROM people WHERE age = NULL
SELECT COUNT(*) FROM people WHERE age <> NULL OR TRUE
SELECT COUNT(*) FROM people WHERE smokes IS TRUE
SELECT COUNT(*) FROM people WHERE smokes IS NOT FALSE
SELECT COUNT(*) FROM people WHERE smokes IS UNKNOWN
SELECT COUNT(*) FROM people WHERE age IS DISTINCT FROM gender
SELECT COUNT(*) FROM people WHERE TRUE
SELECT COUNT(*) FROM people WHERE FALSE
SELECT COUNT(*) FROM people WHERE NULL
SELECT COUNT(*) FROM people WHERE 1 = 1 AND 2 > 1
SELECT COUNT(*) FROM people WHERE age
SELECT COUNT(*) FROM people WHERE age > 'x'
SELECT COUNT(*) FROM people WHERE age = city
SELECT COUNT(*) FROM people WHERE COUNT(*) > 3
-- texts
SELECT COUNT(*) FROM people WHERE city LIKE 'B%'
SELECT COUNT(*) FROM people WHERE city LIKE '%k'
SELECT COUNT(*) FROM people WHERE city LIKE '%or%'
SELECT COUNT(*) FROM people WHERE city LIKE 'C%k'
SELECT COUNT(*) FROM people WHERE city LIKE 'Bern'
SELECT COUNT(*) FROM people WHERE city LIKE '_a%'
SELECT COUNT(*) FROM people WHERE city LIKE 'D_x'
SELECT COUNT(*) FROM people WHERE city LIKE '%'
SELECT COUNT(*) FROM people WHERE city NOT LIKE '%a%'
SELECT COUNT(*) FROM people WHERE city ILIKE 'b%'
SELECT COUNT(*) FROM people WHERE city LIKE 'B!%' ESCAPE '!'
SELECT COUNT(*) FROM people WHERE city LIKE '%a%b%'
SELECT COUNT(*) FROM people WHERE city LIKE city
SELECT COUNT(*) FROM people WHERE LOWER(city) = 'bern'
SELECT COUNT(*) FROM people WHERE UPPER(city) || '!' = 'BERN!'
SELECT COUNT(*) FROM people WHERE SUBSTRING(city, 1, 2) = 'Be'
SELECT COUNT(*) FROM people WHERE SUBSTRING(city FROM 2 FOR 2) = 'er'
SELECT COUNT(*) FROM people WHERE LEFT(city, 1) = 'A'
SELECT COUNT(*) FROM people WHERE SUBSTRING(city, 0, 2) = 'B'
SELECT COUNT(*) FROM people WHERE CONCAT(city, '-', gender) = 'Bern-1'
SELECT COUNT(*) FROM people WHERE TRIM(city) = 'Dax'
SELECT COUNT(*) FROM people WHERE CONTAINS(city, 'e') OR STARTS_WITH(city, 'D') OR SUFFIX(city, 'k')
SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(city, '^B')
SELECT COUNT(*) FROM people WHERE city ~ '^B'
SELECT COUNT(*) FROM people WHERE REVERSE(city) = 'nreB'
-- time
SELECT COUNT(*) FROM people WHERE born < DATE '1970-01-01'
SELECT COUNT(*) FROM people WHERE born >= '1970-01-01'
SELECT COUNT(*) FROM visits WHERE day < DATE '2023-12-01' - INTERVAL '90' DAY
SELECT COUNT(*) FROM visits WHERE day >= DATE '2021-01-31' AND day < DATE '2021-01-31' + INTERVAL 1 MONTH
SELECT COUNT(*) FROM visits WHERE EXTRACT(year FROM day) = 2021
SELECT COUNT(*) FROM visits WHERE YEAR(day) = 2021 AND QUARTER(day) = 2 AND DAYOFWEEK(day) = 0
SELECT COUNT(*) FROM visits WHERE DATE_PART('isodow', day) = 7
SELECT COUNT(*) FROM visits WHERE DATE_DIFF('month', day, DATE '2022-01-01') > 3
SELECT COUNT(*) FROM visits WHERE day - DATE '2021-01-01' > 30
SELECT COUNT(*) FROM visits WHERE day + INTERVAL 3 DAY > DATE '2021-01-01'
SELECT COUNT(*) FROM visits WHERE day < 'soon'
SELECT COUNT(*) FROM visits WHERE EXTRACT(century FROM day) = 21
SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('month', day) = DATE '2021-01-01'
SELECT COUNT(*) FROM visits WHERE day < CURRENT_DATE
SELECT COUNT(*) FROM visits WHERE day < NOW()
-- casts and choices
SELECT SUM(CAST(smokes AS INTEGER)) FROM people
SELECT AVG(CAST(age AS DOUBLE)) FROM people
SELECT SUM(CAST(CLAMP(income, 0, 1000) AS BIGINT)) FROM people
SELECT COUNT(*) FROM people WHERE CAST(age AS VARCHAR) LIKE '4%'
SELECT COUNT(*) FROM people WHERE TRY_CAST(city AS INTEGER) IS NULL
SELECT COUNT(*) FROM people WHERE age::DOUBLE > 40.5
SELECT COUNT(*) FROM people WHERE CAST('1970-01-01' AS DATE) > born
SELECT COUNT(*) FROM people WHERE CAST(income AS VARCHAR) = '1'
SELECT COUNT(*) FROM people WHERE CAST(age AS BLOB) IS NULL
SELECT COUNT(*) FROM people WHERE CASE city WHEN 'Bern' THEN 1 WHEN 'Dax' THEN 2 END = 2
SELECT COUNT(*) FROM people WHERE CASE WHEN age > 40 THEN city ELSE 'none' END = 'none'
SELECT COUNT(*) FROM people WHERE NULLIF(gender, 0) IS NULL
SELECT COUNT(*) FROM people WHERE IFNULL(age, -1) = -1
SELECT COUNT(*) FROM people WHERE IF(smokes, age, 0) > 30
SELECT COUNT(*) FROM people WHERE GREATEST(age, gender, 3) = 3
SELECT COUNT(*) FROM people WHERE age / 0 IS NULL
SELECT COUNT(*) FROM people WHERE 9223372036854775807 + age IS NULL
SELECT COUNT(*) FROM people WHERE age > 9223372036854775808
-- groups
SELECT gender, COUNT(*) FROM people GROUP BY gender
SELECT gender, AVG(age) FROM people WHERE age > 17 GROUP BY gender
SELECT city, gender, COUNT(*) AS n FROM people GROUP BY city, gender
SELECT city, gender, COUNT(*) AS n FROM people GROUP BY ALL
SELECT city, COUNT(*) AS n FROM people GROUP BY 1
SELECT city AS town, COUNT(*) AS n FROM people GROUP BY town
SELECT UPPER(city) AS town, COUNT(*) AS n FROM people GROUP BY city
SELECT age > 40 AS old, COUNT(*) AS n FROM people GROUP BY age > 40
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS band, COUNT(*) AS n FROM people GROUP BY band
SELECT MONTH(born) AS m, COUNT(*) AS n FROM people GROUP BY m
SELECT YEAR(day) AS y, COUNT(*) AS n FROM visits WHERE day BETWEEN DATE '2020-01-01' AND DATE '2022-12-31' GROUP BY y
SELECT YEAR(day) AS y, COUNT(*) AS n FROM visits GROUP BY y
SELECT age, COUNT(*) AS n FROM people WHERE age IN (20, 30, 40) GROUP BY age
SELECT age, COUNT(*) AS n FROM people WHERE age BETWEEN 20 AND 24 GROUP BY age
SELECT pid, COUNT(*) AS n FROM people WHERE pid = 3 GROUP BY pid
SELECT age, COUNT(*) FROM people GROUP BY age
SELECT age // 10, COUNT(*) FROM people GROUP BY age // 10
SELECT gender * 2 + 1 AS g, COUNT(*) AS n FROM people GROUP BY g
SELECT city, age FROM people GROUP BY city
SELECT city FROM people GROUP BY city
SELECT city, COUNT(*) FROM people
SELECT COUNT(*) FROM people GROUP BY COUNT(*)
SELECT city, COUNT(*) FROM people GROUP BY 3
SELECT COUNT(*) AS n FROM people GROUP BY city
SELECT city, AVG(age) AS a, MEDIAN(age) AS m, COUNT(DISTINCT age) AS d FROM people GROUP BY city
SELECT v.k, COUNT(*) AS n FROM people JOIN (VALUES (20), (30)) AS v(k) ON people.age = v.k GROUP BY v.k
SELECT pid, COUNT(*) FROM people WHERE pid BETWEEN 1 AND 1000 AND age BETWEEN 1 AND 1000 GROUP BY pid, age
-- levels
SELECT city, gender, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY ROLLUP (city, gender)
SELECT city, gender, COUNT(*) AS n, SUM(age) AS s FROM people WHERE city IS NOT NULL GROUP BY CUBE (city, gender)
SELECT city, gender, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY GROUPING SETS ((city), (gender), ())
SELECT city, GROUPING(city) AS g, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY ROLLUP (city)
SELECT city, gender, smokes, COUNT(*) AS n FROM people GROUP BY gender, ROLLUP (city)
SELECT city, gender, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY gender, ROLLUP (city)
SELECT city, COUNT(*) FROM people GROUP BY GROUPING SETS ((city), (city))
SELECT age, COUNT(*) FROM people GROUP BY ROLLUP (age)
-- what is made of answers
SELECT SUM(income) / COUNT(*) AS mean FROM people
SELECT COUNT(*) / 0 AS nothing FROM people
SELECT COUNT(*) // 0 AS nothing, COUNT(*) % 0 AS nothing_left FROM people
SELECT ROUND(AVG(age), 1) AS mean FROM people
SELECT CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END AS how FROM people
SELECT city, COUNT(*) AS n, 100 * COUNT(*) / 60 AS share FROM people GROUP BY city
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 10
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING n > 10
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING AVG(age) > 10 AND city <> 'Dax'
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY 2, 1
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY AVG(age) DESC NULLS LAST LIMIT 2
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY city LIMIT 2 OFFSET 1
SELECT DISTINCT gender + 1 AS g FROM people GROUP BY gender
SELECT city, COUNT(*) AS n FROM people GROUP BY city LIMIT ALL
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY age
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING age > 3
-- sub-queries
SELECT COUNT(*) FROM (SELECT * FROM people) AS t
SELECT COUNT(*) FROM (SELECT age FROM people WHERE age > 17) AS t WHERE age < 30
SELECT AVG(a) FROM (SELECT age AS a FROM people) AS t
SELECT AVG(CLAMP(twice, 0, 200)) FROM (SELECT age * 2 AS twice FROM people) AS t
SELECT COUNT(*) FROM (SELECT DISTINCT city, gender FROM people) AS t
SELECT COUNT(*) AS groups, AVG(CLAMP(n, 0, 50)) AS mean FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) AS t
SELECT SUM(CLAMP(total, 0, 4000)) FROM (SELECT pid, SUM(cost) AS total FROM visits GROUP BY pid) AS t
SELECT COUNT(*) FROM (SELECT pid, MAX(cost) AS top FROM visits GROUP BY pid HAVING COUNT(*) > 2) AS t WHERE top > 500
SELECT n, COUNT(*) AS persons FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) AS t WHERE n IN (1, 2, 3, 4) GROUP BY n
WITH adults AS (SELECT * FROM people WHERE age > 17) SELECT gender, COUNT(*) AS n FROM adults GROUP BY gender
WITH a AS (SELECT age, city FROM people), b AS (SELECT city FROM a WHERE age > 40) SELECT COUNT(*) FROM b
WITH g(town, n) AS (SELECT city, COUNT(*) FROM people GROUP BY city) SELECT COUNT(*) FROM g WHERE n > 3
SELECT COUNT(*) FROM (SELECT city, COUNT(DISTINCT age) AS n FROM people GROUP BY city) AS t
SELECT COUNT(*) FROM (SELECT MEDIAN(age) AS m FROM people GROUP BY city) AS t
SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM people) AS t
SELECT COUNT(*) FROM (SELECT age FROM people LIMIT 3) AS t
SELECT COUNT(*) FROM (SELECT age FROM people ORDER BY age) AS t
SELECT (SELECT COUNT(*) FROM people) AS n FROM people
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)
WITH RECURSIVE r AS (SELECT 1) SELECT COUNT(*) FROM r
SELECT AVG(income) FROM (SELECT SUM(income) AS income FROM people GROUP BY city) AS t
-- sub-queries that are values
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people) AND gender = 1
SELECT COUNT(*) AS n FROM people WHERE age BETWEEN (SELECT AVG(age) FROM people) AND (SELECT AVG(age) FROM people) + 10
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people WHERE age > (SELECT AVG(age) FROM people))
SELECT COUNT(*) AS n FROM people WHERE income > (SELECT SUM(cost) / NULLIF(COUNT(*), 0) FROM visits)
SELECT city, COUNT(*) AS n, COUNT(*) * 100 / (SELECT COUNT(*) FROM people) AS share FROM people GROUP BY city
SELECT city, COUNT(*) - (SELECT COUNT(*) FROM visits) AS d FROM people GROUP BY city
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > (SELECT COUNT(*) / 4 FROM people)
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY (SELECT COUNT(*) FROM people) - COUNT(*), city
SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM visits) AS d
SELECT (SELECT COUNT(*) FROM people) AS n, (SELECT COUNT(*) FROM people) AS same
SELECT SUM(CLAMP(age - (SELECT AVG(age) FROM people), -120, 120)) AS s FROM people
SELECT SUM(CLAMP((age - (SELECT AVG(age) FROM people)) * (age - (SELECT AVG(age) FROM people)), 0, 15000)) AS s FROM people
SELECT COUNT(*) FILTER (WHERE age > (SELECT AVG(age) FROM people)) AS n FROM people
SELECT age > (SELECT AVG(age) FROM people) AS old, COUNT(*) AS n FROM people GROUP BY 1
SELECT COUNT(*) AS n FROM people WHERE age IN ((SELECT COUNT(*) FROM people), 30, 31)
SELECT COUNT(*) AS n FROM (SELECT pid, COUNT(*) AS m FROM visits GROUP BY pid HAVING COUNT(*) > (SELECT COUNT(*) / 50 FROM visits)) AS v
SELECT COUNT(*) AS n FROM people JOIN visits USING (pid) WHERE cost > (SELECT AVG(cost) FROM visits)
SELECT COUNT(*) AS n FROM people WHERE pid IN (SELECT pid FROM visits WHERE cost > (SELECT AVG(cost) FROM visits))
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT MAX(size) FROM regions)
SELECT COUNT(*) AS n FROM people WHERE city = (SELECT town FROM regions WHERE size = 5)
SELECT COUNT(*) AS n FROM people WHERE city = (SELECT town FROM regions WHERE size = 99)
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT SUM(size) + COUNT(DISTINCT region) * 2 FROM regions WHERE town <> 'Dax')
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT MEDIAN(size) + AVG(size) FROM regions)
SELECT SUM(CLAMP(age, 0, (SELECT 20 * MIN(size) FROM regions))) AS s FROM people
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT 30)
WITH adults AS (SELECT * FROM people WHERE age > 17) SELECT COUNT(*) AS n FROM adults WHERE age > (SELECT AVG(age) FROM adults)
SELECT /*+ weight(m, 3) */ COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) AS m FROM people)
SELECT COUNT(*) FROM people p WHERE age > (SELECT AVG(v.units) FROM visits v WHERE v.pid = p.pid)
SELECT COUNT(*) FROM people WHERE age > (SELECT age FROM people)
SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*), AVG(age) FROM people)
SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM people GROUP BY gender)
SELECT COUNT(*) FROM people WHERE age > (SELECT size FROM regions)
SELECT COUNT(*) FROM people WHERE age > (SELECT CORR(size, size) FROM regions)
SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM people UNION SELECT 3)
SELECT COUNT(*) FROM people WHERE age > (SELECT CLAMP(income) FROM people)
SELECT COUNT(*) FROM people WHERE LENGTH(city) > LENGTH((SELECT CASE WHEN COUNT(*) > 3 THEN 'many' ELSE 'few' END FROM people))
SELECT SUM(CLAMP(age, 0, (SELECT AVG(age) FROM people))) FROM people
SELECT SUM(age - (SELECT AVG(age) FROM people)) FROM people
SELECT COUNT(*) FROM people WHERE age = (SELECT COUNT(*) FROM people) GROUP BY age
SELECT COUNT(*) FROM people JOIN (SELECT town FROM regions WHERE size > (SELECT COUNT(*) FROM people)) AS r ON city = town
SELECT (SELECT MAX(size) FROM regions) AS m
SELECT COUNT(*) FROM people LIMIT (SELECT COUNT(*) FROM people)
SELECT /*+ weight(nobody, 3) */ COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) AS m FROM people)
SELECT COUNT(*) FROM people WHERE age NOT IN (SELECT units FROM visits)
SELECT COUNT(*) FROM people WHERE pid NOT IN (SELECT pid FROM visits WHERE units > 3)
-- joins
SELECT COUNT(*) FROM people JOIN visits USING (pid)
SELECT COUNT(*) FROM people JOIN visits ON people.pid = visits.pid
SELECT COUNT(*) FROM people p, visits v WHERE p.pid = v.pid AND p.age > 30 AND v.cost > 100
SELECT p.gender, AVG(v.cost) AS cost FROM people AS p JOIN visits AS v ON p.pid = v.pid GROUP BY p.gender
SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.pid = v.pid
SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.pid = v.pid AND v.cost > 100 WHERE v.pid IS NULL
SELECT r.region, COUNT(*) AS n FROM people p JOIN regions r ON p.city = r.town GROUP BY r.region
SELECT r.region, r.town, COUNT(*) AS n FROM people p JOIN regions r ON p.city = r.town GROUP BY r.region, r.town
SELECT region, SUM(size * age) AS s FROM people p JOIN regions r ON p.city = r.town GROUP BY region
SELECT /*+ at_most(a, 50), at_most(b, 50) */ COUNT(*) FROM people a JOIN visits b ON a.age = b.units
SELECT COUNT(*) FROM people a JOIN visits b ON a.age = b.units
SELECT /*+ at_most(a, 2) */ COUNT(*) FROM people a JOIN visits b ON a.age = b.units
SELECT COUNT(*) FROM people JOIN visits ON people.age > visits.cost
SELECT COUNT(*) FROM people p, regions r, visits v WHERE p.city = r.town AND v.pid = p.pid AND r.region = 'north'
SELECT COUNT(*) FROM people, visits
SELECT COUNT(*) FROM people CROSS JOIN visits
SELECT COUNT(*) FROM people RIGHT JOIN visits USING (pid)
SELECT COUNT(*) FROM people FULL JOIN visits USING (pid)
SELECT COUNT(*) FROM people NATURAL JOIN visits
SELECT COUNT(*) FROM people JOIN visits ON people.city = visits.pid
SELECT COUNT(*) FROM people JOIN people ON people.pid = people.pid
SELECT pid, COUNT(*) FROM people p JOIN visits v ON p.pid = v.pid GROUP BY pid
SELECT COUNT(*) FROM people ASOF JOIN visits USING (pid)
SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid FROM visits WHERE cost > 500)
SELECT COUNT(*) FROM people WHERE pid NOT IN (SELECT pid FROM visits WHERE cost > 500)
SELECT COUNT(*) FROM people WHERE city IN (SELECT town FROM regions WHERE region = 'north')
SELECT COUNT(*) FROM people WHERE city NOT IN (SELECT town FROM regions WHERE region = 'north')
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid AND v.cost > 500)
SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid)
SELECT COUNT(*) FROM people WHERE age IN (SELECT units FROM visits)
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v)
SELECT COUNT(*) FROM people WHERE (pid, gender) IN (SELECT pid, 1 FROM visits)
SELECT COUNT(*) FROM people p JOIN regions r ON p.city = r.town JOIN visits v ON v.units = r.size
SELECT AVG(CLAMP(n, 0, 4)) AS visits FROM people JOIN (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) AS g USING (pid) WHERE age > 50
-- set operations
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT units FROM visits) AS t
SELECT COUNT(*) FROM (SELECT age FROM people UNION SELECT units FROM visits) AS t
SELECT COUNT(*) FROM (SELECT age FROM people INTERSECT SELECT units FROM visits) AS t
SELECT COUNT(*) FROM (SELECT age FROM people EXCEPT SELECT units FROM visits) AS t
SELECT COUNT(*) FROM (SELECT age FROM people EXCEPT ALL SELECT units FROM visits) AS t
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT cost FROM visits) AS t
SELECT COUNT(*) FROM (SELECT age, gender FROM people UNION SELECT units FROM visits) AS t
SELECT COUNT(*) FROM (SELECT age FROM people UNION SELECT kind FROM visits) AS t
SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM visits
SELECT 'people' AS of, COUNT(*) AS n FROM people UNION ALL SELECT 'visits', COUNT(*) FROM visits
SELECT city, COUNT(*) AS n FROM people GROUP BY city UNION ALL SELECT 'all', COUNT(*) FROM people ORDER BY n DESC, city LIMIT 3
(SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC, city LIMIT 2) UNION ALL (SELECT city, COUNT(*) FROM people WHERE city IS NOT NULL GROUP BY city ORDER BY 2, city LIMIT 1) ORDER BY 2 DESC, 1
SELECT COUNT(*) AS n FROM people UNION SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM visits
SELECT city FROM people GROUP BY city HAVING COUNT(*) > 12 INTERSECT SELECT city FROM people GROUP BY city HAVING COUNT(*) < 16 ORDER BY 1 DESC
SELECT city FROM people GROUP BY city HAVING COUNT(*) > 12 EXCEPT SELECT city FROM people GROUP BY city HAVING COUNT(*) > 15 ORDER BY city
SELECT gender FROM people GROUP BY gender HAVING COUNT(*) > 0 UNION ALL SELECT gender FROM people GROUP BY gender HAVING COUNT(*) > 0 EXCEPT ALL SELECT gender FROM people GROUP BY gender HAVING COUNT(*) > 0 ORDER BY gender
SELECT COUNT(*) AS n, 1 AS k FROM people UNION ALL SELECT AVG(age), 2 FROM people ORDER BY k OFFSET 1
WITH a AS (SELECT * FROM people WHERE age > 17) SELECT COUNT(*) AS n FROM a UNION ALL SELECT COUNT(*) FROM a WHERE gender = 1 ORDER BY n
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people) UNION ALL SELECT COUNT(*) FROM people WHERE age <= (SELECT AVG(age) FROM people) ORDER BY n
SELECT COUNT(*) FROM people UNION ALL SELECT city FROM people
SELECT COUNT(*), 1 FROM people UNION ALL SELECT COUNT(*) FROM visits
SELECT COUNT(*) FROM people UNION ALL SELECT 'three' AS t, COUNT(*) FROM visits
SELECT COUNT(*) FROM people UNION ALL SELECT MODE(city) FROM people
SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM visits ORDER BY m
SELECT COUNT(*) AS n FROM people UNION ALL VALUES (3)
-- hints
SELECT /*+ weight(n, 3) */ COUNT(*) AS n, AVG(age) AS a, MEDIAN(age) AS m FROM people
SELECT /*+ weight(nobody, 3) */ COUNT(*) AS n FROM people
SELECT /*+ at_most(nobody, 3) */ COUNT(*) AS n FROM people
SELECT /*+ faster */ COUNT(*) AS n FROM people
SELECT /*+ weight(n, 0) */ COUNT(*) AS n FROM people
SELECT /*+ at_most(v, 1.5) */ COUNT(*) AS n FROM people
-- records are private
SELECT * FROM people
SELECT age FROM people
SELECT people.* FROM people
SELECT DISTINCT city FROM people
SELECT age, COUNT(*) FROM people
SELECT MAX(age) - age FROM people
SELECT CURRENT_DATE
SELECT 1
-- not here
SELECT ROW_NUMBER() OVER (ORDER BY age) FROM people
SELECT SUM(age) OVER () FROM people
SELECT COUNT(*) FROM people QUALIFY age > 3
SELECT COUNT(*) FROM people TABLESAMPLE 10%
SELECT COUNT(*) FROM people USING SAMPLE 10
SELECT STRING_AGG(city, ',') FROM people
SELECT ARRAY_AGG(age) FROM people
SELECT ANY_VALUE(age) FROM people
SELECT FIRST(age) FROM people
SELECT ARG_MAX(city, age) FROM people
SELECT AVG(age ORDER BY city) FROM people
SELECT COUNT(*) FROM people WHERE RANDOM() < 0.5
SELECT COUNT(*) FROM people WHERE age > ALL (SELECT units FROM visits)
SELECT COUNT(*) FROM people WHERE age = ANY (SELECT units FROM visits)
SELECT COUNT(*) FROM people WHERE age = ?
SELECT COUNT(*) FROM people WHERE age = $1
SELECT COUNT(*) FROM people WHERE [age, 2] = [1, 2]
SELECT COUNT(*) FROM people WHERE {'a': age} IS NULL
SELECT COUNT(*) FROM people WHERE age = 0x1F
SELECT COUNT(*) FROM 'people.parquet'
SELECT COUNT(*) FROM read_csv('people.csv')
SELECT COUNT(*) FROM range(10)
SELECT COUNT(*) FROM people, LATERAL (SELECT 1) AS t
SELECT COUNT(*) FROM nobody
SELECT COUNT(*) FROM peopel
SELECT COUNT(*) FROM people WHERE aeg > 3
SELECT COUNT(*) FROM people WHERE visits.cost > 3
SELECT COUNT(*) FROM main.people
SELECT FOO(age) FROM people
PIVOT people ON city USING COUNT(*)
FROM people
INSERT INTO people VALUES (1)
UPDATE people SET age = 3
DELETE FROM people
DROP TABLE people
CREATE TABLE t AS SELECT * FROM people
COPY people TO 'out.csv'
ATTACH 'other.db'
PRAGMA database_list
SET threads = 1
CALL duckdb_settings()
SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM visits
SELECT COUNT(* FROM people
SELECT COUNT(*) FROM people WHERE
SELECT COUNT(*) FROM people WHERE city = 'open
SELEC COUNT(*) FROM people
-- keys that nobody listed, within a domain
SELECT /*+ domain(age, 0, 120) */ age, COUNT(*) AS n FROM people WHERE age IS NOT NULL GROUP BY age
SELECT /*+ domain(born, 1900-01-01, 2030-12-31) */ born, COUNT(*) FROM people WHERE born IS NOT NULL GROUP BY born
SELECT /*+ domain(written, 8) */ CAST(age AS VARCHAR) AS written, COUNT(*) AS n FROM people WHERE age IS NOT NULL GROUP BY written
SELECT /*+ domain(age, 0, 120) */ age, gender, AVG(age) AS a, COUNT(*) AS n FROM people WHERE age IS NOT NULL GROUP BY age, gender
SELECT /*+ domain(age, 0, 120), weight(keys, 3) */ age, SUM(income) FROM people GROUP BY age
SELECT /*+ domain(age, 0, 120), most_keys(1000) */ age, COUNT(DISTINCT gender) AS n FROM people WHERE age IS NOT NULL GROUP BY age
SELECT /*+ domain(age, 0, 120) */ age, COUNT(*) AS n FROM people WHERE age IS NOT NULL GROUP BY age HAVING COUNT(*) > 1 ORDER BY n DESC, age LIMIT 3
SELECT /*+ domain("age", 0, 120) */ age, COUNT(*) AS n FROM people WHERE age > 50 GROUP BY age UNION ALL SELECT gender, COUNT(*) FROM people GROUP BY gender ORDER BY 1, 2
SELECT /*+ domain(age) */ age, COUNT(*) FROM people GROUP BY age
SELECT /*+ domain(age, 120, 0) */ age, COUNT(*) FROM people GROUP BY age
SELECT /*+ domain(age, 0, inf) */ age, COUNT(*) FROM people GROUP BY age
SELECT /*+ domain(age, 32) */ age, COUNT(*) FROM people GROUP BY age
SELECT /*+ domain(ages, 0, 120) */ age, COUNT(*) FROM people GROUP BY age
SELECT /*+ domain(born, 2030-12-31, 1900-01-01) */ born, COUNT(*) FROM people GROUP BY born
SELECT /*+ domain(city, 99999999999) */ city || 'x' AS city, COUNT(*) FROM people GROUP BY 1
SELECT /*+ domain(age, 0, 120) */ age, gender, COUNT(*) FROM people GROUP BY ROLLUP (age, gender)
SELECT /*+ domain(gender, 0, 120) */ gender, COUNT(*) FROM people GROUP BY gender
SELECT /*+ most_keys(0), domain(age, 0, 120) */ age, COUNT(*) FROM people GROUP BY age
SELECT /*+ most_keys(10) */ gender, COUNT(*) FROM people GROUP BY gender
SELECT /*+ domain(income, 0, 120) */ income, COUNT(*) FROM people GROUP BY income
