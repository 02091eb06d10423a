"""Pairs in place of products: few combinations of values in which every two values of two factors meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product


def pairs(*factors: Iterable, can_be: Callable[..., bool] = lambda *_: True, meet: Sequence[tuple[int, int]] = ()) -> list[tuple]:
    """Combinations of one value of each factor, among those that can be, so that every pair of values that stands in any of
    them stands in one that is chosen. Always the same ones: the next is the first with the most pairs that are new.
    `meet`: which factors must meet, by their places; all, unless it is given."""
    factors = [list(factor) for factor in factors]
    every = [values for values in product(*factors) if can_be(*values)]
    all_places = list(combinations(range(len(factors)), 2))
    places = list(meet or all_places)

    def of(values: tuple, places: list[tuple[int, int]]) -> set[tuple]:
        return {(one, other, repr(values[one]), repr(values[other])) for one, other in places}

    missing = set().union(*(of(values, places) for values in every))
    chosen, met = [], set()
    while missing:
        # Of those with as many, one in which others meet for the first time.
        best = max(every, key=lambda values: (len(of(values, places) & missing), len(of(values, all_places) - met)))
        chosen.append(best)
        missing -= of(best, places)
        met |= of(best, all_places)
    return chosen
