"""How numbers and names read."""

from __future__ import annotations

import pytest

from store import shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ""),
        (["gather"], "gather"),
        (["gather", "softmax"], "gather, softmax"),
        (["gather", "softmax", "top_k"], "gather, softmax and 1 more"),
        (["gather", "softmax", "top_k", "rope"], "gather, softmax and 2 more"),
    ],
)
def test_a_list_names_what_fits_and_counts_the_rest(words: list[str], said: str) -> None:
    assert shown.enumerated(words, most=2) == said
