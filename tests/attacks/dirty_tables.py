"""Dirty tables with a known graph and known answers: each case is read right, noted or refused, never wrong in silence.

A case is a small shop: customers buy products on days at prices. Its tables are written as people's spreadsheets are:
dates in five formats, decimal commas, currency signs, thousands dots, blanks, mixed case, words for nothing, pivots.
Every fourth case is read as data frames and databases give tables: each cell is a text, and an empty one is missing.
The outcomes: `right`; `refused` with one sentence; `noted`, if the graph or an answer differs from what a person means
and a note names the column, or the id; `silent`, if it differs and nothing says so; `crashed`. Where a note or refusal
names a line of graph.toml, a case is `settled` if the graph and the answers are right with that line.
"""

import csv
import io
import json
import operator
import re
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa

from neupath import HIN, load
from neupath.errors import NeuPathError, listed
from neupath.graph.refinement import refinement_of

Rng = np.random.Generator


# ---- The shop that a person means ------------------------------------------------------------------
@dataclass(frozen=True)
class Order:
    """An edge: who bought what, when, at which price; None where the shop does not know."""

    customer: str
    product: str | None
    day: date
    price: float


@dataclass(frozen=True)
class Shop:
    orders: tuple[Order, ...]
    prices: Mapping[str, float]
    """A product -> what it costs."""

    @property
    def known(self) -> list[Order]:
        return [order for order in self.orders if order.product is not None]


_CUSTOMERS: Final = ("ann", "bob", "cem", "dee", "eva", "fay", "gus", "hal")
_PRODUCTS: Final = ("tea", "cup", "pen", "mug", "lamp", "desk", "sofa")


def make_shop(rng: Rng) -> Shop:
    """Make some orders; all days and prices are such that comparisons of texts would give another answer."""
    products = list(_PRODUCTS[: int(rng.integers(4, 8))])
    prices = {name: round(float(rng.choice([3, 9, 15, 40, 120, 999, 1200, 15000]) + rng.integers(0, 99) / 100), 2)
              for name in products}  # fmt: skip
    orders = []
    for _ in range(int(rng.integers(12, 40))):
        product = str(rng.choice(products))
        day = date(2019, 1, 1) + timedelta(days=int(rng.integers(0, 2200)))
        orders.append(Order(str(rng.choice(_CUSTOMERS)), product, day, prices[product]))
    return Shop(tuple(orders), prices)


# ---- How spreadsheets write it ---------------------------------------------------------------------
DATES: Final[dict[str, str]] = {
    "iso": "%Y-%m-%d", "day first": "%d.%m.%Y", "month first": "%m/%d/%Y", "day first, slashes": "%d/%m/%Y",
    "compact": "%Y%m%d",
}  # fmt: skip
PRICES: Final[dict[str, Callable[[float], str]]] = {
    "point": lambda price: f"{price:.2f}",
    "comma": lambda price: f"{price:.2f}".replace(".", ","),
    "thousands dots": lambda price: f"{price:,.2f}".translate(str.maketrans(",.", ".,")),
    "thousands commas": lambda price: f"{price:,.2f}",
    "dollar": lambda price: f"${price:.2f}",
    "euro": lambda price: f"{price:.2f} €".replace(".", ","),
}
NOTHING: Final = ("NULL", "null", "N/A", "NA", "nan", "None", "-", "?", "(no product given)")


@dataclass(frozen=True)
class Dirt:
    """What is dirty about a case."""

    dates: str
    prices: str
    delimiter: str
    blanks: bool = False
    nothing: str = ""
    """The word for a product that nobody knows."""
    case: str = ""
    """What differs in some spellings of ids: `case`, `spaces`, or nothing."""
    in_nodes: bool = False
    """Whether some spellings differ between the table of products and the orders."""
    pivot: str = ""


@dataclass
class Case:
    """The files of a case, and what a person means by them."""

    shop: Shop
    dirt: Dirt
    files: dict[str, str] = field(default_factory=dict)


