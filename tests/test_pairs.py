"""The pairs that stand for products (`scripts/harness/pairs.py`) are all there."""

from __future__ import annotations

from itertools import combinations, product

from harness.pairs import pairs


def test_every_two_values_meet():
    factors = ["abc", "12345", [True, False], ["x", "y", "z"]]
    chosen = pairs(*factors)
    for one, other in combinations(range(len(factors)), 2):
        assert {(values[one], values[other]) for values in chosen} == set(product(factors[one], factors[other]))
    assert len(chosen) < 20 < len(list(product(*factors)))


def test_what_cannot_be_is_not_chosen_and_what_can_be_meets():
    chosen = pairs("ab", "12", "xy", can_be=lambda letter, number, _: (letter, number) != ("a", "2"))
    assert {values[:2] for values in chosen} == {("a", "1"), ("b", "1"), ("b", "2")}
    assert {(values[0], values[2]) for values in chosen} == set(product("ab", "xy"))


def test_factors_need_not_all_meet():
    chosen = pairs("abc", "12345", "vwxyz", meet=[(0, 1), (0, 2)])
    assert {values[:2] for values in chosen} == set(product("abc", "12345"))
    assert {(values[0], values[2]) for values in chosen} == set(product("abc", "vwxyz"))
    assert len(chosen) == 15


def test_the_same_ones_are_chosen_again():
    assert pairs("abc", "123", "xyz") == pairs("abc", "123", "xyz")
