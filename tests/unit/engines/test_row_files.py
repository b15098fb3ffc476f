"""Rows in files: one line is one record, and whatever it holds, no other line is read differently and nothing is told."""

import logging
import tracemalloc
from pathlib import Path
from typing import Any

import polars
import pytest

from tacit.engines.settings import read_rows
from tacit.entity.rows import PrivateRows
from tacit.errors import InvalidData

ITEMS = ["a", "b", "c, d", 'e"f', "None", "ä"]
HEADER = b"user,item,value"
OTHERS = [b"u%d,a,%d" % (number, number % 5 + 1) for number in range(3000)]
READ = [(f"u{number}", "a", str(number % 5 + 1)) for number in range(3000)]

ODD = [
    b'"',
    b'u,"a',
    b'u,"a,3',
    b'"u,a,3',
    b'u,a,3"',
    b'u,"a"b,3',
    b'""u"",a,3',
    b'u,a,"3',
    b"u,\x00a,\x00",
    b"\x00",
    b"\xff\xfe,a,3",
    b"u\xff,\xc3\x28,\xe2\x82",
    b"u,a\r,3",
    b'u,"a\rb",3',
    b"\ru,a",
    b"",
    b",",
    b",,,,,,,,,,",
    b"u",
    b"u,",
    b"u,a,3,4,5,6,7",
    b"u,a,nonsense",
    b"u,a,1e999",
    b"#u,a,3",
    b"'u,a,3",
    b"user,item,value",
    b"\\,a,3",
    b"u;a;3",
    b'u,"' + b"x" * 200_000 + b'",3',
    b"u," + b"x" * 200_000 + b",3",
    b"\xef\xbb\xbfu,a,3",
    b"\x1a",
]


def read(folder: Path, content: bytes) -> list[Any]:
    file = folder / "rows.csv"
    file.write_bytes(content)
    return read_rows(file, ITEMS)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("place", [0, 10, 2999, 3000])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd[:16]))
def test_an_odd_line_changes_no_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: Any, odd: bytes, place: int, end: bytes
) -> None:
    lines = [HEADER, *OTHERS[:place], odd, *OTHERS[place:]]
    with caplog.at_level(logging.DEBUG):
        found = read(tmp_path, end.join(lines) + end)
    mine = len(found) - len(READ)
    assert mine in (0, 1)
    assert found[:place] + found[place + mine :] == READ
    assert (*capfd.readouterr(), caplog.text) == ("", "", "")  # not even how many


def test_two_odd_lines_do_not_close_each_others_quotes(tmp_path: Path) -> None:
    lines = list(OTHERS)
    lines[10], lines[1500] = b'u10,"a,1', b'u1500,a",1'
    found = read(tmp_path, b"\n".join([HEADER, *lines]))
    assert [one for one in found if one[0] not in ("u10", "u1500")] == [
        one for one in READ if one[0] not in ("u10", "u1500")
    ]


def test_quotes_within_a_line_are_those_of_csv(tmp_path: Path) -> None:
    found = read(tmp_path, b'"user","item","value"\n"u1","a","3"\nu2,"c, d",4\n"u,3","e""f",5\n')
    assert found == [("u1", "a", "3"), ("u2", "c, d", "4"), ("u,3", 'e"f', "5")]


def test_short_lines_are_filled_and_long_ones_cut(tmp_path: Path) -> None:
    found = read(tmp_path, b"user,item,value\nu1,a\nu2\n,a,3\nu3,b,4,5\nu4,,1\nu5,x,1\nu6,None,1\n")
    assert found == [
        ("u1", "a", None),
        ("u2", None, None),
        ("u3", "b", "4"),
        ("u4", None, "1"),
        ("u5", None, "1"),
        ("u6", "None", "1"),
    ]


