"""Hashes of tensors: equal for equal bits, whatever else differs."""

import pytest
import torch

from holter.watching.stats import hashing
from holter.watching.stats.hashing import BITS, hashes


def hash_of(tensor):
    (value,) = hashes([tensor]).tolist()
    return value


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.int8],
)
def test_one_changed_element_changes_the_hash(dtype):
    tensor = (torch.arange(60.0) / 7).to(dtype).reshape(3, 20)
    other = tensor.clone()
    other[1, 3] = 100
    assert hash_of(tensor) == hash_of(tensor.clone())
    assert hash_of(tensor) != hash_of(other)
    assert 0 <= hash_of(tensor) < 1 << BITS
    assert hash_of(tensor) == int(hash_of(tensor))


def test_differences_of_one_unit_in_the_last_place_do_not_cancel():
    generator = torch.Generator().manual_seed(0)
    tensor = torch.randn(100, generator=generator)
    for _ in range(50):
        signs = torch.where(torch.rand(100, generator=generator) < 0.5, -1.0, 1.0)
        other = torch.nextafter(tensor, tensor + signs)
        assert hash_of(tensor) != hash_of(other)


def test_layout_and_chunks_do_not_matter(monkeypatch):
    tensor = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    value = hash_of(tensor)
    assert hash_of(tensor.to(memory_format=torch.channels_last)) == value
    monkeypatch.setattr(hashing, "_CHUNK_ON_CPU", 7)
    assert hash_of(tensor) == value


@pytest.mark.parametrize("length", range(1, 10))
def test_a_part_of_a_tensor_has_the_hash_of_its_copy(length):
    whole = torch.arange(20, dtype=torch.float32).add(1)
    for start in range(3):
        part = whole[start : start + length]
        assert hash_of(part) == hash_of(part.clone())
        other = part.clone()
        other[-1] += 1
        assert hash_of(part) != hash_of(other)


def test_several_tensors_have_a_value_each():
    tensors = [torch.ones(3), torch.zeros(2), torch.empty(0), torch.ones(3)]
    values = hashes(tensors).tolist()
    assert values[0] == values[3] != 0
    assert values[1] == values[2] == 0
