"""The house in numbers: what its rooms hold, who imports whom, and how many files and functions a call walks through.

Everything is counted in the package that ``import tacit`` finds. Walks use public names alone: they outlast a change inside.
"""

import argparse
import ast
import inspect
import json
import os
import sys
import tempfile
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from enum import Enum, auto
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import tacit

SOURCE = Path(tacit.__file__).parent
TOP = "top"  # the room of modules that stand in no folder
BESIDE = ("audit", "evaluation")  # rooms that judge the product and are no part of it


# ---- Modules, and the lines in them


class Module(NamedTuple):
    name: str
    room: str
    is_package: bool
    text: str
    tree: ast.Module


def read_modules() -> dict[str, Module]:
    modules = {}
    for path in sorted(SOURCE.rglob("*.py")):
        relative, text = path.relative_to(SOURCE), path.read_text(encoding="utf-8")
        is_package = path.name == "__init__.py"
        name = ".".join(["tacit", *(relative.parent if is_package else relative.with_suffix("")).parts])
        room = relative.parts[0] if len(relative.parts) > 1 else TOP
        modules[name] = Module(name, room, is_package, text, ast.parse(text))
    return modules


def measure(module: Module) -> Counter[str]:
    """Each line is code, of a docstring, a comment or blank. Imports are code, too."""
    documented, importing = set[int](), set[int]()
    for node in ast.walk(module.tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                importing |= _span(node)
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if ast.get_docstring(node, clean=False) is not None:
                    documented |= _span(node.body[0])
    lines = module.text.splitlines()
    others = [line.strip() for number, line in enumerate(lines, 1) if number not in documented]
    comments, blank = sum(line.startswith("#") for line in others), others.count("")
    size = {"files": 1, "lines": len(lines), "code": len(others) - comments - blank, "docstrings": len(documented)}
    return Counter(size | {"comments": comments, "blank": blank, "imports": len(importing)})


def _span(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def measure_rooms(modules: Iterable[Module]) -> dict[str, dict[str, float]]:
    """Of each room, of the product and of all; with the share of imports in percent of all lines."""
    measured = [(module.room, measure(module)) for module in modules]
    rooms = sorted({room for room, _ in measured})
    product = [room for room in rooms if room not in BESIDE]
    sizes = {}
    for name, inside in [*((room, [room]) for room in rooms), ("the product", product), ("all", rooms)]:
        total = Counter[str]()
        for room, size in measured:
            total.update(size if room in inside else {})
        sizes[name] = {**total, "import_share": round(100 * total["imports"] / total["lines"], 1)}
    return sizes


# ---- Who imports whom


class When(Enum):
    AT_ONCE = auto()
    IN_A_FUNCTION = auto()
    FOR_TYPES = auto()  # under ``if TYPE_CHECKING``
    BY_TABLE = auto()  # by a package that loads its names when they are asked for


Imports = dict[str, dict[str, set[When]]]  # importer, imported, when


def find_imports(modules: Mapping[str, Module]) -> Imports:
    """``from a import b`` imports the module a.b if there is one, and otherwise a. It does not import what a.b stands in."""
    imports: Imports = {name: defaultdict(set) for name in modules}
    for name, module in modules.items():
        for statement, when in _find_statements(module.tree, When.AT_ONCE):
            for imported in _resolve(statement, modules):
                imports[name][imported].add(when)
        for imported in _read_tables(module, modules) if module.is_package else ():
            imports[name][imported].add(When.BY_TABLE)
        imports[name].pop(name, None)
    return imports


def _find_statements(node: ast.AST, when: When) -> Iterator[tuple[ast.Import | ast.ImportFrom, When]]:
    match node:
        case ast.Import() | ast.ImportFrom():
            yield node, when
        case ast.If() if "TYPE_CHECKING" in (test := ast.unparse(node.test)):
            negated = test.startswith("not ")
            for branch, typed in ((node.body, not negated), (node.orelse, negated)):
                for inside in branch:
                    yield from _find_statements(inside, When.FOR_TYPES if typed else when)
        case _:
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            inner = When.IN_A_FUNCTION if function and when is When.AT_ONCE else when
            for child in ast.iter_child_nodes(node):
                yield from _find_statements(child, inner)


def _resolve(statement: ast.Import | ast.ImportFrom, modules: Mapping[str, Module]) -> Iterator[str]:
    for alias in statement.names:
        source = None if isinstance(statement, ast.Import) else str(statement.module)
        candidates = [f"{source}.{alias.name}", source] if source else [alias.name]
        yield from [name for name in candidates if name in modules][:1]


def _read_tables(package: Module, modules: Mapping[str, Module]) -> Iterator[str]:
    """What it names in a call such as ``on_demand(__name__, {"a": ["A"]}, ["b"])`` or ``lazy(__name__, a="A B")``."""
    named = [(node.targets[0], node.value) for node in package.tree.body if isinstance(node, ast.Assign)]
    assigned = {target.id: value for target, value in named if isinstance(target, ast.Name)}
    words: list[str] = []
    for node in ast.walk(package.tree):
        match node:
            case ast.Call(args=[ast.Name(id="__name__"), *given], keywords=keywords):
                for argument in given:
                    words += _read_words(argument, assigned)
                for keyword in keywords:
                    is_module = f"{package.name}.{keyword.arg}" in modules
                    words += [str(keyword.arg)] if is_module else _read_words(keyword.value, assigned)
    yield from (name for word in words if (name := f"{package.name}.{word}") in modules)


def _read_words(node: ast.AST, assigned: Mapping[str, ast.expr]) -> Iterator[str]:
    match node:
        case ast.Name(id=name):
            if name in assigned:
                yield from _read_words(
                    assigned[name], {other: value for other, value in assigned.items() if other != name}
                )
        case ast.Dict(keys=keys):
            for key in keys:
                yield from _read_words(key, assigned) if key else []
        case ast.DictComp(key=ast.JoinedStr(values=parts), generators=[over]):
            for word in _read_words(over.iter, assigned):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else word for part in parts)
        case ast.Constant(value=str(text)):
            yield from text.split()
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _read_words(child, assigned)


def find_single_importers(modules: Mapping[str, Module], imports: Imports) -> dict[str, str]:
    """Modules that one other imports, and nobody else; both are in the same room."""
    importers: defaultdict[str, list[str]] = defaultdict(list)
    for importer, imported in imports.items():
        for name in imported:
            importers[name].append(importer)
    alone = {name: by[0] for name, by in sorted(importers.items()) if len(by) == 1}
    return {name: by for name, by in alone.items() if modules[name].room == modules[by].room}


def find_cycles(imports: Imports, counted: Iterable[When]) -> list[list[str]]:
    """Modules that reach each other: the strongly connected parts with more than one module, largest first."""
    counted = set(counted)
    graph = {name: [other for other, when in of.items() if when & counted] for name, of in imports.items()}
    reached = {name: _reach(name, graph) for name in graph}
    parts = {frozenset(other for other in there if name in reached[other]) for name, there in reached.items()}
    return sorted((sorted(part) for part in parts if len(part) > 1), key=lambda part: (-len(part), part))


def _reach(start: str, graph: Mapping[str, Sequence[str]]) -> set[str]:
    seen, waiting = set[str](), [start]
    while waiting:
        new = [other for other in graph[waiting.pop()] if other not in seen]
        seen.update(new)
        waiting += new
    return seen


def find_shared_names(modules: Iterable[Module]) -> dict[str, list[str]]:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in {node.name for node in module.tree.body if isinstance(node, ast.ClassDef)}:
            homes[name].append(module.name)
    return {name: homes[name] for name in sorted(homes) if len(homes[name]) > 1 and not name.startswith("_")}


# ---- Walks


class Trace:
    """Which functions of tacit run inside ``with``, in this thread and in others whose profiler is ``see``.

    What a module does while it is loaded is no part of a walk.
    """

    def __init__(self) -> None:
        self._seen: set[CodeType] = set()
        self._threads: set[int] = set()
        self._loading: Counter[int] = Counter()  # bodies of modules and classes that each thread is in
        self._inside = f"{SOURCE}{os.sep}"
        self._on = False

    def __enter__(self) -> None:
        self._on = True
        sys.setprofile(self.see)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self._on = False

    def see(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if not self._on or event not in ("call", "return") or not code.co_filename.startswith(self._inside):
            return
        thread = threading.get_ident()
        if not code.co_flags & inspect.CO_OPTIMIZED:  # the body of a module or a class
            self._loading[thread] += 1 if event == "call" else -1
        elif event == "call" and not self._loading[thread]:
            self._threads.add(thread)
            self._seen.add(code)

    def sum_up(self) -> dict[str, Any]:
        """A comprehension is a part of the function around it; ``frames`` counts it by itself, as Python 3.11 does."""
        frames = {(Path(code.co_filename).relative_to(SOURCE).as_posix(), code.co_qualname) for code in self._seen}
        functions = {(file, name) for file, name in frames if not name.endswith(("comp>", "genexpr>"))}
        return {
            "files": len({file for file, _ in frames}),
            "functions": len(functions),
            "frames": len(frames),
            "threads": len(self._threads),
            "functions_of": dict(sorted(Counter(file for file, _ in functions).items())),
        }


def _fit_store() -> Any:
    return tacit.fit(tacit.data.load("synthetic", users=200, items=60), model="factors")


def _open_device(folder: Path, store: Any) -> tacit.Device:
    device = tacit.Device(folder / "me.db", store, budget=tacit.Budget(epsilon=10, per="month"), scorer=store.scorer)
    device.rate({int(item): 5.0 - rank for rank, item in enumerate(store.items.ids[:4])})
    device.consent()
    return device


def _open_shop(folder: Path, store: Any) -> tacit.server.PrivateSelection:
    """It never explores: one offer in fifty would take another way."""
    listings, people = tacit.server.listings_of(store, store.items.ids[:8].tolist())
    return tacit.server.PrivateSelection(listings, folder / "shop.db", spread=people, epsilon=1, explore=0.0)


def ask(folder: Path, trace: Trace) -> None:
    with _open_device(folder, _fit_store()) as device, trace:
        device.ask(eta=0.1)


def ask_answer_pick(folder: Path, trace: Trace) -> None:
    store = _fit_store()
    server = tacit.server.MultiSelection(store)
    with _open_device(folder, store) as device, trace:
        device.pick(server.answer(device.ask(eta=0.1), k=5))


def choose(folder: Path, trace: Trace) -> None:
    store = _fit_store()
    shop = _open_shop(folder, store)
    with _open_device(folder, store) as device:
        offer = shop.offer(device.offer_request())
        with trace:
            device.choose(offer)


def offer_choose_shown_bill(folder: Path, trace: Trace) -> None:
    store = _fit_store()
    shop = _open_shop(folder, store)
    with _open_device(folder, store) as device:
        request = device.offer_request()
        with trace:
            if choice := device.choose(shop.offer(request)):
                shop.bill(device.shown(choice))


def draw_slate(folder: Path, trace: Trace) -> None:
    ratings = tacit.data.load("synthetic", users=200, items=60)
    with tacit.Curator(ratings, ledger=folder / "slates.db", budget=tacit.Budget(epsilon=2)) as curator, trace:
        curator.slate(k=10, epsilon=1, request_id="front page")


def release_model(folder: Path, trace: Trace) -> None:
    pair = tacit.data.load("synthetic", users=2_000, items=100, second_domain=True)
    budget = tacit.Budget(epsilon=2, delta=1e-6)
    with tacit.Curator(pair, ledger=folder / "two-domains.db", budget=budget) as curator, trace:
        curator.release(epsilon=2, delta=1e-6, users=2_000)


def fit_factors(_: Path, trace: Trace) -> None:
    ratings, fitting = tacit.data.load("synthetic", users=200, items=60), tacit.fit
    with trace:
        fitting(ratings, model="factors")


def post_signal(folder: Path, trace: Trace) -> None:
    """A slate and a local model come back."""
    with _open_device(folder, store := _fit_store()) as device:
        signal = tacit.messages.multi_selection.Request(device.ask(eta=0.1), 5).to_bytes()
    _post("/v1/multi-selection", signal, "application/vnd.tacit", folder, store, trace)


def post_offer_request(folder: Path, trace: Trace) -> None:
    """Candidates come back, which are in the database by then."""
    asked = json.dumps({"version": 1, "context": "", "consent": 1}).encode()
    _post("/v1/private-selection/offers", asked, "application/json", folder, _fit_store(), trace)


def _post(route: str, body: bytes, form: str, folder: Path, store: Any, trace: Trace) -> None:
    """One request to the server's application, with SQLite, and without a line in the log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would rather have another version of httpx
        from starlette.testclient import TestClient
    tacit.service.publish(folder / "models", store)
    settings = tacit.service.read_settings(home=folder, models=folder / "models", log_requests=False)
    with TestClient(tacit.service.server_app.create_app(settings)) as client:
        with trace:
            answer = client.post(route, content=body, headers={"content-type": form})
        answer.raise_for_status()


WALKS: dict[str, Callable[[Path, Trace], None]] = {
    "device.ask": ask,
    "ask, answer, pick": ask_answer_pick,
    "device.choose": choose,
    "offer, choose, shown, bill": offer_choose_shown_bill,
    "Curator.slate": draw_slate,
    "Curator.release": release_model,
    "fit(model='factors')": fit_factors,
    "POST a signal": post_signal,
    "POST a request for an offer": post_offer_request,
}


def take(name: str) -> dict[str, Any]:
    trace = Trace()
    threading.setprofile(trace.see)
    with tempfile.TemporaryDirectory() as folder:
        WALKS[name](Path(folder), trace)
    return trace.sum_up()


def take_walks() -> dict[str, dict[str, Any]]:
    """Each in a process of its own: nothing is known from an earlier one."""
    with ProcessPoolExecutor(2, get_context("spawn"), max_tasks_per_child=1) as pool:
        return dict(zip(WALKS, pool.map(take, WALKS), strict=True))


# ---- All of it


def count() -> dict[str, Any]:
    modules = read_modules()
    imports = find_imports(modules)
    lazy = {When.AT_ONCE, When.IN_A_FUNCTION}
    return {
        "rooms": measure_rooms(modules.values()),
        "single_importers": {
            name: {"room": modules[by].room, "by": by} for name, by in find_single_importers(modules, imports).items()
        },
        "classes_with_several_homes": find_shared_names(modules.values()),
        "cycles": find_cycles(imports, lazy),
        "cycles_with_tables": find_cycles(imports, lazy | {When.BY_TABLE}),
        "cycles_with_types": find_cycles(imports, lazy | {When.FOR_TYPES}),
        "walks": take_walks(),
    }


def print_report(counts: Mapping[str, Any], *, verbose: bool) -> None:
    _print_table("room", counts["rooms"])
    single = counts["single_importers"]
    rooms = Counter(importer["room"] for importer in single.values())
    of_package = sum(name.startswith(f"{importer['by']}.") for name, importer in single.items())
    print(
        f"\n{len(single)} modules have one importer, of their own room; {of_package} of them only their package's __init__"
    )
    print("  " + ", ".join(f"{room} {number}" for room, number in sorted(rooms.items())))
    _print_list(f"{name} < {importer['by']}" for name, importer in single.items() if verbose)
    several = counts["classes_with_several_homes"]
    print(f"\n{len(several)} names of public classes have more than one home")
    _print_list(f"{name}: {', '.join(homes)}" for name, homes in several.items())
    plain, tables, types = (counts[key] for key in ("cycles", "cycles_with_tables", "cycles_with_types"))
    print(f"\n{len(plain)} cycles of imports, at once or in functions")
    _print_list(f"{len(cycle)}: {', '.join(cycle)}" for cycle in plain)
    for more, counted in ((tables, "what packages load on demand is"), (types, "imports under TYPE_CHECKING are")):
        print(f"{len(more)} cycles, that is {len(more) - len(plain)} more, if {counted} counted too; new or larger:")
        _print_list(f"{len(cycle)}: {', '.join(cycle)}" for cycle in more if cycle not in plain)
    print("\nFiles and functions that a call walks through; among frames each comprehension counts by itself")
    _print_table("walk", counts["walks"])


def _print_list(lines: Iterable[str]) -> None:
    for line in lines:
        print("  " + line.replace("tacit.", ""))


def _print_table(head: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """The first column to the left, numbers to the right."""
    columns = [name for name, value in next(iter(rows.values())).items() if isinstance(value, int | float)]
    cells = [[head, *columns], *([name, *(f"{row[column]:,}" for column in columns)] for name, row in rows.items())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        numbers = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print(first.ljust(widths[0]), *numbers, sep="  ")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the same numbers there, too")
    parser.add_argument("--verbose", action="store_true", help="list the modules that have one importer")
    options = parser.parse_args()
    counts = count()
    print_report(counts, verbose=options.verbose)
    if options.json:
        options.json.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
