"""Charts of answers, with their intervals: of every kind of answer there is one.

    bins              bars at their places on an axis of numbers
    distributions     steps, with their intervals as a band
    keys              bars; very many numbers at their places on an axis
    two keys          a heat map; or groups of bars, with a legend
    bins by key       groups of bars, with a legend; of many bins outlines, of many keys a heat map
    texts             dots: which one was chosen for which key
    pairs             bars from the one to the other
    several queries   an axis for each: they are in different units
    the top           its counts
    a regression      its coefficients

Colours are those of matplotlib's style, so that they can be seen on a dark ground too.
"""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from fractions import Fraction
from itertools import pairwise
from typing import Any

from fpinq.client.answers import Answer, Answers
from fpinq.client.columns import Confidence, needed
from fpinq.client.counting import TopAnswer
from fpinq.client.histograms import BinAnswers, Distribution
from fpinq.client.leaves import Leaf, is_number
from fpinq.client.named import Named
from fpinq.client.regressions import RegressionAnswers
from fpinq.client.spelling import show_at
from fpinq.model.errors import BadQuery
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Rho

# So many keys that are numbers stand at their places on an axis of numbers.
MANY = 20
# Of more series than this, a legend says little.
MOST_SERIES = 8
# Of more bars than this, those of several series cannot be told apart.
MOST_BARS = 80
# So few cells of a heat map have room for their numbers.
MOST_WRITTEN = 60
# So many letters of a label are shown, below an axis where it is turned and beside one; or so many lines.
MOST_BELOW, MOST_BESIDE, MOST_LINES = 24, 40, 3
# So many axes are side by side.
MOST_ACROSS = 4
KINDS = ("bars", "heatmap")

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Drawn:
    """What is drawn: the answers of one name, by series and by place on the axis."""

    name: str
    answers: Mapping[tuple[Key, Key], Answer]
    series: Sequence[Key]
    places: Sequence[Key]
    series_name: str
    place_name: str
    confidence: Confidence

    def values(self, series: Key) -> list[float]:
        """The values of a series at each place; NaN where there is none."""
        found = (self.answers.get((series, place)) for place in self.places)
        return [math.nan if answer is None else float(answer.value) for answer in found]

    def ends(self, series: Key) -> tuple[list[float], list[float]]:
        """Where the intervals of a series begin and end; at the value where there is none."""
        return tuple(  # type: ignore[return-value]
            [
                math.nan if answer is None else _end(answer, side, self.confidence)
                for answer in (self.answers.get((series, place)) for place in self.places)
            ]
            for side in (0, 1)
        )

    def errors(self, series: Key) -> list[list[float]]:
        """How far the intervals of a series reach below and above its values."""
        values, (low, high) = self.values(series), self.ends(series)
        below = [max(value - end, 0) for value, end in zip(values, low, strict=True)]
        return [below, [max(end - value, 0) for value, end in zip(values, high, strict=True)]]


def _end(answer: Answer, side: int, confidence: Confidence) -> float:
    interval = answer.interval(confidence)
    end = float(answer.value if interval is None else interval[side])
    return end if math.isfinite(end) else math.nan


# ── what goes on which axis ──────────────────────────────────────────────────────────


