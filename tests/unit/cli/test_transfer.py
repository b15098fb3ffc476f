"""tacit transfer as a curator, and as a reader, types it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tacit.data
from tacit.cli import main
from tacit.cli.transfer import read_lists
from tacit.data import TwoDomains, write
from tacit.ledger import PrivacyLedger
from tacit.messages.cross_domain import Replacements, TransferModel
from tests.unit.unsynced import unsynced

__all__ = ["unsynced"]

ITEMS = 14


class Done(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def tacit_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The entry point of the command, in this process, in a folder with two files of ratings and lists of their items."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["tacit", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(int(ended.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture(scope="module")
def domains() -> TwoDomains:
    return tacit.data.synthetic(
        users=80, items=ITEMS, ratings_per_user=9.0, second_domain=True, rng=np.random.default_rng(1)
    )


def nobody_is_in_the_ledger() -> bool:
    with PrivacyLedger.open("curator.db") as ledger:
        return not list(ledger.subjects())


@pytest.fixture
def files(tmp_path: Path, domains: TwoDomains) -> Path:
    """Ratings of two domains, lists of their items, and a ledger as `tacit ledger init` makes it."""
    PrivacyLedger.create(tmp_path / "curator.db").close()
    for name, part in (("films", domains.source), ("books", domains.target)):
        rows = zip(part.users.tolist(), part.items.tolist(), part.values.tolist(), strict=True)
        lines = [f"p{user},{name}-{item},{value}" for user, item, value in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["user_id,item_id,rating", *lines]) + "\n")
        (tmp_path / f"{name}.txt").write_text("\n".join([f"{name}-{item}" for item in range(ITEMS)]) + "\n\n")
        write(part, tmp_path / f"{name}.parquet")
    return tmp_path


CSV = (
    "transfer",
    "release",
    "films.csv",
    "books.csv",
    "--scale",
    0.5,
    5,
    "--ledger",
    "curator.db",
    "--out",
    "model.json",
)
LISTS = ("--source-items", "films.txt", "--target-items", "books.txt")


def one_line(done: Done, status: int) -> str:
    """The error, which is one line."""
    assert (done.status, done.out) == (status, "")
    assert done.err.startswith("tacit: ")
    assert done.err.count("\n") == 1
    return done.err


@pytest.mark.usefixtures("files")
def test_release_show_predict(tacit_command: Run) -> None:
    done = tacit_command(*CSV, *LISTS)
    assert (done.status, done.err) == (0, "")
    model = TransferModel.load("model.json")
    assert (len(model.source), len(model.target), model.scale) == (ITEMS, ITEMS, (0.5, 5.0))
    assert model.guarantee.epsilon == pytest.approx(2.0)
    for line in ("guarantee: epsilon = 2, delta = 1e-06", "written to model.json", "1 charged", model.remark):
        assert line in done.out

    shown = tacit_command("transfer", "show", "model.json")
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith(
        f"{model.kind}: 14 source items, 14 target items, rated from 0.5 to 5\nguarantee: epsilon = 2"
    )

    Path("mine.csv").write_text("item,rating\nfilms-1,5\nfilms-2,0.5\nbooks-3,4\nelsewhere,2\n")
    done = tacit_command("transfer", "predict", "model.json", "mine.csv", "--k", 3)
    assert (done.status, done.err) == (0, "tacit: ignored 1 rating of items that the model does not know.\n")
    mine = {"films-1": 5.0, "films-2": 0.5, "books-3": 4.0}
    expected = model.predict(mine, model.recommend(mine, 3))
    assert done.out.splitlines()[:-1] == [f"{rating:6.3f}  {item}" for item, rating in expected.items()]
    assert done.out.splitlines()[-1] == model.remark


@pytest.mark.usefixtures("files")
def test_the_same_call_again_writes_the_same_bytes_and_costs_nothing(tacit_command: Run) -> None:
    assert "sent again" not in tacit_command(*CSV, *LISTS).out
    first = Path("model.json").read_bytes()
    Path("model.json").unlink()
    Path("films.csv").write_text(
        Path("films.csv").read_text().replace(",5.0", ",1.0")
    )  # other ratings, the same release
    again = tacit_command(*CSV, *LISTS)
    assert again.status == 0
    assert "the same release as before" in again.out
    assert "--request-id" in again.out
    assert Path("model.json").read_bytes() == first
    assert json.loads(tacit_command(*CSV, *LISTS, "--json", "-").out)["sent again"] is True
    refused = one_line(tacit_command(*CSV, *LISTS, "--request-id", "again"), 1)
    assert "budget-exhausted" in refused
    with PrivacyLedger.open("curator.db") as ledger:
        assert [ledger.statement(subject).charges for subject in ledger.subjects()] == [1]


@pytest.mark.parametrize(
    ("lists", "more", "expected"),
    [
        (("1\n2\n10\n", "101\n-5\n"), ("", ""), ((1, 2, 10), (-5, 101))),
        (("1\n2\n10\n", "101\n-5\n"), ("p9,abc,5\n", "p9,1,5\n"), ((1, 2, 10), (-5, 101))),
        (("1\n2\n10\n", "101\n05\n"), ("", ""), (("1", "10", "2"), ("05", "101"))),
        (("1\n--2\n", f"101\n{'9' * 30}\n"), ("", ""), (("--2", "1"), ("101", "9" * 30))),
    ],
    ids=["numbers", "numbers, and what somebody else rated", "a text in one", "what only looks like a number"],
)
def test_lists_say_how_items_are_named_whatever_was_rated(
    tmp_path: Path, tacit_command: Run, lists: tuple[str, str], more: tuple[str, str], expected: Any
) -> None:
    for name, first, items, odd in zip(("films", "books"), (1, 101), lists, more, strict=True):
        rows = "".join(f"p{user},{first + item},{1 + (user + item) % 5}\n" for user in range(9) for item in range(9))
        (tmp_path / f"{name}.csv").write_text(f"user_id,item_id,rating\n{rows}{odd}")
        (tmp_path / f"{name}.txt").write_text(items)
    assert tacit_command(*CSV, *LISTS, "--budget", 2).status == 0
    model = TransferModel.load("model.json")
    assert (model.source, model.target) == expected


@pytest.mark.usefixtures("files")
def test_json_holds_what_is_public_and_nothing_else(tacit_command: Run) -> None:
    done = tacit_command(*CSV, *LISTS, "--json", "-", "--subject", "readers")
    found = json.loads(done.out)
    model = TransferModel.load("model.json")
    assert found["guarantee"] == model.guarantee.to_json()
    assert (found["kind"], found["directions"], found["remark"]) == (model.kind, model.directions, model.remark)
    assert (found["source items"], found["target items"], found["scale"]) == (ITEMS, ITEMS, [0.5, 5.0])
    assert (found["written"], found["budget"]["subject"], found["budget"]["charges"]) == ("model.json", "readers", 1)
    assert found["sent again"] is False
    shown = json.loads(tacit_command("transfer", "show", "model.json", "--json", "-").out)
    assert shown == {name: value for name, value in found.items() if name not in ("written", "sent again", "budget")}
    Path("mine.json").write_text(json.dumps({"films-1": 5, "elsewhere": 1}))
    told = json.loads(tacit_command("transfer", "predict", "model.json", "mine.json", "--k", 2, "--json", "-").out)
    expected = model.predict({"films-1": 5.0}, model.recommend({"films-1": 5.0}, 2))
    assert told["items"] == [{"item": item, "rating": rating} for item, rating in expected.items()]
    assert told["passed over"] == 1
    assert told["guarantee"] == found["guarantee"]


@pytest.mark.usefixtures("files")
def test_replacements_give_alter_egos(tacit_command: Run) -> None:
    done = tacit_command(*CSV, *LISTS, "--mode", "prs_valid")
    assert (done.status, done.err) == (0, "")
    table = Replacements.load("model.json")
    assert done.out.startswith("replacements: 14 source items, 14 target items")
    Path("mine.csv").write_text("item,rating\nfilms-1,5\nfilms-2,1\n")
    told = tacit_command("transfer", "predict", "model.json", "mine.csv")
    ego = table.alter_ego({"films-1": 5.0, "films-2": 1.0})
    assert sorted(told.out.splitlines()[:-1]) == sorted(f"{rating:6.3f}  {item}" for item, rating in ego.items())
    assert (
        json.loads(tacit_command("transfer", "show", "model.json", "--json", "-").out)["format"]
        == "tacit replacements/1"
    )


@pytest.mark.usefixtures("files")
def test_stored_ratings_bring_their_lists_and_ids_that_are_numbers(tacit_command: Run, domains: TwoDomains) -> None:
    words = ("transfer", "release", "films.parquet", "books.parquet", "--ledger", "curator.db", "--out", "model.json")
    done = tacit_command(*words, "--post", "bridge", "--users", 100, "--epsilon", 1, "--budget", 3)
    assert (done.status, done.err) == (0, "")
    model = TransferModel.load("model.json")
    assert (model.kind, model.source) == ("bridge", tuple(domains.source.catalogue.ids.tolist()))
    assert "epsilon 3, delta 1e-06 in all: 1 epsilon spent, 2 left" in done.out
    Path("mine.csv").write_text("item,rating\n1,5\n")
    assert tacit_command("transfer", "predict", "model.json", "mine.csv").err == ""


def test_a_data_set_of_two_domains_is_named_alone(tacit_command: Run, tmp_path: Path) -> None:
    words = ("--ledger", "curator.db", "--budget", "2", "--out", "model.json")
    assert tacit_command("transfer", "release", "synthetic", *words).status == 0
    assert len(TransferModel.load("model.json").target) == 600
    refused = one_line(tacit_command("transfer", "release", "movielens-small", *words), 2)
    assert "has one domain" in refused


@pytest.mark.usefixtures("files")
def test_rated_items_are_public_only_if_that_is_said(tacit_command: Run) -> None:
    refused = one_line(tacit_command(*CSV), 2)
    for words in ("came without a list of items", "--source-items", "--target-items", "--public-catalogue"):
        assert words in refused
    assert nobody_is_in_the_ledger()
    assert not Path("model.json").exists()
    done = tacit_command(*CSV, "--public-catalogue")
    assert done.status == 0
    assert "which items were rated at all is public" in done.out


WRONG: list[tuple[tuple[Any, ...], int, str]] = [
    (("--epsilon", 0), 2, "epsilon must"),
    (("--delta", 1), 2, "delta must"),
    (("--epsilon", 3), 1, "budget-exhausted"),
    (("--source-items", "films.txt"), 2, "public lists come in pairs"),
    (("--user", "who"), 1, "who"),
    (("--scale", 1, 4), 1, "line 2"),
    (("--scale", 5, 1), 2, "must be below its high end"),
    (("--json", "curator.db-wal"), 2, "name another file"),
    (("--out", "films.csv"), 2, "name the same file"),
    (("--out", "no/such/model.json"), 2, "folder"),
    (("--mode", "nx"), 2, "nx"),
    (("--post", "magic"), 2, "magic"),
    (("--least", 0), 2, "least"),
    (("--mode", "prs_valid", "--post", "factors"), 2, "--post and --users belong to --mode moments"),
    (("--mode", "prs_valid", "--users", 9), 2, "--post and --users belong to --mode moments"),
]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("words", "status", "match"), WRONG, ids=lambda one: str(one))
def test_what_is_wrong_is_one_line(tacit_command: Run, words: tuple[Any, ...], status: int, match: str) -> None:
    if words[0] == "--scale" and words[2] == 4:
        Path("films.csv").write_text("user_id,item_id,rating\np1,films-1,5\n")
    given = [*CSV, *(() if words[0] == "--source-items" else LISTS), *words]
    assert match in one_line(tacit_command(*given), status)
    assert not Path("model.json").exists()


@pytest.mark.usefixtures("files")
def test_what_lies_outside_of_the_scale_is_clipped_if_that_is_asked_for(tacit_command: Run) -> None:
    rows = Path("films.csv").read_text().splitlines()
    Path("films.csv").write_text("\n".join([*rows[:3], rows[1].rsplit(",", 1)[0] + "x,9"]) + "\n")
    assert "rating-outside-scale" in one_line(tacit_command(*CSV, *LISTS), 1)
    assert tacit_command(*CSV, *LISTS, "--outside", "clip").status == 0


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("name", "content", "status", "match"),
    [
        ("mine.csv", "film,stars\na,5\n", 1, "columns item_id and rating"),
        ("mine.csv", "item,rating,rating\nfilms-1,5,5\n", 1, "each once"),
        ("mine.csv", "item,rating\nfilms-1,5\nfilms-2,4,3\n", 1, "line 3: more cells"),
        ("mine.csv", "item,rating\nfilms-1,5\n films-1,4\n", 1, "line 3: this item was rated before"),
        ("mine.csv", "item,rating\nfilms-1,many\n", 1, "line 2"),
        ("mine.csv", "item,rating\nfilms-1\n", 1, "line 2"),
        ("mine.csv", "item,rating\nfilms-1,9\n", 1, "on the scale"),
        ("mine.json", "[1]", 1, "an object"),
        ("mine.json", '{"films-1": "five"}', 1, "an object"),
        ("mine.json", "{", 1, "mine.json: expected an object"),
        ("mine.json", '{"films-1": 5, "films-1": 4}', 1, "rated twice"),
        ("mine.json", '{"films-1": 1' + "0" * 400 + "}", 1, "mine.json: a rating is too large"),
        ("mine.csv", "item,rating\nfilms-1,5\n".encode("utf-16"), 1, "mine.csv is not UTF-8 text"),
        ("mine.csv", b"item,rating\nfilms-1,5\nmany\xff,5\n", 1, "mine.csv is not UTF-8 text"),
        ("mine.csv", "item,rating\n" + "five" * 40_000 + ",5\n", 1, "mine.csv: a cell is longer than 131,072"),
    ],
    ids=[
        "columns",
        "a column twice",
        "too many cells",
        "an item twice",
        "no number",
        "no rating",
        "off the scale",
        "a list",
        "text",
        "cut off",
        "twice in JSON",
        "too large",
        "UTF-16",
        "bytes that are no text",
        "a cell without an end",
    ],
)
def test_a_profile_that_cannot_be_read_is_one_line_without_its_values(
    tacit_command: Run, name: str, content: str | bytes, status: int, match: str
) -> None:
    tacit_command(*CSV, *LISTS)
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    told = one_line(tacit_command("transfer", "predict", "model.json", name), status)
    assert match in told
    assert "many" not in told
    assert "five" not in told


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("item_id,rating\nfilms-1,5\n", ()),
        ("item,rating\nfilms-1,5\n", ()),
        ("\ufeffitem_id,rating\nfilms-1,5\n", ()),
        ("user_id,film,stars,item\np1,films-1,5,films-2\n", ("--item", "film", "--rating", "stars")),
        ('item_id,rating,note\nfilms-1,5,"of two\nlines"\n', ()),
    ],
    ids=["as ratings", "item", "with a byte order mark", "named", "further columns"],
)
def test_a_profile_is_read_as_ratings_are(tacit_command: Run, content: str, words: tuple[str, ...]) -> None:
    tacit_command(*CSV, *LISTS)
    Path("mine.csv").write_text(content, encoding="utf-8")
    done = tacit_command("transfer", "predict", "model.json", "mine.csv", "--k", 2, "--json", "-", *words)
    model = TransferModel.load("model.json")
    expected = model.predict({"films-1": 5.0}, model.recommend({"films-1": 5.0}, 2))
    assert json.loads(done.out)["items"] == [{"item": item, "rating": rating} for item, rating in expected.items()]
    assert json.loads(done.out)["passed over"] == 0


@pytest.mark.usefixtures("files")
def test_a_list_of_which_nothing_was_rated_costs_nothing_unless_that_is_meant(tacit_command: Run) -> None:
    swapped = ("--source-items", "books.txt", "--target-items", "films.txt")
    assert "no item of books.txt was rated in films.csv" in one_line(tacit_command(*CSV, *swapped), 2)
    Path("other.txt").write_text("songs-1\n")
    half = ("--source-items", "films.txt", "--target-items", "other.txt")
    refused = tacit_command(*CSV, *half)
    assert refused.status == 2
    assert "no item of other.txt was rated in books.csv" in refused.err.splitlines()[-1]
    same = ("--source-items", "films.txt", "--target-items", "films.txt")
    assert "films.txt and films.txt both name an item" in one_line(tacit_command(*CSV, *same), 2)
    assert nobody_is_in_the_ledger()
    done = tacit_command(*CSV, *swapped, "--yes")
    assert (done.status, done.err) == (0, "")


@pytest.mark.usefixtures("files")
def test_how_many_items_were_rated_is_not_told(tacit_command: Run) -> None:
    """With one user's rating more or less all that is printed is the same, but for what was drawn and named."""
    printed = []
    with_one = Path("films.csv").read_text()
    assert with_one.count("films-1,") + with_one.count("films-1\t") > 1
    lines = with_one.splitlines(keepends=True)
    header, item = lines[0], lines[1].split(",")[1]
    for text in (with_one, header + "".join(line for line in lines[1:] if line.split(",")[1] != item)):
        Path("films.csv").write_text(text)
        done = tacit_command(*CSV, *LISTS, "--subject", f"after {len(printed)}", "--json", "-")
        told = json.loads(done.out)
        printed.append((done.status, done.err, sorted(told), told["source items"], told["guarantee"]))
    assert printed[0] == printed[1]
    assert printed[0][:2] == (0, "")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("wrong", [("--epsilon", 0), ("--delta", 1), ("--delta", 0)])
