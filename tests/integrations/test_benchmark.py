"""The measurement of facts in passages compares methods on the same terms."""

import pytest

from benchmarks import passages


@pytest.mark.parametrize("name", list(passages.METHODS))
def test_every_method_keeps_to_ten_passages_and_to_the_budget(name: str) -> None:
    if "TF-IDF" in name or "WordLlama" in name:
        for module in ("sklearn", "langchain_core", "wordllama"):
            pytest.importorskip(module, reason="the extra bench is not installed")
    found = passages.chunks()[0][:50]
    choose = passages.METHODS[name]
    assert 0 < len(choose("Bolivia government", found, None)) <= 10
    chosen = choose("Bolivia government", found, 300)
    assert 0 < sum(len(text.split()) for text in chosen) <= 300


def test_a_fact_counts_once_and_only_whole() -> None:
    texts = ["Chad: capital: N'Djamena and more", "Chad: capital: N'Djamena", "Chad: coast"]
    assert passages.covered(texts, {"Chad: capital: N'Djamena", "Chad: coastline"}) == 1
