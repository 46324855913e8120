import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holter.record.errors import HolterError
from holter.record.format import (
    ABSENT,
    ABSENT_BITS,
    FORMAT,
    Block,
    checksum,
    encode_header,
    is_absent,
    read_header,
    record_dtype,
)

HERE = Path("x.seg")
ODD = ("", "a\nb", 'quote"', "ünï", "層.0", "\ud800", "\0", " ", "a" * 5000)


def header_of(raw: bytes):
    return read_header(io.BytesIO(raw), HERE)


def blocks_of(*layout: tuple[str, tuple[str, ...]]) -> tuple[Block, ...]:
    blocks, start = [], 0
    for signal, owners in layout:
        blocks.append(Block(signal, owners, start))
        start = blocks[-1].stop
    return tuple(blocks)


@given(st.lists(st.tuples(st.text(), st.lists(st.text(), max_size=5).map(tuple)), max_size=5))
@settings(max_examples=50, deadline=None)
def test_a_header_reads_as_it_was_written(layout):
    raw = encode_header("steps", blocks_of(*layout), through=7)
    header = header_of(raw)
    assert len(raw) % 4096 == 0
    assert (header.stream, header.blocks, header.size) == ("steps", blocks_of(*layout), len(raw))
    assert header.through == 7


def test_a_header_of_two_thousand_owners_spans_pages_and_names_them_once():
    owners = tuple(f"transformer.blocks.{i}.attention.query.weight" for i in range(2000))
    blocks = blocks_of(("grad.norm", owners), ("weight.norm", owners))
    raw = encode_header("parameters", blocks)
    assert 4096 < len(raw) < 2000 * 60
    assert header_of(raw).blocks == blocks
    assert header_of(raw).width == 4000


def test_odd_owner_names_are_kept():
    blocks = blocks_of(("loss", ODD))
    assert header_of(encode_header("steps", blocks)).blocks == blocks


@pytest.mark.parametrize("owners", [("a",), tuple(f"owner{i}" for i in range(1000))])
def test_a_header_cut_anywhere_is_none_or_has_all(owners):
    raw = encode_header("steps", blocks_of(("loss", owners)))
    end = raw.index(b"\n")
    for cut in {*range(64), *range(0, len(raw), 97), end, end + 1, len(raw) - 1}:
        assert (header_of(raw[:cut]) is None) == (cut <= end)


def test_every_flipped_byte_of_a_header_is_noticed():
    raw = encode_header("steps", blocks_of(("loss", ("a", "b"))))
    for at in range(raw.index(b"\n")):
        damaged = bytearray(raw)
        damaged[at] ^= 0x01
        with pytest.raises(HolterError, match=r"x\.seg"):
            header_of(bytes(damaged))


def test_a_newer_format_asks_for_an_upgrade_even_if_its_fields_are_others():
    raw = json.dumps({"holter": "segment", "format": FORMAT + 1, "new": 1}).encode() + b"\n"
    with pytest.raises(HolterError, match="upgrade"):
        header_of(raw.ljust(4096))


@given(st.integers(0, 2**32 - 1))
def test_one_bit_pattern_alone_is_absence(bits):
    value = np.array([bits], np.uint32).view(np.float32)
    assert is_absent(value)[0] == (bits == ABSENT_BITS)


def test_absence_is_a_quiet_nan_but_numpys_nan_is_not_absence():
    assert np.isnan(ABSENT)
    assert not is_absent(np.array([np.nan, -np.nan, np.inf, 0], np.float32)).any()


def test_the_checksum_covers_everything_but_itself():
    dtype = record_dtype(3)
    record = bytes(range(dtype.itemsize))
    for at in range(dtype.itemsize):
        other = bytearray(record)
        other[at] ^= 0x80
        assert (checksum(other) == checksum(record)) == (16 <= at < 20)