def test_odd_bytes_do_not_make_two_users_one(tmp_path: Path) -> None:
    odd = [b"\xff", b"\xfe", b"\\xff", b"\\udcff", b"\xed\xb3\xbf", b"\xef\xbf\xbd", b"b'\\xff'", b"u\xff", b"u"]
    found = read(tmp_path, b"user,item\n" + b"".join(one + b",a\n" for one in odd) + b"\xc3\xa4,\xc3\xa4\n")
    assert len({user for user, _, _ in found}) == len(odd) + 1
    assert found[2][0] == "\\xff"
    assert found[-1] == ("ä", "ä", 1.0)
    for user, _, _ in found:
        str(user).encode()  # and each can be written to a file
    rows = PrivateRows(found, ITEMS)
    assert rows.table().shape == (len(odd) + 1, len(ITEMS))
    assert len(set(rows.ids())) == len(odd) + 1


def test_a_carriage_return_makes_no_two_users_one(tmp_path: Path) -> None:
    found = read(tmp_path, b'user,item\n"a\rb",a\na b,a\na\rb,a\n"ab",a\nab,a\n"u",a\r,3\n"v",a\r\n')
    assert [user for user, _, _ in found] == ["a b", "a\rb", "ab", "ab", "v"]


@pytest.mark.parametrize("start", [b"u1,a,3,", b'"u1",a,3,'], ids=["plain", "quoted"])
def test_a_line_of_commas_is_not_split_into_all_its_fields(tmp_path: Path, start: bytes) -> None:
    long = 3_000_000
    content = HEADER + b"\n" + start + b"," * long + b"\nu2,a,4\n"
    (tmp_path / "rows.csv").write_bytes(content)
    tracemalloc.start()
    try:
        found = read_rows(tmp_path / "rows.csv", ITEMS)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found[-1] == ("u2", "a", "4")
    assert most < 7 * long  # the list of its fields alone would be 8 bytes for each


def test_a_line_with_quotes_and_many_commas_is_read_up_to_a_bound(tmp_path: Path) -> None:
    few, many = b"," * 100_000, b"," * 200_000
    found = read(tmp_path, HEADER + b'\n"u1",a,3' + few + b'\n"u2",a,3' + many + b"\nu3,a,3" + many + b"\n")
    assert [user for user, _, _ in found] == ["u1", "u3"]


@pytest.mark.parametrize(
    "content",
    [
        b"user,item,value\ru1,a,1\ru2,b,2\r",
        b"user,item,value\r\nu1,a,1\r\nu2,b,2",
        b"user,item,value\nu1,a,1\nu2,b,2\n",
        b"\xef\xbb\xbfuser,item,value\nu1,a,1\n\n\nu2,b,2\n",
        b' user , item,"value"\nu1,a,1\nu2,b,2\n',
        b"value,other,item,user\n1,x,a,u1\n2,x,b,u2\n",
    ],
)
def test_the_header_decides_the_columns_and_the_ends_of_lines(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path, content) == [("u1", "a", "1"), ("u2", "b", "2")]


def test_a_file_without_records_has_none_and_one_without_a_header_is_refused(tmp_path: Path) -> None:
    for content in (HEADER, HEADER + b"\n", HEADER + b"\r\n\r\n"):
        assert read(tmp_path, content) == []
    for content in (
        b"",
        b"\n",
        b"\x00",
        b'"',
        b"patient,drug\nsecret,a\n",
        b"user\nsecret\n",
        HEADER[:-8] + b'"\nsecret,a',
    ):
        with pytest.raises(InvalidData) as caught:
            read(tmp_path, content)
        assert "secret" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_parquet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidData):
        read_rows(tmp_path / "none.csv", ITEMS)
    (tmp_path / "rows.parquet").write_bytes(b"secret")
    with pytest.raises(InvalidData) as caught:
        read_rows(tmp_path / "rows.parquet", ITEMS)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    frame = polars.DataFrame({"user": [1, 2, None, 4], "item": ["a", None, "b", "x"], "value": [1.0, 2.0, 3.0, None]})
    frame.write_parquet(tmp_path / "rows.parquet")
    assert read_rows(tmp_path / "rows.parquet", ITEMS) == [("1", "a", 1.0), ("2", None, 2.0), ("4", None, None)]