def make_case(rng: Rng) -> Case:
    def perhaps(share: float) -> bool:
        return bool(rng.random() < share)

    dirt = Dirt(
        dates=str(rng.choice(list(DATES))), prices=str(rng.choice(list(PRICES))),
        delimiter=str(rng.choice([",", ";", "\t"])),
        blanks=perhaps(0.3), nothing=str(rng.choice(NOTHING)) if perhaps(0.3) else "",
        case=str(rng.choice(["case", "spaces"])) if perhaps(0.3) else "", in_nodes=perhaps(0.1),
        pivot=str(rng.choice(["zeros", "blanks", "marks", "counts"])) if perhaps(0.2) else "",
    )  # fmt: skip
    shop = make_shop(rng)
    if dirt.nothing:
        orders = [replace(order, product=None) if perhaps(0.15) else order for order in shop.orders]
        orders[0], orders[-1] = replace(orders[0], product=None), replace(orders[-1], product=None)
        shop = replace(shop, orders=tuple(orders))
    case = Case(shop, dirt)
    _write(case, rng)
    return case


def _write(case: Case, rng: Rng) -> None:
    shop, dirt = case.shop, case.dirt
    write_price, day_format = PRICES[dirt.prices], DATES[dirt.dates]
    with_nodes = not dirt.nothing or bool(rng.integers(2))
    if with_nodes:
        rows = [[name, write_price(price)] for name, price in shop.prices.items()]
        rows += [[dirt.nothing, ""]] if dirt.nothing else []
        case.files["products.csv"] = _text(["product_id", "price"], rows, dirt.delimiter)
    if dirt.pivot:
        counts = Counter((order.customer, order.product) for order in shop.known)
        products = sorted(shop.prices)
        empty = {"zeros": "0", "blanks": "", "marks": "", "counts": "0"}[dirt.pivot]
        rows = [
            [
                who,
                *(
                    ("x" if dirt.pivot == "marks" else str(counts[who, p])) if counts[who, p] else empty
                    for p in products
                ),
            ]
            for who in sorted({order.customer for order in shop.known})
        ]
        case.files["customer_product.csv"] = _text(["customer", *products], rows, dirt.delimiter)
        return
    spelled: set[str] = set()
    rows = []
    for order in shop.orders:
        who, what = order.customer, order.product if order.product is not None else dirt.nothing
        if dirt.case and (rng.random() < 0.3 or not spelled):
            who = {"case": who.title(), "spaces": f"{who} "}[dirt.case]
            spelled.add(who)
        if dirt.in_nodes and with_nodes and order.product and rng.random() < 0.2:
            what = what.upper()
        day = "" if dirt.blanks and rng.random() < 0.2 else order.day.strftime(day_format)
        price = "" if dirt.blanks and rng.random() < 0.2 else write_price(order.price)
        rows.append([who, what, day, price])
    case.files["customer_product.csv"] = _text(["customer_id", "product_id", "day", "paid"], rows, dirt.delimiter)