def test_parameters_are_refused_before_files_are_read(tacit_command: Run, wrong: tuple[str, float]) -> None:
    Path("films.csv").write_text("this is no table")
    told = one_line(tacit_command(*CSV, *LISTS, *wrong), 2)
    assert wrong[0].removeprefix("--") in told
    assert "films.csv" not in told


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("first", ["item_id", "Item", "\ufeffid", "item_id,title", '"item_id"\ttitle', "FILM"])
def test_a_list_has_no_header(tacit_command: Run, first: str) -> None:
    Path("films.csv").write_text(Path("films.csv").read_text().replace("item_id", "film", 1))
    Path("books.csv").write_text(Path("books.csv").read_text().replace("item_id", "film", 1))
    items = Path("films.txt").read_text()
    Path("films.txt").write_text(f"{first}\n{items}", encoding="utf-8")
    assert "no header" in one_line(tacit_command(*CSV, *LISTS, "--item", "film"), 1)
    assert nobody_is_in_the_ledger()
    Path("films.txt").write_text(f"{items}\nitem\n", encoding="utf-8-sig")
    assert tacit_command(*CSV, *LISTS, "--item", "film").status == 0
    assert "item" in TransferModel.load("model.json").source


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("films-1\nfilms-2\n".encode("utf-16"), "films.txt is not UTF-8 text"),
        ("films-1\nfilms-2\n".encode("utf-16-le"), "films.txt is not UTF-8 text"),
        (bytes(range(256)), "films.txt is not UTF-8 text"),
        (b"", "films.txt holds no ids"),
        (b"\xef\xbb\xbf \r\n\n", "films.txt holds no ids"),
    ],
    ids=["UTF-16", "UTF-16 without a mark", "binary", "empty", "blank lines"],
)
def test_a_list_that_cannot_be_read_is_one_line(tacit_command: Run, content: bytes, match: str) -> None:
    Path("films.txt").write_bytes(content)
    assert match in one_line(tacit_command(*CSV, *LISTS), 1)
    assert nobody_is_in_the_ledger()


