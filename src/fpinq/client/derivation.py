"""Facts, shown: a table in five lines, and its derivation with every stability and scaling factor."""

from collections.abc import Iterator
from fractions import Fraction
from html import escape

from fpinq.client.facts import Facts, Made
from fpinq.client.shown import visibly
from fpinq.client.spelling import show_down, show_up
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import NotConcentrated
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Rho
from fpinq.model.visible import visible

ONE = Epsilon(Fraction(1))
NODE_WIDTH, NODE_HEIGHT, GAP_X, GAP_Y = 230, 46, 24, 34


def summary(table: Facts) -> list[tuple[str, str]]:
    """A table in five lines, each with its name, and one more if its budget is a ρ."""
    columns = ", ".join(f"{visible(name)} {type_.value}" for name, type_ in table.schema.columns)
    columns += " (read off the data)" if table.made.read_off else ""
    labels = table.root_labels()
    in_rho = _in_rho(table)
    unit = "ρ = " if in_rho else ""
    left = ", ".join(
        f"{unit}{show_down(amount)} of {visible(labels[root])}" for root, amount in table.left().items()
    )
    price = " + ".join(show_up(p) for p in table.prices(ONE).values()) or "0"
    return [
        ("table", _in_one_line(table.made)),
        ("columns", columns),
        ("scaling factor", str(table.scaling_factor())),
        ("left", left or "public: costs nothing"),
        ("ε = 1 costs", unit + price),
        *([("ρ = 1 costs", " + ".join(unit + show_up(p) for p in in_rho.values()))] if in_rho else []),
    ]


def _in_rho(table: Facts) -> dict[str, Fraction]:
    """What ρ = 1 would cost each root; nothing unless all of them have budgets of ρ."""
    try:
        return table.prices(Rho(ONE))
    except NotConcentrated:
        return {}


def _in_one_line(made: Made) -> str:
    steps = " and ".join(_in_one_line(parent.made) for parent in made.parents)
    label = visible(made.label)
    return f"{steps} → {label}" if steps else label


@dataclass(frozen=True)
class Node:
    """A table in a derivation."""

    label: str
    factor: int
    made: Made
    parents: tuple["Node", ...]

    def arithmetic(self) -> str:
        """Why the factor is what it is."""
        if self.made.rows_per_unit is not None:
            return f"{self.factor}  (rows per person)"
        if not self.parents:
            return str(self.factor)
        terms = " + ".join(
            f"{c}·{parent.factor}" for c, parent in zip(self.made.stability, self.parents, strict=True)
        )
        total = sum(c * p.factor for c, p in zip(self.made.stability, self.parents, strict=True))
        if total == self.factor:
            return f"{self.factor} = {terms}"
        return f"{self.factor} ≤ {terms}  (the largest, over parts or roots)"


@visibly
class Derivation:
    """A table's derivation, as text (str) and as a drawing (svg, shown by notebooks)."""

    def __init__(self, table: Facts) -> None:
        self.root = _node(table, {})

    def __str__(self) -> str:
        lines = list(_lines(self.root, "", "", set()))
        width = max(len(left) for left, _ in lines)
        header = "table".ljust(width) + "  scaling factor"
        return "\n".join([header, *(f"{left.ljust(width)}  {right}".rstrip() for left, right in lines)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """The derivation as a drawing: roots on top, stabilities at the arrows, factors in the boxes."""
        levels: dict[int, int] = {}
        order: list[Node] = []
        _layer(self.root, levels, order)
        rows: dict[int, list[Node]] = {}
        for node in order:
            rows.setdefault(levels[id(node)], []).append(node)
        widest = max(len(nodes) for nodes in rows.values())
        width = widest * (NODE_WIDTH + GAP_X) + GAP_X
        height = (max(rows) + 1) * (NODE_HEIGHT + GAP_Y) + GAP_Y
        place: dict[int, tuple[float, float]] = {}
        for level, nodes in rows.items():
            for column, node in enumerate(nodes):
                x = width * (column + 0.5) / len(nodes)
                place[id(node)] = (x, GAP_Y / 2 + level * (NODE_HEIGHT + GAP_Y))
        parts = [part for node in order for part in _drawn(node, place)]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="system-ui, sans-serif" font-size="12">'
            '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
            '<path d="M0,0 L7,3 L0,6 z" fill="#667"/></marker></defs>' + "".join(parts) + "</svg>"
        )


def _node(table: Facts, seen: dict[int, Node]) -> Node:
    if id(table) not in seen:
        parents = tuple(_node(parent, seen) for parent in table.made.parents)
        seen[id(table)] = Node(visible(table.made.label), table.scaling_factor(), table.made, parents)
    return seen[id(table)]


def _lines(node: Node, stem: str, branch: str, shown: set[int]) -> Iterator[tuple[str, str]]:
    again = id(node) in shown and node.parents
    shown.add(id(node))
    note = " (schema read off the data)" if node.made.read_off else ""
    yield stem + branch + node.label + note, f"{node.factor}  (as above)" if again else node.arithmetic()
    if again:
        return
    stem += {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
    for position, parent in enumerate(node.parents, 1):
        last = position == len(node.parents)
        yield from _lines(parent, stem, "└─ " if last else "├─ ", shown)


def _layer(node: Node, levels: dict[int, int], order: list[Node]) -> int:
    if id(node) not in levels:
        levels[id(node)] = max((_layer(parent, levels, order) + 1 for parent in node.parents), default=0)
        order.append(node)
    return levels[id(node)]


def _drawn(node: Node, place: dict[int, tuple[float, float]]) -> Iterator[str]:
    x, y = place[id(node)]
    for position, parent in enumerate(node.parents):
        px, py = place[id(parent)]
        yield (
            f'<line x1="{px:.0f}" y1="{py + NODE_HEIGHT:.0f}" x2="{x:.0f}" y2="{y - 2:.0f}" '
            'stroke="#667" marker-end="url(#tip)"/>'
        )
        if node.made.stability:
            yield (
                f'<text x="{(px + x) / 2 + 6:.0f}" y="{(py + NODE_HEIGHT + y) / 2 + 4:.0f}" fill="#445">'
                f"×{node.made.stability[position]}</text>"
            )
    label = node.label if len(node.label) <= 34 else node.label[:33] + "…"
    yield (
        f'<rect x="{x - NODE_WIDTH / 2:.0f}" y="{y:.0f}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" rx="6" '
        'fill="#eef3f9" stroke="#7a9cc6"/>'
        f'<text x="{x:.0f}" y="{y + 19:.0f}" text-anchor="middle">{escape(label)}</text>'
        f'<text x="{x:.0f}" y="{y + 36:.0f}" text-anchor="middle" font-weight="600">{node.factor}</text>'
    )