def _text(header: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return stream.getvalue()


# ---- What a person expects ---------------------------------------------------------------------------
SIGNS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": operator.lt, ">=": operator.ge, "=": operator.eq}


def read_rows(case: Case, file: str = "customer_product.csv") -> list[dict[str, str]]:
    """Return the orders, or the rows of another file, as they are written."""
    return list(csv.DictReader(io.StringIO(case.files[file]), delimiter=case.dirt.delimiter))


def load_texts(case: Case) -> HIN:
    """Load the tables of a case with a text in each cell, as data frames and databases hold them."""
    source: dict[Any, pa.Table] = {}
    for file in case.files:
        rows = [{column: text or None for column, text in row.items()} for row in read_rows(case, file)]
        schema = pa.schema([(column, pa.string()) for column in rows[0]])
        name = ("customer", "product") if file == "customer_product.csv" else "product"
        source[name] = pa.Table.from_pylist(rows, schema)
    return load(source)


@dataclass(frozen=True)
class Question:
    """A comparison of a column with a value, and the edges, or products, for which a person says yes."""

    column: str
    condition: str
    window: Mapping[str, str]
    """`since` or `until`, instead of a condition."""
    answer: Counter[tuple[str, str]]
    of_products: bool = False
    """Whether it is asked of the table of products; an answer has each twice, as an edge has two ends."""


def questions(case: Case, rng: Rng) -> Iterator[Question]:
    """Yield comparisons of days and prices of edges, and of products, with two signs; a blank cell answers none."""
    shop = case.shop
    if "products.csv" in case.files:
        least = float(rng.choice(list(shop.prices.values())))
        for sign in SIGNS:
            dear = Counter((name, name) for name, price in shop.prices.items() if SIGNS[sign](price, least))
            yield Question("price", f"price {sign} {least:.2f}", {}, dear, of_products=True)
    if not case.dirt.pivot:
        yield from questions_on_edges(case, rng)


def questions_on_edges(case: Case, rng: Rng) -> Iterator[Question]:
    orders = list(zip(read_rows(case), case.shop.orders, strict=True))

    def meant(column: str, test: Callable[[Order], bool]) -> Counter[tuple[str, str]]:
        return Counter((o.customer, o.product) for row, o in orders if o.product and row[column] and test(o))

    price = float(rng.choice([order.price for order in case.shop.orders]))
    day = case.shop.orders[int(rng.integers(len(orders)))].day
    for sign in rng.choice(list(SIGNS), size=2, replace=False).tolist():
        paid = meant("paid", lambda o, sign=sign: SIGNS[sign](o.price, price))  # type: ignore[misc]
        yield Question("paid", f"paid {sign} {price:.2f}", {}, paid)
        dated = meant("day", lambda o, sign=sign: SIGNS[sign](o.day, day))  # type: ignore[misc]
        yield Question("day", f"day {sign} {day}", {}, dated)
    if rng.integers(2):
        yield Question("day", "", {"since": str(day)}, meant("day", lambda o: o.day >= day))
    else:
        yield Question("day", "", {"until": str(day)}, meant("day", lambda o: o.day <= day))


# ---- What neupath says -------------------------------------------------------------------------------
def answer_of(hin: HIN, question: Question, case: Case) -> Counter[tuple[str, str]]:
    """Return the edges, or the products that a person knows, that answer a question."""
    if not question.of_products:
        return edges_of(hin, question)
    nodes = hin.nodes["product"]
    names = map(str, nodes.ids.filter(pa.array(nodes.where(question.condition))).to_pylist())
    return Counter({(name, name): 1 for name in names if name in case.shop.prices})


def edges_of(hin: HIN, question: Question | None = None) -> Counter[tuple[str, str]]:
    """Return how many edges join each customer and product, all of them or those that answer a question."""
    (relation,) = hin.matrices
    matrix = hin.matrices[relation]
    if question is not None:
        condition = f"[{question.condition}]" if question.condition else ""
        path = hin.metapath(f"{relation.source} -{relation.name}{condition}-> {relation.target}")
        if question.window:
            path = refinement_of(time="day", **question.window).apply(hin, path)
        matrix = hin.matrix(path.steps[0].links[0])
    entries = matrix.tocoo()
    ids = [list(map(str, hin.nodes[end].ids.to_pylist())) for end in (relation.source, relation.target)]
    counts = zip(entries.row, entries.col, entries.data, strict=True)
    return Counter({(ids[0][row], ids[1][column]): int(count) for row, column, count in counts if count})


# ---- Verdicts ----------------------------------------------------------------------------------------
@dataclass
class Verdict:
    """What came of a case: its outcome, of several the worst, and what happened."""

    kind: str = "right"
    what: str = ""
    answers: Counter[str] = field(default_factory=Counter)
    """How many questions came out how."""

    def add(self, kind: str, what: str) -> None:
        if ORDER.index(kind) > ORDER.index(self.kind):
            self.kind, self.what = kind, what


ORDER: Final = ("right", "settled", "noted", "refused", "silent", "crashed")


def judge(
    case: Case, folder: Path, seed: Sequence[int], toml: str = "", *, as_texts: bool = False
) -> tuple[Verdict, list[str]]:
    """Read a case and ask its questions; return the verdict, and the notes and refusals that came."""
    verdict = Verdict()
    said: list[str] = []
    for name, text in (case.files | ({"graph.toml": toml} if toml else {})).items():
        (folder / name).write_text(text, encoding="utf-8")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hin = load_texts(case) if as_texts else load(folder)
    except NeuPathError as error:
        return Verdict("refused", str(error)), [str(error)]
    except Exception as error:
        return Verdict("crashed", f"{type(error).__name__}: {error}"[:300]), []
    said += hin.notes
    if len(hin.matrices) != 1:
        return Verdict("silent", f"the relations are {listed(map(str, hin.matrices))}"), said
    read, known = (
        _as_meant(edges_of(hin), case),
        Counter((o.customer, o.product) for o in case.shop.orders if o.product),
    )
    if read != known:
        odd = [word for pair in read - known for word in pair if word not in (*_CUSTOMERS, *_PRODUCTS)]
        names = [word for word in odd if any(repr(word) in note for note in said)]
        types = [
            kind for kind in hin.nodes if any(note.startswith(f"{kind}: ") and "only by case" in note for note in said)
        ]
        noted = bool(odd) and (bool(names) or bool(types))
        verdict.add("noted" if noted else "silent", f"edges {sorted((read - known).items())[:3]} are not meant")
    # where ids are noted, an edge counts under the spelling that it has
    spelled = Counter((plain(a, case), plain(b, case)) for a, b in read.elements())
    for question in questions(case, np.random.default_rng([*seed, 1])):
        try:
            answer = answer_of(hin, question, case)
        except NeuPathError as error:
            said.append(str(error))
            verdict.answers["refused"] += 1
            verdict.add("refused", f"{question.condition or question.window}: {error}")
            continue
        except Exception as error:
            verdict.add("crashed", f"{question}: {type(error).__name__}: {error}"[:300])
            continue
        meant = Counter((plain(a, case), plain(b, case)) for a, b in answer.elements())
        wanted = Counter(
            {pair: count for pair, count in question.answer.items() if pair in spelled or question.of_products}
        )
        given = Counter({pair: count for pair, count in meant.items() if pair[1] in _PRODUCTS})
        if given != wanted:
            noted = any(re.search(rf"\b{question.column}\b", note) for note in hin.notes)
            what = f"{question.condition or question.window} gives {given - wanted}, not {wanted - given}"
            verdict.answers["noted" if noted else "silent"] += 1
            verdict.add("noted" if noted else "silent", what)
        else:
            verdict.answers["right"] += 1
    return verdict, said


def _as_meant(edges: Counter[tuple[str, str]], case: Case) -> Counter[tuple[str, str]]:
    """Return edges by the ids that are meant, unless two spellings of one id are two nodes."""
    for end in (0, 1):
        ids = {pair[end] for pair in edges}
        if len({plain(each, case) for each in ids}) < len(ids):
            return edges
    return Counter({(plain(a, case), plain(b, case)): count for (a, b), count in edges.items()})


def plain(text: str, case: Case) -> str:
    """Return an id as the shop means it."""
    folded = " ".join(text.split()).lower()
    return text if case.dirt.nothing and text == case.dirt.nothing else folded


# ---- graph.toml as notes and refusals propose it -----------------------------------------------------
_KEYS: Final = {
    "missing_ids": r"(missing_ids = \[.+?\]) in graph.toml leaves",
    "fold_ids": r"(fold_ids = true) in graph.toml",
}


def proposed(said: Sequence[str]) -> str | None:
    """Return a graph.toml of the lines that notes and refusals propose, or None if they propose none."""
    text = "\n".join(said)
    top = {key: found[1] for key, pattern in _KEYS.items() if (found := re.search(pattern, text))}
    missing = {
        word for found in re.findall(_KEYS["missing_ids"], text) for word in json.loads(found.partition("= ")[2])
    }
    if missing:
        top["missing_ids"] = f"missing_ids = {json.dumps(sorted(missing), ensure_ascii=False)}"
    types: dict[str, str] = {}
    for found in re.findall(r"attribute_types = \{(.+?)\}", text):
        with suppress(tomllib.TOMLDecodeError):
            types |= {
                key: value
                for key, value in tomllib.loads(found.replace(", ", "\n")).items()
                if key in ("day", "paid", "price")
            }
    if not top and not types:
        return None
    lines = list(top.values())
    own = ", ".join(f"{key} = {json.dumps(value)}" for key, value in types.items() if key != "price")
    if own:
        lines += ["[[edges]]", 'name = "bought"', 'file = "customer_product.csv"', 'source = "customer"',
                  'target = "product"', 'columns = ["customer_id", "product_id"]',
                  f"attribute_types = {{{own}}}"]  # fmt: skip
    if "price" in types:
        lines += [
            "[nodes.product]",
            'file = "products.csv"',
            f"attribute_types = {{price = {json.dumps(types['price'])}}}",
        ]
    return "\n".join(lines)


# ---- Attacking ---------------------------------------------------------------------------------------
def attack_dirty_tables(count: int, seed: int = 0, keep: Path | None = None) -> dict[str, Any]:
    """Read `count` dirty cases; return how many came out how. Files of cases that are wrong are left in `keep`."""
    kinds: Counter[str] = Counter()
    bad, settled, answers = [], Counter[str](), Counter[str]()
    for number in range(count):
        if number and number % 100 == 0:
            print(f"{number} of {count}: {dict(kinds)}", file=sys.stderr, flush=True)
        with TemporaryDirectory() as parent:
            verdict, second = try_case(number, seed, Path(parent))
        kinds[verdict.kind] += 1
        answers += verdict.answers
        if second is not None:
            settled[second.kind] += 1
            answers += second.answers
        for each in (verdict, second):
            if each is not None and each.kind in ("silent", "crashed"):
                bad.append(f"{number}: {each.kind}: {each.what}")
                if keep is not None:
                    (keep / f"dirty-{seed}-{number}").mkdir(parents=True, exist_ok=True)
                    try_case(number, seed, keep / f"dirty-{seed}-{number}")
    figures = {kind: kinds[kind] for kind in ("right", "noted", "refused", "silent", "crashed")}
    return (
        figures
        | {"answers": dict(answers), "with the proposed graph.toml": dict(settled)}
        | ({"bad": bad} if bad else {})
    )


def try_case(number: int, seed: int, folder: Path) -> tuple[Verdict, Verdict | None]:
    """Try a case as it is and, if files are read and something proposes lines of graph.toml, with them."""
    case = make_case(np.random.default_rng([seed, number]))
    as_texts = number % 4 == 3
    verdict, said = judge(case, folder, [seed, number], as_texts=as_texts)
    toml = proposed(said)
    if toml is None or as_texts or verdict.kind in ("silent", "crashed"):
        return verdict, None
    return verdict, judge(case, folder, [seed, number], toml)[0]


if __name__ == "__main__":
    for argument in sys.argv[2:]:
        with TemporaryDirectory() as parent:
            place = Path(parent)
            print(make_case(np.random.default_rng([int(sys.argv[1]), int(argument)])).dirt)
            print(*try_case(int(argument), int(sys.argv[1]), place), sep="\n")
            print(*(f"--- {path.name}\n{path.read_text()}" for path in sorted(place.iterdir())), sep="\n")
