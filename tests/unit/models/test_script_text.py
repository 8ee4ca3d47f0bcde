from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidModel
from opsieve.models import script_text
from opsieve.models.needs import Use
from opsieve.models.script_text import ScriptText, scan

BODY = "class Net(Module):\n  def forward(self: __torch__.Net,\n    x: Tensor) -> Tensor:\n"


def scanned(text: str) -> ScriptText:
    result = ScriptText()
    scan(text, "__torch__", "code/__torch__.py", "model.pt: code/__torch__.py", result)
    return result


def called(statement: str) -> list[str]:
    """The operators of one statement in the body of a method."""
    return [base for base, _ in scanned(f"{BODY}    {statement}\n").calls]


@pytest.mark.parametrize(
    ("statement", "operators"),
    [
        ("return torch.relu(x)", ["aten::relu"]),
        ("_0 = torch.add(torch.mul(x, y), 1, alpha=2)", ["aten::add", "aten::mul"]),
        ("_0 = ops.quantized.linear_dynamic(x, p, False)", ["quantized::linear_dynamic"]),
        ('ops.prim.RaiseException("a torch.relu(x) is text", "builtins.ValueError")', ["prim::RaiseException"]),
        ("_0 = torch.autograd.grad([y], [x])", ["aten::grad"]),
        ("y = int(x)", ["aten::Int"]),
        ("y = float(x)", ["aten::Float"]),
        ("y = bool(x)", ["aten::Bool"]),
        ("y = str(x)", ["aten::str"]),
        ("print(x)", ["prim::Print"]),
        ("y = sorted(x)", ["aten::sorted"]),
        ("y = uninitialized(Tensor)", ["prim::Uninitialized"]),
        ("y = unchecked_cast(Tuple[Tensor, Tensor], x)", ["prim::unchecked_cast"]),
        ("y = annotate(int, x)", ["aten::IntImplicit"]),
        ("y = annotate(float, x)", ["aten::FloatImplicit"]),
        ("y = annotate(number, x)", ["aten::ScalarImplicit"]),
        ("y = annotate(List[int], [])", []),
        ("y = annotate(Dict[str, List[Tensor]], {})", []),
        ("y : Optional[Tuple[Tensor, Tensor]] = z", []),
        ("y = isinstance(x, Tensor)", []),
        ("y = x[i]", ["aten::__getitem__"]),
        ("y = x[-1]", ["aten::__getitem__"]),
        ("y = (z)[0]", ["aten::__getitem__", "prim::TupleIndex"]),
        ("y = (torch.size(x))[-1]", ["aten::size", "aten::__getitem__", "prim::TupleIndex"]),
        ("x[0] = y", ["aten::_set_item"]),
        ("if x[0] == y:", ["aten::__getitem__", "aten::eq"]),
        ("y = x[1:, 0]", ["aten::slice", "aten::select", "aten::unsqueeze", "aten::index", "aten::__getitem__"]),
        ('y = x["a"]', ["aten::__getitem__"]),
        ("a, b, = x", ["prim::TupleUnpack"]),
        ("a, b = torch.topk(x, 1)", ["aten::topk"]),
        ("y = [-1, -.5, -inf, -nan, 1e-05, 2.]", []),
        ("y = -x", ["aten::neg"]),
        ("y = a + b - c * d / e // f % g ** h", None),
        ("y = not x", ["aten::__not__"]),
        ("y = ~x", ["aten::bitwise_not"]),
        ("y = a in b", ["aten::__contains__"]),
        ("y = a is b", ["aten::__is__", "aten::__isnot__"]),
        ("y += 1", ["aten::add_", "aten::add"]),
        ("assert x", ["prim::RaiseException"]),
        ("for i in range(n):", []),
        ("for i in range(torch.len(a in b)):", ["aten::len", "aten::__contains__"]),
        ("while x:", []),
        ("with x as y:", []),
        ("self.from = torch.relu(self.lambda)", ["aten::relu"]),
        ("_1 = (self).forward(x, )", []),
        ("_1 = getattr(self, '0')", []),
        ("f = fork(__forked_function)", []),
        ("# torch.relu(x)", []),
        ('y = """torch.relu(x)\n  torch.exp(x)"""', []),
    ],
)
def test_what_a_statement_calls(statement: str, operators: list[str] | None) -> None:
    arithmetic = ["add", "sub", "mul", "div", "floordiv", "floor_divide", "remainder", "percentFormat", "pow"]
    expected = [f"aten::{name}" for name in arithmetic] if operators is None else operators
    assert called(statement) == expected


def test_calls_are_attributed_to_their_method_and_line() -> None:
    text = (
        "def helper(x: Tensor) -> Tensor:\n"
        "  return torch.exp(x)\n"
        "class Net(Module):\n"
        "  training : bool\n"
        "  def forward(self: __torch__.Net,\n"
        "    x: Tensor) -> Tensor:\n"
        "    def __forked_function0():\n"
        "      return torch.sin(x)\n"
        "    _0 = fork(__forked_function0)\n"
        "\n"
        "    return torch.cos(x)\n"
        "  def other(self: __torch__.Net) -> int:\n"
        "    return torch.len(self.items)\n"
        "def last(x: Tensor) -> Tensor:\n"
        "  return torch.abs(x)\n"
    )
    place = "code/__torch__.py:"
    assert scanned(text).calls == [
        ("aten::exp", Use("__torch__.helper", place + "2")),
        ("aten::sin", Use("__torch__.Net.forward", place + "8")),
        ("aten::cos", Use("__torch__.Net.forward", place + "11")),
        ("aten::len", Use("__torch__.Net.other", place + "13")),
        ("aten::abs", Use("__torch__.last", place + "15")),
    ]


