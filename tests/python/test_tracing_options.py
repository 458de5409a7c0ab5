"""The words of --layers, --buffer, --quota and --anonymise: what they mean, and what a wrong one is told."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ioweir.base.compiled import compiled
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.launch.tracing_options import LAYERS, Tracing, make, parse_bytes, parse_layers


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("complete", tuple(LAYERS)),
        ("posix", ("posix",)),
        ("POSIX,mpiio", ("mpiio", "posix")),
        (" hdf5 , stdio ", ("stdio", "hdf5")),
        ("posix,complete", tuple(LAYERS)),
    ],
)
def test_layers(text: str, layers: tuple[str, ...]) -> None:
    assert parse_layers(text) == layers


@pytest.mark.parametrize(
    ("text", "meant"),
    [("posxi", "posix"), ("mpi-io", "mpiio"), ("posix,hdf", "hdf5"), ("pnetcd", "pnetcdf"), ("all,compete", None)],
)
def test_a_wrong_layer_is_told_which_was_meant(text: str, meant: str | None) -> None:
    with pytest.raises(IoweirError) as caught:
        parse_layers(text)
    assert caught.value.exit_code == EXIT_USAGE
    assert all(word in str(caught.value) for word in LAYERS)
    assert (f"did you mean '{meant}'? There are" in str(caught.value)) == (meant is not None)


@given(st.sets(st.sampled_from(sorted(LAYERS)), min_size=1))
def test_every_choice_of_layers_reaches_the_preload(chosen: set[str]) -> None:
    tracing = Tracing(layers=parse_layers(",".join(chosen)))
    given_to_preload = tracing.variables().get("IOWEIR_LAYERS")
    assert set(given_to_preload.split(",") if given_to_preload else LAYERS) == chosen
    assert set(tracing.described()["layers"]) == {LAYERS[layer] for layer in chosen}
    assert {row["layer"] for row in compiled().functions()} <= set(LAYERS.values())


@given(st.integers(0, 2**40), st.sampled_from(["", " ", "  "]))
def test_sizes(number: int, blank: str) -> None:
    for unit, factor in (("", 1), ("B", 1), ("KiB", 1024), ("MiB", 1024**2), ("kB", 1000), ("MB", 1000**2)):
        assert parse_bytes("--buffer", f"{number}{blank}{unit}", 0) == number * factor


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("8 mib", "did you mean 'MiB'?"),
        ("8M", "did you mean 'MiB'?"),
        ("8 xib", "Units are B, KiB"),
        ("much", "is no size"),
        ("-1", "is no size"),
        ("1.5 GiB", "is no size"),
        ("10", "too small"),
        ("9999999999 TiB", "too large"),
    ],
)
def test_a_wrong_size_is_told_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(IoweirError, match=re.escape(said)) as caught:
        parse_bytes("--buffer", text, 4096)
    assert caught.value.exit_code == EXIT_USAGE
    assert str(caught.value).startswith(f"--buffer: '{text}'")


def test_only_what_differs_from_the_defaults_is_given_to_the_preload() -> None:
    assert make(None, False, None, None, False, {}).variables() == {}
    chosen = make("posix", True, "4 MiB", "1 GiB", False, {}).variables()
    assert chosen == {
        "IOWEIR_LAYERS": "posix",
        "IOWEIR_CALLSITES": "1",
        "IOWEIR_BUFFER": str(4 * 2**20),
        "IOWEIR_QUOTA": str(2**30),
    }


def test_keys_are_new_or_the_users_and_never_described() -> None:
    first, second = (make(None, False, None, None, True, {}) for _ in range(2))
    assert first.anonymise_key != second.anonymise_key
    key = "0123456789abcdef" * 2
    given_key = make(None, False, None, None, True, {"IOWEIR_ANONYMISE": key})
    assert given_key.variables() == {"IOWEIR_ANONYMISE": key}
    assert key not in str(given_key.described())
    with pytest.raises(IoweirError, match="is no key"):
        make(None, False, None, None, True, {"IOWEIR_ANONYMISE": "yes"})