def test_ids_of_a_list_end_with_their_line_and_are_numbers_only_if_a_release_carries_them(tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_bytes("a\u2028b\r\n c\x0b\x85 \n\nd\u00a0".encode())
    second.write_text("1\n")
    assert read_lists(first, second, "item") == (["a\u2028b", "c\x0b\x85", "d\u00a0"], ["1"])
    for number, kept in (
        (2**53, 2**53),
        (-(2**53), -(2**53)),
        (2**53 + 1, str(2**53 + 1)),
        (-(10**17), str(-(10**17))),
    ):
        first.write_text(f"{number}\n7\n")
        assert read_lists(first, second, "item") == (
            ([kept, 7], [1]) if isinstance(kept, int) else ([kept, "7"], ["1"])
        )


@pytest.mark.usefixtures("files")
def test_a_second_file_that_is_missing_is_said_to_be(tacit_command: Run) -> None:
    words = ("--ledger", "curator.db", "--out", "model.json")
    for file in ("films.csv", "films.parquet"):
        assert f"{file} is one file: name the ratings of the target" in one_line(
            tacit_command("transfer", "release", file, *words), 2
        )


@pytest.mark.usefixtures("files")
def test_files_that_were_renamed_are_the_same_people_until_somebody_says_otherwise(tacit_command: Run) -> None:
    tacit_command(*CSV, *LISTS)
    Path("films-november.csv").write_bytes(Path("films.csv").read_bytes())
    words = ["films-november.csv" if word == "films.csv" else word for word in CSV]
    refused = tacit_command(*words, *LISTS)
    assert (refused.status, refused.out) == (2, "")
    assert "It knows 'users of books and films'." in refused.err
    assert "--subject NAME" in refused.err
    refused = tacit_command(*words, *LISTS, "--subject", "users of books and films", "--request-id", "november")
    assert "budget-exhausted" in refused.err
    assert tacit_command(*words, *LISTS, "--subject", "somebody else").status == 0


@pytest.mark.usefixtures("files")
def test_a_ledger_that_is_missing_is_begun_by_a_budget_and_not_by_the_way(tacit_command: Run) -> None:
    Path("curator.db").unlink()
    told = one_line(tacit_command(*CSV, *LISTS), 1)
    assert "ledger-missing" in told
    assert "tacit ledger init" in told
    assert "--budget" in told
    assert not Path("curator.db").exists()
    assert tacit_command(*CSV, *LISTS, "--budget", 2).status == 0
    assert tacit_command(*CSV, *LISTS).status == 0  # the same again, under what was agreed


@pytest.mark.usefixtures("files")
def test_a_first_call_that_is_refused_settles_nothing(tacit_command: Run) -> None:
    for words, more in (
        (("--epsilon", 3), "Budget(3, 1e-06)"),
        (("--delta", 1e-5), "Budget(2, 1e-05)"),
    ):
        told = one_line(tacit_command(*CSV, *LISTS, *words), 1)
        assert more in told
        assert "--budget" in told
    done = tacit_command(*CSV, *LISTS, "--delta", 1e-5, "--budget", 3)
    assert done.status == 0
    assert done.out.endswith("\n  of delta 1e-05: 1e-05 spent, 0 left\n")


def test_a_file_that_is_no_release_is_one_line(tacit_command: Run) -> None:
    Path("model.json").write_text('{"format": "something else"}')
    Path("mine.csv").write_text("item,rating\n")
    for words in (("show", "model.json"), ("predict", "model.json", "mine.csv")):
        assert "invalid-message" in one_line(tacit_command("transfer", *words), 1)
    assert "does not exist" in one_line(tacit_command("transfer", "show", "nothing.json"), 2)