def draw(answers: Answer | Answers, ax: Any, confidence: Confidence, style: dict[str, Any]) -> Any:
    """Answers on an axis, or those of several queries on one each; the axis, or a list of them."""
    plt = needed("matplotlib.pyplot", "plot()")
    kind = style.pop("kind", None)
    if kind not in (None, *KINDS):
        raise BadQuery(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
    apart = _apart(answers)
    axes = _axes(plt, ax, len(apart))
    for axis, one in zip(axes, apart, strict=True):
        _draw(axis, one, kind, confidence, answers.epsilon, dict(style))
    return axes[0] if len(apart) == 1 else axes


def _axes(plt: Any, given: Any, number: int) -> list[Any]:
    """The axes that were given, or new ones."""
    if given is None and number == 1:
        return [plt.subplots(layout="constrained")[1]]
    if given is None:
        rows = math.ceil(number / MOST_ACROSS)
        across = math.ceil(number / rows)
        figure = plt.figure(layout="constrained", figsize=(5 * across, 4 * rows))
        return [figure.add_subplot(rows, across, i + 1) for i in range(number)]
    axes = list(getattr(given, "flat", given)) if hasattr(given, "__iter__") else [given]
    if len(axes) != number:
        raise BadQuery(f"there are {number} names, each on an axis of its own: ax=[…], or leave it out")
    return axes


def _apart(answers: Answer | Answers) -> list[Answer | Answers]:
    """The answers of each query: those of one are in one unit."""
    answers = _of_numbers(answers)
    if isinstance(answers, Named):
        return [copy(_of_numbers(one)).called(name) for name, one in answers.items()]
    if isinstance(answers, Answer) or answers.name or type(answers) is not Answers:
        return [answers]
    each: dict[str, dict[Any, Any]] = {}
    for key, answer in answers.items():
        if isinstance(answer, Named):
            for name, one in answer.items():
                each.setdefault(name, {})[key] = copy(_of_numbers(one)).called(name)
        else:
            each.setdefault(answer.name, {})[key] = _of_numbers(answer)
    every = list(each.values()) or [dict[Any, Any]()]
    return [Answers(some, answers.epsilon, answers.charged, answers.key_columns) for some in every]


def _of_numbers(answer: Answer | Answers) -> Answer | Answers:
    """Of the top, its counts; of a regression, what can be compared with each other."""
    if isinstance(answer, TopAnswer):
        return answer.counts or answer
    return answer.coefficients if isinstance(answer, RegressionAnswers) else answer


def _draw(
    ax: Any,
    answers: Answer | Answers,
    kind: str | None,
    confidence: Confidence,
    epsilon: Fraction | Rho,
    style: dict[str, Any],
) -> None:
    leaves, levels = list(answers.leaves()), answers.levels() if isinstance(answers, Answers) else ()
    if len({tuple(leaf.keys) for leaf in leaves}) > 1:  # keys of different kinds: one after the other
        leaves = [Leaf({"key": _words(tuple(leaf.keys.values()))}, leaf.answers) for leaf in leaves]
        levels = ()
    drawn = _drawn(leaves, levels, confidence)
    if all(is_number(answer.value) for answer in drawn.answers.values()):
        _numbers(ax, drawn, levels[-1] if levels else None, kind, style)
    else:
        _others(ax, drawn, style)
    if not ax.get_title():
        ax.set_title(_title(drawn, epsilon), fontsize="medium")


def _drawn(leaves: Sequence[Leaf], levels: Sequence[Answers], confidence: Confidence) -> Drawn:
    """Answers by series and place: the last key is the place, all before it the series."""
    bins = levels[-1] if levels and isinstance(levels[-1], BinAnswers) else None
    of_place = 1 if bins is None else 2
    split = [
        (tuple(leaf.keys.values())[:-of_place], tuple(leaf.keys.values())[-of_place:], one)
        for leaf in leaves
        for one in leaf.answers.values()
    ]
    columns = list(leaves[0].keys) if leaves else []
    names = {name for leaf in leaves for name in leaf.answers}
    return Drawn(
        names.pop() if len(names) == 1 else "value",
        {(series, place): answer for series, place, answer in split},
        list(dict.fromkeys(series for series, _, _ in split)),
        list(dict.fromkeys(place for _, place, _ in split)),
        ", ".join(columns[:-of_place]),
        ", ".join(columns[-of_place:] if bins is None else bins.shown_columns()),
        confidence,
    )


def _title(drawn: Drawn, epsilon: Fraction | Rho) -> str:
    shown = show_at(epsilon)
    first = next((a for a in drawn.answers.values() if a.interval(drawn.confidence) is not None), None)
    if first is None:
        return shown
    confidence = first.confidence if drawn.confidence is None else drawn.confidence
    return f"{shown}, {100 * float(confidence):.6g} % intervals"


# ── numbers ──────────────────────────────────────────────────────────────────────────


def _numbers(ax: Any, drawn: Drawn, last: Answers | None, kind: str | None, style: dict[str, Any]) -> None:
    is_bins, many = isinstance(last, BinAnswers), len(drawn.series) > MOST_SERIES
    if isinstance(last, Distribution) and kind is None:
        _steps(ax, drawn, style)
    elif _are_fractions(drawn) and kind is None:
        _points(ax, drawn, style)
    elif len(drawn.series) > 1 and (kind == "heatmap" or (kind is None and (not is_bins or many))):
        _heat_map(ax, drawn, style)
    elif is_bins and len(drawn.series) > 1 and len(drawn.answers) > MOST_BARS and kind is None:
        _outlines(ax, drawn, style)
    elif is_bins:
        edges = [_edges(*place) for place in drawn.places]
        _bars(ax, drawn, [low for low, _ in edges], [high - low for low, high in edges], style)
        ax.set_xlabel(drawn.place_name)
    else:
        _bars_by_key(ax, drawn, style)


def _edges(lower: float, upper: float) -> tuple[float, float]:
    """Where a bin is drawn: an integer in the middle of its own."""
    return (lower - 0.5, upper + 0.5) if lower == upper else (lower, upper)


def _range(lower: object, upper: object) -> str:
    """A bin in words."""
    return str(lower) if lower == upper else f"{lower} to {upper}"


def _are_fractions(drawn: Drawn) -> bool:
    return bool(drawn.places) and drawn.place_name == "fraction"


def _bars_by_key(ax: Any, drawn: Drawn, style: dict[str, Any]) -> None:
    keys = [place[0] for place in drawn.places if place]
    if len(keys) > MANY and all(type(key) in (int, float) for key in keys):
        gap = min(b - a for a, b in pairwise(sorted(keys)))
        _bars(ax, drawn, [key - gap / 2 for key in keys], [gap] * len(keys), style)
    else:
        _bars(ax, drawn, [i - 0.5 for i in range(len(drawn.places))], [1] * len(drawn.places), style)
        _label(ax.xaxis, [_words(place) for place in drawn.places])
    ax.set_xlabel(drawn.place_name)


def _bars(
    ax: Any, drawn: Drawn, starts: Sequence[float], widths: Sequence[float], style: dict[str, Any]
) -> None:
    """Bars from where they start, those of several series beside each other; and what their heights are."""
    number = max(len(drawn.series), 1)
    room = 0.94 if len(starts) > MANY or number > 1 else 0.8
    margin = (1 - room) / 2
    for i, series in enumerate(drawn.series):
        left = [s + w * (margin + room * i / number) for s, w in zip(starts, widths, strict=True)]
        options = {
            "width": [w * room / number for w in widths],
            "align": "edge",
            "label": _words(series) if number > 1 else None,
            "capsize": 3 if number * len(starts) <= MANY else 0,
            "ecolor": _ink(),
            "error_kw": {"elinewidth": 1}
            if number * len(starts) <= 3 * MANY
            else {"elinewidth": 0.7, "alpha": 0.5},
            **style,
        }
        errors = drawn.errors(series)
        if any(map(any, errors)) and "yerr" not in options:
            options["yerr"] = errors
        ax.bar(left, drawn.values(series), **options)
    ax.set_ylabel(drawn.name)
    if number > 1:
        ax.legend(title=drawn.series_name)
    if len(starts) == number == 1:
        ax.set_xlim(starts[0] - 1.5 * widths[0], starts[0] + 2.5 * widths[0])


def _outlines(ax: Any, drawn: Drawn, style: dict[str, Any]) -> None:
    """The outlines of bins, those of several series over each other."""
    edges = [_edges(*place) for place in drawn.places]
    points = [edges[0][0], *(high for _, high in edges)]
    _lines(ax, drawn, points, lambda values: [*values, values[-1]], style)


def _steps(ax: Any, drawn: Drawn, style: dict[str, Any]) -> None:
    _lines(ax, drawn, [place[0] for place in drawn.places], list, style)


def _lines(
    ax: Any,
    drawn: Drawn,
    points: Sequence[float],
    at_points: Callable[[list[float]], list[float]],
    style: dict[str, Any],
) -> None:
    """A line of steps for each series, within the band of its intervals."""
    for series in drawn.series:
        label = _words(series) if len(drawn.series) > 1 else None
        heights = at_points(drawn.values(series))
        (line,) = ax.step(points, heights, **{"where": "post", "label": label, **style})
        low, high = map(at_points, drawn.ends(series))
        ax.fill_between(points, low, high, step="post", alpha=0.25, color=line.get_color(), linewidth=0)
    ax.set_xlabel(drawn.place_name)
    ax.set_ylabel(drawn.name)
    if len(drawn.series) > 1:
        ax.legend(title=drawn.series_name)


def _points(ax: Any, drawn: Drawn, style: dict[str, Any]) -> None:
    points = [float(place[0]) for place in drawn.places]
    # Error bars of several series beside each other, within a tenth of the way to the next point.
    room = min((b - a for a, b in pairwise(sorted(points))), default=1) / 10 / len(drawn.series)
    for i, series in enumerate(drawn.series):
        label = _words(series) if len(drawn.series) > 1 else None
        errors, aside = drawn.errors(series), room * (i - (len(drawn.series) - 1) / 2)
        options = {"fmt": "o-", "capsize": 3, "label": label, **style}
        options["yerr"] = errors if any(map(any, errors)) else None
        ax.errorbar([point + aside for point in points], drawn.values(series), **options)
    ax.set_xlabel(drawn.place_name)
    ax.set_ylabel(drawn.name)
    if len(drawn.series) > 1:
        ax.legend(title=drawn.series_name)


def _heat_map(ax: Any, drawn: Drawn, style: dict[str, Any]) -> None:
    """Values as colours: series down, places across; and written out, with their errors, if there is room."""
    rows = [drawn.values(series) for series in drawn.series]
    image = ax.imshow(rows, **{"aspect": "auto", "interpolation": "nearest", **style})
    _label(ax.xaxis, [_range(*place) if len(place) == 2 else _words(place) for place in drawn.places])
    _label(ax.yaxis, [_words(series) for series in drawn.series])
    ax.set_xlabel(drawn.place_name)
    ax.set_ylabel(drawn.series_name)
    ax.figure.colorbar(image, ax=ax, label=drawn.name)
    if len(drawn.series) * len(drawn.places) <= MOST_WRITTEN:
        for y, series in enumerate(drawn.series):
            for x, place in enumerate(drawn.places):
                if (answer := drawn.answers.get((series, place))) is not None:
                    colour = _readable_on(image.cmap(image.norm(float(answer.value))))
                    options = {"ha": "center", "va": "center", "fontsize": "x-small", "color": colour}
                    ax.text(x, y, _in_a_cell(answer), **options)


def _in_a_cell(answer: Answer) -> str:
    """An answer in two lines."""
    number, _, confidence = str(answer).rpartition(" at ")
    return (number or confidence).replace(" ± ", "\n± ").replace(", ", "\n")


def _readable_on(colour: tuple[float, ...]) -> str:
    red, green, blue = colour[:3]
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


# ── what is no number ────────────────────────────────────────────────────────────────


def _others(ax: Any, drawn: Drawn, style: dict[str, Any]) -> None:
    """Pairs as bars from the one to the other; anything else as dots at its words."""
    keys = list(drawn.answers)
    labels = [_words((*series, *place)) for series, place in keys]
    values = [drawn.answers[key].value for key in keys]
    if all(isinstance(value, tuple) and len(value) == 2 and all(map(is_number, value)) for value in values):
        lows = [float(low) for low, _ in values]
        heights = [float(high) - float(low) for low, high in values]
        ax.bar(range(len(keys)), heights, bottom=lows, **style)
    else:
        words = [_words(tuple(value)) if isinstance(value, list | tuple) else str(value) for value in values]
        known = list(dict.fromkeys(words))
        ax.plot(
            range(len(keys)),
            [known.index(word) for word in words],
            **{"linestyle": "", "marker": "o", **style},
        )
        _label(ax.yaxis, known)
        ax.margins(y=0.2)
    _label(ax.xaxis, labels)
    ax.set_xlabel(", ".join(filter(None, (drawn.series_name, drawn.place_name))))
    ax.set_ylabel(drawn.name)


# ── words on an axis ─────────────────────────────────────────────────────────────────


def _words(key: Key) -> str:
    return ", ".join(map(str, key))


def _ink() -> Any:
    return needed("matplotlib", "plot()").rcParams["text.color"]


def _label(axis: Any, labels: Sequence[str]) -> None:
    """Labels at 0, 1, 2, …: across, turned if they are too wide; of too many every second, third, …"""
    axis.set_ticks(range(len(labels)), labels)
    if not labels:
        return
    size = axis.get_ticklabels()[0].get_fontsize()
    if axis.axis_name == "x":
        # A letter is about 0.6 as wide as high: to measure it, the figure would have to be drawn.
        letters = max(int(_length(axis) / len(labels) / (0.65 * size)) - 1, 1)
        lines = [textwrap.wrap(label, letters, break_long_words=False) for label in labels]
        if all(len(each) <= MOST_LINES and max(map(len, each), default=0) <= letters for each in lines):
            axis.set_ticks(range(len(labels)), ["\n".join(each) for each in lines])
            return
        axis.set_tick_params(rotation=90)
    most = MOST_BELOW if axis.axis_name == "x" else MOST_BESIDE
    short = [f"{label[:most]}…" if len(label) > most + 1 else label for label in labels]
    _thin_out(axis, short, 1.4 * size)


def _thin_out(axis: Any, labels: Sequence[str], size: float) -> None:
    """As many labels as there is room for when the axis is drawn, whatever becomes of it until then."""
    ticker = needed("matplotlib.ticker", "plot()")

    class EveryFew(ticker.Locator):  # type: ignore[misc, name-defined]
        def __call__(self) -> list[int]:
            most = max(int(_length(axis) / size), 1)
            return list(range(0, len(labels), math.ceil(len(labels) / most)))

    axis.set_major_locator(EveryFew())
    axis.set_major_formatter(ticker.FuncFormatter(lambda at, _: labels[round(at)]))


def _length(axis: Any) -> float:
    """How long an axis is, in points."""
    box = axis.axes.bbox
    pixels = box.width if axis.axis_name == "x" else box.height
    return float(pixels * 72 / axis.axes.figure.dpi)