def test_definitions_are_listed() -> None:
    text = (
        "class Act(ModuleInterface):\n  def forward(self, x: Tensor) -> Tensor:\n    pass\n"
        "class Kind(Enum):\n  A = 1\n"
        "class Pair(NamedTuple):\n  left : Tensor\n"
        "class Plain:\n  def m(self: __torch__.Plain) -> NoneType:\n    return None\n"
        "def f() -> int:\n  return 1\n"
    )
    result = scanned(text)
    assert result.classes == {
        "__torch__.Act": "ModuleInterface",
        "__torch__.Kind": "Enum",
        "__torch__.Pair": "NamedTuple",
        "__torch__.Plain": "",
    }
    assert result.methods == ["__torch__.Plain.m"]
    assert result.functions == ["__torch__.f"]
    assert result.declared == {"forward", "m"}


def test_custom_classes_are_found_in_types() -> None:
    text = "class N(Module):\n  p : __torch__.torch.classes.quantized.LinearPackedParamsBase\n"
    assert scanned(text).custom_classes == {"__torch__.torch.classes.quantized.LinearPackedParamsBase"}


@pytest.mark.parametrize(
    ("text", "callee"),
    [
        ("def f(x: Tensor=torch.zeros([1])) -> Tensor:\n  return x\n", "torch.zeros"),
        ("def f(x: Tensor=torch.zeros ([1])) -> Tensor:\n  return x\n", "torch.zeros"),
        ("def f(x: Tensor=torch.zeros # why\n  ([1])) -> Tensor:\n  return x\n", "torch.zeros"),
        ("def f(x: Tensor=(torch.zeros)([1])) -> Tensor:\n  return x\n", ")"),
        ("def f(x: str=(CONSTANTS.c0).join([])) -> str:\n  return x\n", ".join"),
        ("def f(x: str='a'(1)) -> str:\n  return x\n", "'a'"),
        ("def f(x: int=1.torch.save(1)) -> int:\n  return x\n", "1.torch.save"),
        ("def f(x: int=await(1)) -> int:\n  return x\n", "await"),
        ("class N(Module):\n  big : Final[Tensor] = torch.zeros([1])\n", "torch.zeros"),
        ("class N(Module):\n  def f(self, x: int=__torch__.g()) -> int:\n    return x\n", "__torch__.g"),
        ("def f() -> int:\n  def g(x: int=torch.seed()) -> int:\n    return x\n  return 1\n", "torch.seed"),
        ("@torch.save('a')\ndef f() -> int:\n  return 1\n", "torch.save"),
    ],
)
def test_code_that_compiling_would_run_is_reported(text: str, callee: str) -> None:
    [(name, place), *_] = scanned(text).computed
    assert name == callee
    assert place.startswith("code/__torch__.py:")


def test_literals_run_nothing() -> None:
    text = (
        "class N(Module):\n"
        "  kernel : Final[Tuple[int, int]] = (3, 3)\n"
        "  def f(self: __torch__.N,\n"
        "    a: Tensor=CONSTANTS.c0,\n"
        "    b: List[int]=annotate(List[int], []),\n"
        "    d: Tuple[int, int]=(1, (2)),\n"
        "    e: bool=not (True) and (False),\n"
        "    c: int=-1) -> int:\n"
        "    return torch.len(b)\n"
    )
    assert scanned(text).computed == []


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("def f() -> int:\n  return torch.add((1, 2)\n", "'(' of line 2 is not closed", 2),
        ("def f() -> int:\n  return 1)\n", "')' closes nothing", 2),
        ("def f() -> int:\n  return [1)\n", "')' closes nothing", 2),
        ('def f() -> int:\n  return "never ends\n', "'\"' has no place", 2),
        ("def f() -> int:\n\n  return $x\n", "'$' has no place", 3),
        ("def f() -> int:\n  return " + "(" * 10_001, "brackets are open", 2),
        ("class A(Module):\n  pass\nclass A(Module):\n  pass\n", "defined twice", 3),
    ],
)
def test_text_that_is_no_torchscript_is_refused_with_its_line(text: str, reason: str, line: int) -> None:
    with pytest.raises(InvalidModel) as caught:
        scanned(text)
    assert reason in caught.value.problem
    assert caught.value.where == f"model.pt: code/__torch__.py:{line}"


@pytest.mark.parametrize(
    "nested", ["(" * 10_000 + ")" * 10_000, "-" * 300_000 + "x", "not " * 100_000 + "x", "a.b[0]()" * 50_000]
)
def test_deep_nesting_is_no_problem(nested: str) -> None:
    scanned(f"{BODY}    y = {nested}\n    return torch.relu(y)\n")


def test_code_with_too_many_calls_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_text, "MAX_FINDINGS", 100)
    for statement in ("int(x), " * 200, "(x).y, " * 200, "x.y(), " * 200):
        with pytest.raises(InvalidModel, match="more than 100 calls"):
            scanned(f"{BODY}    _0 = ({statement})\n")


FRAGMENTS = st.sampled_from(
    [
        "def ",
        "class ",
        "x",
        "torch.add(",
        "ops.a.b(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        "=",
        ",",
        "\n",
        "\n  ",
        "\n    ",
        '"',
        "'",
        "\\",
        "1e-",
        ".",
        "-",
        "not ",
        "for ",
        " in ",
        '"""',
        "#",
        "é",
        "\x00",
    ]
)


@given(st.lists(FRAGMENTS, max_size=60).map("".join))
def test_any_text_is_scanned_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidModel):
        scanned(text)
