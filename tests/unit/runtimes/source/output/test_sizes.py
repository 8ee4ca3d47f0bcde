import json

from opsieve.runtimes.source.output.sizes import SizeRow, SizeTables, sizes_json, sizes_text

ACCOUNT = SizeTables(
    12345,
    (SizeRow("aten::add.Tensor", 10), SizeRow("aten::mul.Tensor", 2000), SizeRow("aten::abs", 10)),
    (SizeRow("aten/src/" + "x" * 100 + "/End.cpp", 7),),
)


def test_the_largest_comes_first_and_equal_ones_by_name() -> None:
    lines = sizes_text(ACCOUNT).splitlines()
    assert lines[:6] == [
        "      12,345  bytes in all",
        "",
        "       2,020  by operator, 3 of them",
        "       2,000  aten::mul.Tensor",
        "          10  aten::abs",
        "          10  aten::add.Tensor",
    ]


def test_long_names_keep_their_end_and_lines_fit() -> None:
    lines = sizes_text(ACCOUNT).splitlines()
    assert lines[-1].endswith("/End.cpp")
    assert max(map(len, lines)) <= 80


def test_json_holds_the_whole_names() -> None:
    document = json.loads(sizes_json(ACCOUNT))
    assert document["total"] == 12345
    assert [row["name"] for row in document["by_operator"]] == ["aten::mul.Tensor", "aten::abs", "aten::add.Tensor"]
    assert document["by_file"] == [{"name": ACCOUNT.by_file[0].name, "bytes": 7}]
