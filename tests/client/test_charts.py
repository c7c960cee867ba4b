"""Charts: looked at by their objects, for every kind of answer."""

import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

import fpinq as fp
from fpinq.client.uncertainty import LaplaceCombination

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

CITIES = ["Ulm", "Bonn", "Kiel"]
PAIRS = [(city, rich) for city in CITIES for rich in (True, False)]
ROWS = [
    {"age": i * 7 % 90, "city": CITIES[i % 3], "rich": i % 5 == 0, "income": float(i * i % 997)}
    for i in range(600)
]


@pytest.fixture(scope="module")
def table() -> fp.Table:
    schema = {"age": "int64", "city": "string", "rich": "bool", "income": "float64"}
    found: fp.Table = fp.protect(ROWS, budget=10**6, schema=schema, engine="reference")
    return found


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def words(axis: Any) -> list[str]:
    axis.axes.figure.canvas.draw()
    return [label.get_text() for label in axis.get_ticklabels()]


def overlapping(axis: Any) -> list[tuple[str, str]]:
    """Neighbouring tick labels whose boxes overlap, as drawn."""
    axis.axes.figure.canvas.draw()
    labels = [label for label in axis.get_ticklabels() if label.get_visible() and label.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    return [
        (a.get_text(), b.get_text())
        for a, b, one, other in zip(labels, labels[1:], boxes, boxes[1:], strict=False)
        if one.overlaps(other)
    ]


def error_bars(ax: Any) -> list[tuple[float, float]]:
    """Where every error bar of a chart begins and ends."""
    lines = [line for container in ax.containers for line in getattr(container, "errorbar", None) or []]
    bars = [
        part for line in lines if isinstance(line, tuple) for part in line if hasattr(part, "get_segments")
    ]
    return [(low[1], high[1]) for bar in bars for low, high in bar.get_segments()]


EVERY: dict[str, Callable[[fp.Table], Any]] = {
    "a count": lambda t: t.noisy_count(0.1),
    "an average": lambda t: t.noisy_average(0.1, "age", bounds=(0, 110)),
    "a mode": lambda t: t.noisy_mode(1, "city", CITIES),
    "bounds": lambda t: t.noisy_bounds(1, "age"),
    "a median": lambda t: t.noisy_median(1, "age", bounds=(0, 110)),
    "a histogram": lambda t: t.noisy_histogram(1, "age", bounds=(0, 90), bins=9),
    "a histogram of integers": lambda t: t.noisy_histogram(1, "age", bounds=(0, 90)),
    "ranges": lambda t: t.noisy_ranges(1, "income", bounds=(0, 1000), bins=200),
    "a distribution": lambda t: t.noisy_cdf(1, "age", bounds=(0, 90)),
    "quantiles": lambda t: t.noisy_quantile(1, [0.25, 0.5, 0.75], "age", bounds=(0, 90)),
    "counts by key": lambda t: t.query(1, fp.count(), by="city", keys=CITIES),
    "averages by key": lambda t: t.query(1, fp.average("age", (0, 110)), by="city", keys=CITIES),
    "by two keys": lambda t: t.query(1, fp.average("age", (0, 110)), by=["city", "rich"], keys=PAIRS),
    "bins by two keys": lambda t: t.query(1, fp.histogram("age", (0, 9)), by=["city", "rich"], keys=PAIRS),
    "histograms by key": lambda t: t.query(1, fp.histogram("age", (0, 90), 5), by="rich", keys=[True, False]),
    "histograms by many": lambda t: t.query(1, fp.histogram("age", (0, 90), 5), by="age", keys=range(20)),
    "distributions by key": lambda t: t.query(1, fp.cdf("age", (0, 90)), by="city", keys=CITIES),
    "quantiles by key": lambda t: t.query(1, fp.quantiles([0.2, 0.8], "age", (0, 9)), by="city", keys=CITIES),
    "modes by key": lambda t: t.query(1, fp.mode("city", CITIES), by="rich", keys=[True, False]),
    "bounds by key": lambda t: t.query(1, fp.bounds("age"), by="city", keys=CITIES),
    "counts by many": lambda t: t.query(1, fp.count(), by="age", keys=range(90)),
    "different questions": lambda t: t.query(
        1, {"Ulm": fp.count(), "Bonn": fp.quantiles([0.2, 0.8], "age", (0, 90))}, by="city"
    ),
    "keys of different kinds": lambda t: t.query(
        1, {"Ulm": fp.quantile(0.2, "age", (0, 9)), "Bonn": fp.quantiles([0.2], "age", (0, 9))}, by="city"
    ),
    "a minimum": lambda t: t.noisy_min(1, "age", (0, 90)),
    "proportions by key": lambda t: t.query(1, fp.proportion("rich"), by="city", keys=CITIES),
    "a top": lambda t: t.noisy_top(1, 2, "city", CITIES),
    "a top by score": lambda t: t.noisy_top(1, 2, lambda x, c: x.city == c, CITIES),
    "tops by key": lambda t: t.query(1, fp.top(2, "city", CITIES), by="rich", keys=[True, False]),
    "a regression": lambda t: t.noisy_regression(1, "age", ["rich"], bounds={"age": (0, 90)}),
    "regressions by key": lambda t: t.query(
        1, fp.regression("age", ["rich"], {"age": (0, 90)}), by="city", keys=CITIES
    ),
    "several": lambda t: t.query(1, fp.several(n=fp.count(), age=fp.histogram("age", (0, 90), 5))),
    "several by key": lambda t: t.query(
        1, fp.several(n=fp.count(), age=fp.histogram("age", (0, 90), 5)), by="city", keys=CITIES
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", EVERY)
def test_every_kind_of_answer_can_be_drawn_and_says_what_its_axes_are(table: fp.Table, kind: str) -> None:
    answers = EVERY[kind](table)
    drawn = answers.plot()
    for ax in drawn if isinstance(drawn, list) else [drawn]:
        assert ax.get_ylabel()
        assert ax.get_xlabel() or isinstance(answers, fp.Answer) or kind == "several"
        assert "ε = " in ax.get_title()
        assert ax.patches or ax.lines or ax.images


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_error_bars_can_be_seen_on_a_dark_ground_too(table: fp.Table, style: str) -> None:
    with plt.style.context(style):
        ax = EVERY["counts by key"](table).plot()
        (bars,) = (part for line in ax.containers[-1].errorbar if isinstance(line, tuple) for part in line[:1]
                   if hasattr(part, "get_segments"))  # fmt: skip
        ground = matplotlib.colors.to_rgb(ax.get_facecolor())
        ink = matplotlib.colors.to_rgb(bars.get_color()[0][:3])
        assert max(abs(a - b) for a, b in zip(ground, ink, strict=True)) > 0.9


def test_bins_stand_at_their_places_on_an_axis_of_numbers(table: fp.Table) -> None:
    answers = table.noisy_histogram(1, "age", bins=[0, 10, 50, 90])
    ax = answers.plot()
    assert len(ax.patches) == 3
    for bar, ((low, high), answer) in zip(ax.patches, answers.items(), strict=True):
        assert low < bar.get_x() < bar.get_x() + bar.get_width() < high
        assert bar.get_height() == answer.value
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "n")


def test_error_bars_are_intervals_and_as_lopsided() -> None:
    one = Fraction(1)
    noise = LaplaceCombination((5.0,), 0, 10)
    answers = fp.Answers(
        {k: fp.Answer(v, one, one, noise) for k, v in {"a": 1.0, "b": 9.5}.items()}, one, one
    )
    for confidence in (0.5, 0.95):
        drawn = error_bars(answers.plot(confidence=confidence))
        assert drawn == [pytest.approx(answer.interval(confidence)) for answer in answers.values()]
    assert drawn == [(0, 10), (0, 10)]


def test_histograms_by_part_draw_every_bar_at_its_own_place(table: fp.Table) -> None:
    answers = table.query(1, fp.histogram("age", (0, 90), 5), by="rich", keys=[True, False])
    ax = answers.plot()
    assert len(ax.patches) == 10
    ends = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches)
    assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(ends))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["True", "False"]
    assert ax.get_legend().get_title().get_text() == "rich"


