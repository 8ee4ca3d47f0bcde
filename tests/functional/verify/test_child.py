"""What runs in the child processes, called directly: looking at results, and varying inputs."""

import warnings
from collections import namedtuple
from dataclasses import dataclass

import pytest

torch = pytest.importorskip("torch")

from opsieve.verify.child.describe import describe  # noqa: E402 (needs torch)
from opsieve.verify.child.variants import variants  # noqa: E402

pytestmark = pytest.mark.torch
Pair = namedtuple("Pair", ["first", "second"])


@dataclass
class Output:
    logits: torch.Tensor
    loss: float


def described(value):
    return list(describe(value))


def test_structures_are_walked_with_the_place_of_each_value():
    value = {"a": [torch.ones(2), 3], "b": Pair("x", None), "c": Output(torch.zeros(1), 0.5)}
    places = {at: form for at, form, _ in described(value)}
    assert places["['a'][0]"] == "float32 (2,) strides (1,)"
    assert places["['a'][1]"] == "int 3"
    assert places["['b']"] == "Pair of 2"
    assert places["['b'][1]"] == "NoneType None"
    assert places["['c'].logits"].startswith("float32 (1,)")
    assert places["['c'].loss"] == "float 0.5"


def test_a_cycle_free_foreign_object_is_named_and_not_entered():
    assert described(torch.device("cpu"))[0][1] == "object of torch.device"


TENSORS = {
    "scalar": lambda: torch.tensor(1.5),
    "empty": lambda: torch.zeros(0, 3),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "strided": lambda: torch.arange(12.0)[::2],
    "expanded": lambda: torch.arange(3.0).expand(4, 3),
    "channels_last": lambda: torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "bfloat16": lambda: torch.arange(3.0).bfloat16(),
    "bool": lambda: torch.tensor([True, False]),
    "conjugate": lambda: torch.tensor([1 + 2j]).conj(),
    "quantized": lambda: torch.quantize_per_tensor(torch.arange(4.0), 0.5, 1, torch.quint8),
    "per channel": lambda: torch.quantize_per_channel(
        torch.ones(2, 2), torch.tensor([0.5, 0.25]), torch.tensor([0, 1]), 0, torch.qint8
    ),
    "coo": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "csc": lambda: torch.eye(3).to_sparse_csc(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2, 2), torch.ones(3, 2)], layout=torch.jagged),
    "mkldnn": lambda: torch.randn(2, 2, generator=torch.Generator().manual_seed(0)).to_mkldnn(),
    "with gradient": lambda: torch.ones(2, requires_grad=True) * 2,
}


@pytest.mark.parametrize("name", TENSORS)
def test_every_kind_of_tensor_is_described_the_same_twice_and_with_content(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        first = described(TENSORS[name]())
        torch.manual_seed(0)
        assert described(TENSORS[name]()) == first
    assert any(len(digest) == 64 for _, _, digest in first)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0])),
        (torch.arange(12.0)[::2], torch.arange(1.0, 13.0)[::2]),
        (torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(3, 2).T.contiguous()),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 2j]).conj()),
        (torch.zeros(2), torch.zeros(2, dtype=torch.int32)),
        (torch.zeros(2, 3), torch.zeros(3, 2).T),
        (torch.ones(2), torch.ones(2, requires_grad=True)),
        (torch.eye(3).to_sparse(), (2 * torch.eye(3)).to_sparse()),
    ],
)
def test_what_differs_is_described_differently(one, other):
    assert described(one) != described(other)


def test_memory_between_the_elements_does_not_count():
    one, other = torch.zeros(6), torch.zeros(6)
    other[1::2] = 7
    assert described(one[::2]) == described(other[::2])


def named_variants(*arguments, **named):
    return dict(variants((arguments, named)))


def test_images_vary_in_batch_size_layout_values_and_what_must_be_refused():
    image = torch.randn(1, 3, 8, 8)
    found = named_variants(image)
    assert found["batch 3"][0][0].shape == (3, 3, 8, 8)
    assert found["batch 0"][0][0].shape == (0, 3, 8, 8)
    assert found["shape 1×3×6×6"][0][0].shape == (1, 3, 6, 6)
    assert found["channels_last"][0][0].is_contiguous(memory_format=torch.channels_last)
    gaps = found["not contiguous"][0][0]
    assert torch.equal(gaps, image)
    assert not gaps.is_contiguous()
    assert torch.equal(found["transposed in memory"][0][0], image)
    assert not found["transposed in memory"][0][0].is_contiguous()
    assert found["4 channels"][0][0].shape == (1, 4, 8, 8)
    assert found["dtype float64"][0][0].dtype == torch.float64
    assert found["one dimension more"][0][0].ndim == 5
    assert found["one dimension less"][0][0].ndim == 3
    assert found["not a number"][0][0].isnan().all()
    assert found["no input at all"] == ((), {})
    assert "batch 1" not in found, "that is what was given"


def test_tensors_of_one_batch_and_length_change_together_and_others_stay():
    tokens, mask, lengths, table = torch.ones(2, 7).long(), torch.ones(2, 7), torch.tensor([7, 7]), torch.ones(5, 4)
    found = named_variants(tokens, {"mask": [mask]}, lengths=lengths, table=table)
    (tokens3, nested), named = found["batch 3"]
    assert tokens3.shape == nested["mask"][0].shape == (3, 7)
    assert named["lengths"].shape == (3,)
    assert named["table"] is table
    (longer, nested), named = found["shape 2×8"]
    assert longer.shape == nested["mask"][0].shape == (2, 8)
    assert named["table"].shape == (5, 4)
    assert found["dtype int32"][0][0].dtype == torch.int32
    assert found["dtype int32"][0][1]["mask"][0].dtype == torch.float32


@pytest.mark.parametrize("argument", [torch.tensor(1.0), torch.zeros(0), torch.ones(3), 5, None, "text"])
def test_odd_arguments_have_variants_too(argument):
    found = named_variants(argument)
    assert "no input at all" in found
    assert all(isinstance(call, tuple) for call in found.values())
