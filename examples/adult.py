"""A study of the Adult census: fifteen questions of 48,842 people, at ε = 1 in all.

    python examples/adult.py [adult.csv, or a folder]

With the data of UCI's census of 1994, coded as integers, where it is there
(../shared/data/adult.csv, beside the project); else with made-up people like them.
"""

import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import fpinq as fp
from fpinq import _

PEOPLE = 48_842
SHARED = Path(__file__).parents[2] / "shared/data/adult.csv"

# The census' own codes, in the order of its codebook.
OCCUPATIONS = [
    *("Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty"),
    *("Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving"),
    *("Priv-house-serv", "Protective-serv", "Armed-Forces", "unknown"),
]
EDUCATION = {9: "High school", 10: "Some college", 13: "Bachelor", 14: "Master", 16: "Doctorate"}
CODED = ("age", "education-num", "marital-status", "occupation", "sex", "hours-per-week", "income>50K")

# What is public: nobody is younger than 17 here or works more than 99 hours.
AGE, HOURS, YEARS = (17, 101), (1, 99), (1, 16)


def made_up(path: Path) -> Path:
    """A file of people like those of the census, unless it is there."""
    if path.exists():
        return path
    import numpy as np

    random = np.random.default_rng(1994)
    age = np.clip(random.gamma(2.7, 8.3, PEOPLE), 1, 74).astype(int)
    education = np.clip(random.normal(9.1, 2.6, PEOPLE), 0, 15).astype(int)
    married = random.random(PEOPLE) < 1 / (1 + np.exp(-(age - 20) / 6))
    male = random.random(PEOPLE) < 0.67
    hours = np.clip(random.normal(36 + 5 * male + education / 3, 11, PEOPLE), 0, 98).astype(int)
    score = education / 2 + age / 25 + 2.2 * married + (hours - 39) / 25 - 9.3
    rich = random.random(PEOPLE) < 1 / (1 + np.exp(-score))
    common = random.permutation(np.arange(15)) + 1.0
    occupation = random.choice(15, PEOPLE, p=common / common.sum())
    alone = random.integers(1, 7, PEOPLE)
    columns = (age, education, np.where(married, 0, alone), occupation, male * 1, hours, rich * 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    header = ",".join(CODED)
    np.savetxt(path, np.column_stack(columns), fmt="%d", delimiter=",", header=header, comments="")
    return path


def data() -> Path:
    """The census, or people like those in it."""
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED
    if given.is_file():
        return given
    folder = given if given.is_dir() else Path(tempfile.gettempdir()) / "fpinq-demo"
    return made_up(folder / "adult.csv")


asked = 0


def ask(question: str, answer: object) -> None:
    """A question, and its answer with its error."""
    global asked
    asked += 1
    print(f"\n{asked:>2}. {question}\n{textwrap.indent(str(answer), '       ')}")


def named(names: Any, answers: fp.Answers) -> str:
    """Answers under the names of their codes."""
    return "\n".join(f"{names[code]:<18} {answer}" for code, answer in answers.items())


census = fp.protect(str(data()), budget=1, name="adult", schema=dict.fromkeys(CODED, "int64"))
adult = census.select(
    lambda x: {
        "age": x["age"] + 16,
        "education": x["education-num"] + 1,
        "hours": x["hours-per-week"] + 1,
        "occupation": x["occupation"],
        "married": x["marital-status"] == 0,
        "male": x["sex"] == 1,
        "rich": x["income>50K"] == 1,
    }
)
print(adult)

# ── one number at a time ─────────────────────────────────────────────────────────────

ask("How many people are there?", adult.noisy_count(0.02))
ask("Which share of them earns more than $50,000?", adult.noisy_proportion(0.02, _.rich))
ask("How old are they, on average?", adult.noisy_average(0.02, _.age, bounds=AGE))
ask("… and in the middle?", adult.noisy_median(0.05, _.age, bounds=AGE, interval=0.95))
hours = adult.noisy_quantile(0.06, [0.25, 0.5, 0.9], _.hours, bounds=HOURS)
ask("How long do a quarter, half and nine tenths of them work at the most?", hours)
ask("Who is the youngest, as nearly as that may be said?", adult.noisy_min(0.05, _.age, bounds=AGE))

# ── by group: all parts for the price of one ─────────────────────────────────────────

top = adult.noisy_top(0.05, 5, _.occupation, range(len(OCCUPATIONS)))
ask("What do most of them do?", named(OCCUPATIONS, top.counts))
learned = adult.query(0.1, fp.proportion(_.rich), by=_.education, keys=list(EDUCATION))
ask("Whom did school help to more than $50,000?", named(EDUCATION, learned))
numbers = fp.several(n=fp.count(), hours=fp.average(_.hours, bounds=HOURS), rich=fp.proportion(_.rich))
couples = adult.query(0.15, numbers, by=["male", "married"])
ask("How many men and women are married, how long do they work, and who earns more?", couples)
ask("… their hours as a table (which is free):", couples.pivot("hours").round(1))
ages = adult.noisy_cdf(0.05, _.age, bounds=AGE)
ask("Which share is at most 30, 45 and 60?", "\n".join(f"{age}  {ages[age]}" for age in (30, 45, 60)))

# ── how it hangs together ────────────────────────────────────────────────────────────

together = fp.correlation(_.education, _.hours, bounds=(YEARS, HOURS))
planned = adult.expected_error(together, 0.08, size=PEOPLE)
print(f"\n    (A correlation at ε = 0.08 will be off by {planned}.)")
ask("Do the learned work longer? The correlation of school and hours:", adult.query(0.08, together))
longer = adult.noisy_regression(
    0.1, "hours", ["education", "male"], bounds={"hours": HOURS, "education": YEARS}
)
ask("How many hours does a year of school add, and being a man?", longer)
chance = adult.noisy_regression(0.2, "rich", ["education", "married"], bounds={"education": YEARS})
ask("What does it add to the chance of more than $50,000, and being married?", chance)
ask("So what is a married Bachelor's? (That is free.)", f"{chance.predict(education=13, married=1):.0%}")

# ── what was asked ───────────────────────────────────────────────────────────────────

print(f"\n{'asked':<42} {'ε':<6} left")
for row in adult.history.rows():
    print(f"{row['asked']:<42} {row['epsilon']!s:<6} {row['left']}")
print(f"\nleft: {adult.remaining}")