def test_a_distribution_is_steps_within_a_band(table: fp.Table) -> None:
    answers = table.noisy_cdf(1, "age", bounds=(0, 90))
    ax = answers.plot()
    (line,) = ax.lines
    assert line.get_drawstyle() == "steps-post"
    assert list(line.get_xdata()) == list(range(91))
    assert list(line.get_ydata()) == [answer.value for answer in answers.values()]
    assert len(ax.collections) == 1
    by_city = table.query(1, fp.cdf("age", (0, 90)), by="city", keys=CITIES).plot()
    assert len(by_city.lines) == 3
    assert [text.get_text() for text in by_city.get_legend().get_texts()] == CITIES


def test_modes_by_group_are_dots_at_their_words(table: fp.Table) -> None:
    answers = table.query(10**4, fp.mode("city", CITIES), by="rich", keys=[True, False])
    ax = answers.plot()
    (dots,) = ax.lines
    shown = words(ax.yaxis)
    assert [shown[int(y)] for y in dots.get_ydata()] == [answer.value for answer in answers.values()]
    assert words(ax.xaxis) == ["True", "False"]


def test_bounds_by_group_are_bars_from_the_one_to_the_other(table: fp.Table) -> None:
    answers = table.query(10**4, fp.bounds("age"), by="city", keys=CITIES)
    ax = answers.plot()
    drawn = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in ax.patches]
    assert drawn == [answer.value for answer in answers.values()]


