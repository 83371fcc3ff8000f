"""The measurement of facts in passages compares methods on the same terms."""

from statistics import mean

import pytest

import ndd_search as ndd
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


def test_a_budget_of_400_words_has_24_facts_none_is_lost_and_each_passage_can_be_cited() -> None:
    shown = []
    for seed in range(passages.POOLS):
        question, facts, found = passages.pool(seed, (0.1, 0.25, 0.5)[seed % 3])
        for choose in (passages.ours, passages.ours_merged):
            texts = choose(question, found, passages.POOL_BUDGET)
            assert sum(len(text.split()) for text in texts) <= passages.POOL_BUDGET
            shown.append(sum(any(passages.tells(fact, text) for text in texts) for fact in facts))
            every = choose(question, found, 10**6)
            assert all(any(passages.tells(fact, text) for text in every) for fact in facts)
        chosen = ndd.passages(found, size=len(found))
        ranks = [one.rank for one in chosen] + [copy.rank for one in chosen for copy in one.copies]
        assert sorted(ranks) == list(range(len(found)))
    assert mean(shown) >= 24
