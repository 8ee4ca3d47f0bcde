import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidFile
from opsieve.verify.inputs import PlainValue, RandomTensor, parse_argument


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,3,224,224", RandomTensor((1, 3, 224, 224), "float64")),
        ("1, 512 :int64:0..100", RandomTensor((1, 512), "int64", 0, 100)),
        ("7:int8:-5..5", RandomTensor((7,), "int8", -5, 5)),
        ("scalar:bool", RandomTensor((), "bool")),
        ("0,4", RandomTensor((0, 4), "float64")),
        ("=16000", PlainValue(16000)),
        ("=-0.5", PlainValue(-0.5)),
        ("=True", PlainValue(True)),
        ("=None", PlainValue(None)),
        ("='16000'", PlainValue("16000")),
        ("=mean", PlainValue("mean")),
    ],
)
def test_arguments(text, expected):
    assert parse_argument(text, "float64") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "1,,2",
        "-1,2",
        "1,2:float31",
        "1,2:int64:5",
        "1:int64:5..5",
        "1:int64:9..1",
        "999999,999999",
        "1" * 5000,
        "=[1]",
        "=" + "(" * 100 + "1" + ",)" * 100,
    ],
)
def test_what_is_no_argument_is_refused(text):
    with pytest.raises(InvalidFile) as caught:
        parse_argument(text)
    assert caught.value.expected


@given(st.text(max_size=60))
def test_any_text_is_an_argument_or_refused(text):
    try:
        argument = parse_argument(text)
    except InvalidFile:
        return
    assert isinstance(argument, RandomTensor | PlainValue)