@pytest.mark.parametrize(
    "of",
    [
        lambda t: t.query(1, fp.count(), by="city", keys=[f"city number {i}" for i in range(200)]),
        lambda t: t.noisy_histogram(1, "income", bounds=(0, 10**7), bins=200),
        lambda t: t.query(1, fp.count(), by="age", keys=range(200)),
        lambda t: t.query(1, fp.histogram("income", (0, 10**7), 200), by="age", keys=range(50)),
    ],
    ids=["texts", "bins", "numbers", "a heat map"],
)  # fmt: skip
@pytest.mark.parametrize("size", [(4, 3), (12, 4)])
def test_no_labels_overlap_at_two_hundred(
    table: fp.Table, of: Callable[[fp.Table], Any], size: tuple[float, float]
) -> None:
    _fig, ax = plt.subplots(figsize=size, layout="constrained")
    of(table).plot(ax=ax)
    assert not overlapping(ax.xaxis)
    assert not overlapping(ax.yaxis)
    assert len([word for word in words(ax.xaxis) if word]) >= 4


def test_the_axis_and_the_style_are_the_callers(table: fp.Table) -> None:
    answers = table.query(1, fp.count(), by="city", keys=CITIES)
    _fig, (left, right) = plt.subplots(1, 2)
    right.set_title("mine")
    assert answers.plot(ax=right, color="red", alpha=0.5) is right
    assert not left.patches
    assert right.patches[0].get_facecolor() == (1.0, 0.0, 0.0, 0.5)
    assert right.get_title() == "mine"
    assert (
        table.noisy_cdf(1, "age", bounds=(0, 9)).plot(color="red", linewidth=3).lines[0].get_linewidth() == 3
    )
    with pytest.raises(fp.BadQuery, match="kind"):
        answers.plot(kind="pie")


def test_two_keys_are_a_heat_map_or_bars_beside_each_other(table: fp.Table) -> None:
    answers = EVERY["by two keys"](table)
    ax = answers.plot()
    (image,) = ax.images
    assert image.get_array().shape == (3, 2)
    assert image.get_array()[1][0] == answers["Bonn", True].value
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("city", "rich")
    assert (words(ax.yaxis), words(ax.xaxis)) == (CITIES, ["True", "False"])
    assert sum("±" in text.get_text() for text in ax.texts) == 6
    bars = answers.plot(kind="bars")
    assert len(bars.patches) == 6
    assert [text.get_text() for text in bars.get_legend().get_texts()] == CITIES
    assert len(error_bars(bars)) == 6


def test_several_names_have_an_axis_each(table: fp.Table) -> None:
    asked = fp.several(n=fp.count(), age=fp.average("age", (0, 110)))
    answers = table.query(1, asked, by="city", keys=CITIES)
    left, right = answers.plot()
    assert (left.get_ylabel(), right.get_ylabel()) == ("n", "age")
    assert len(left.patches) == len(right.patches) == len(error_bars(right)) == 3
    _fig, ax = plt.subplots()
    with pytest.raises(fp.BadQuery, match="2 names"):
        answers.plot(ax=ax)


def test_a_count_beside_bins_has_an_axis_of_its_own(table: fp.Table) -> None:
    answers = EVERY["several by key"](table)
    counts, bins = answers.plot()
    assert [bar.get_height() for bar in counts.patches] == [answers[city].n.value for city in CITIES]
    assert len(bins.patches) == 15
    assert (bins.get_xlabel(), bins.get_ylabel()) == ("age", "age")
    assert [text.get_text() for text in bins.get_legend().get_texts()] == CITIES


def test_answers_to_different_questions_have_an_axis_each(table: fp.Table) -> None:
    asked = {"Ulm": fp.count(), "Bonn": fp.average("age", (0, 90)), "Kiel": fp.count()}
    answers = table.query(1, asked, by="city")
    counts, average = answers.plot()
    assert [bar.get_height() for bar in counts.patches] == [answers[city].value for city in ("Ulm", "Kiel")]
    assert (words(counts.xaxis), words(average.xaxis)) == (["Ulm", "Kiel"], ["Bonn"])
    assert (counts.get_ylabel(), average.get_ylabel()) == ("n", "average_age")


def test_many_names_are_in_several_rows(table: fp.Table) -> None:
    asked = fp.several({f"n{i}": fp.sum(lambda x, i=i: x.age + i, (0, 9)) for i in range(6)})
    axes = table.query(1, asked).plot()
    assert [ax.get_ylabel() for ax in axes] == [f"n{i}" for i in range(6)]
    assert {ax.get_subplotspec().get_gridspec().get_geometry() for ax in axes} == {(2, 3)}
    _fig, given = plt.subplots(2, 3)
    assert table.query(1, asked).plot(ax=given) == list(given.flat)


def test_the_top_is_drawn_as_its_counts(table: fp.Table) -> None:
    top = table.noisy_top(1, 2, "city", CITIES)
    ax = top.plot()
    assert [bar.get_height() for bar in ax.patches] == [count.value for count in top.counts.values()]
    assert words(ax.xaxis) == top.value
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("city", "n")


def test_an_intercept_does_not_dwarf_the_coefficients(table: fp.Table) -> None:
    found = table.noisy_regression(1, "income", ["rich", "age"], bounds={"income": (0, 1000), "age": (0, 90)})
    ax = found.plot()
    assert words(ax.xaxis) == ["rich", "age"]
    assert [bar.get_height() for bar in ax.patches] == [one.value for one in found.coefficients.values()]
    assert ax.get_ylabel() == "coefficient"


def test_many_bins_by_part_are_outlines_that_can_be_told_apart(table: fp.Table) -> None:
    answers = table.query(1, fp.histogram("age", (0, 89)), by="city", keys=CITIES)
    ax = answers.plot()
    assert not ax.patches
    assert len(ax.lines) == len(ax.collections) == 3
    line = ax.lines[1]
    assert list(line.get_xdata()) == [i - 0.5 for i in range(91)]
    assert list(line.get_ydata())[:-1] == [answer.value for answer in answers["Bonn"].values()]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == CITIES
    assert len(answers.plot(kind="bars").patches) == 270


def test_quantiles_with_intervals_stand_at_their_fractions(table: fp.Table) -> None:
    asked = fp.quantiles([0.1, 0.9], "age", (0, 90), interval=0.8)
    ax = table.query(1, asked, by="city", keys=CITIES).plot()
    assert ax.get_xlabel() == "fraction"
    assert not ax.images
    assert ax.get_title() == "ε = 1, 80 % intervals"
    assert len(ax.collections) == 3  # the error bars of each city
    bars = [bar.get_segments()[0][0][0] for bar in ax.collections]
    assert len(set(bars)) == 3  # beside each other
    assert all(abs(bar - 0.1) < 0.05 for bar in bars)


def test_what_is_written_in_a_cell_fits_it(table: fp.Table) -> None:
    for interval in (None, 0.9):
        asked = fp.median("age", (0, 90), interval=interval)
        ax = table.query(1, asked, by=["city", "rich"], keys=PAIRS).plot()
        assert len(ax.texts) == 6
        assert all(len(line) < 12 for text in ax.texts for line in text.get_text().splitlines())


def test_rows_of_a_heat_map_are_not_blurred(table: fp.Table) -> None:
    answers = table.query(1, fp.count(), by=["age", "rich"], keys={"age": range(90), "rich": [True, False]})
    (image,) = answers.plot().images
    assert image.get_interpolation() == "nearest"


def test_long_names_leave_room_for_the_chart(table: fp.Table) -> None:
    names = ["A town with a long name", "Another town of these", "Ulm"]
    _fig, ax = plt.subplots(layout="constrained")
    table.query(1, fp.count(), by="city", keys=names).plot(ax=ax)
    assert [word.replace("\n", " ") for word in words(ax.xaxis)] == names
    assert not overlapping(ax.xaxis)
    many = [f"{name} number {i}" for name in names for i in range(10)]
    _fig, ax = plt.subplots(layout="constrained")
    table.query(1, fp.count(), by="city", keys=many).plot(ax=ax)
    assert all(len(word) <= 25 for word in words(ax.xaxis))
    assert ax.get_position().height > 0.45


def test_many_series_are_a_heat_map_and_bars_if_one_says_so(table: fp.Table) -> None:
    answers = table.query(1, fp.histogram("age", (0, 90), 5), by="age", keys=range(20))
    ax = answers.plot()
    (image,) = ax.images
    assert image.get_array().shape == (20, 5)
    assert image.get_array()[3][4] == answers[3][(72, 90)].value
    assert not ax.patches
    assert len(answers.plot(kind="bars").patches) == 100


def test_what_has_no_interval_has_no_error_bar(table: fp.Table) -> None:
    choice = table.query(1, fp.bounds("age"), by="city", keys=CITIES)
    assert not error_bars(choice.plot())
    assert all(
        math.isfinite(end) for bar in error_bars(EVERY["averages by key"](table).plot()) for end in bar
    )


def test_a_chart_without_matplotlib_says_what_to_install(
    table: fp.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(fp.ProgramError, match="pip install matplotlib"):
        table.noisy_count(1).plot()
