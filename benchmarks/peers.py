"""Other libraries that check a result page: for each a function (page, k) that prepares signatures beforehand.

A page is the shingle hashes of its hits (see page_kinds). Libraries that take texts get one word for each shingle.
Each function returns a callable that returns the similar pairs, or the hits to keep.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.measure import Method
from benchmarks.page_kinds import Documents, sketches_of

MIN_SIMILARITY = 0.5


def datasketch_all_pairs(page: Documents, k: int) -> Method:
    signatures = _datasketch(page, k)
    return lambda: [
        (i, j)
        for i, j in combinations(range(len(signatures)), 2)
        if signatures[i].jaccard(signatures[j]) >= MIN_SIMILARITY
    ]


def datasketch_lsh(page: Documents, k: int) -> Method:
    from datasketch import MinHashLSH

    signatures = _datasketch(page, k)
    tuned = MinHashLSH(threshold=MIN_SIMILARITY, num_perm=k)

    def check() -> list[tuple[int, int]]:
        index, found = MinHashLSH(threshold=MIN_SIMILARITY, num_perm=k, params=(tuned.b, tuned.r)), []
        for i, signature in enumerate(signatures):
            found += [(j, i) for j in index.query(signature) if signatures[j].jaccard(signature) >= MIN_SIMILARITY]
            index.insert(i, signature, check_duplication=False)
        return found

    return check


def rensa_lsh(page: Documents, k: int) -> Method:
    from rensa import RMinHashLSH

    signatures = _rensa(page, k)

    def check() -> list[tuple[int, int]]:
        index = RMinHashLSH(threshold=MIN_SIMILARITY, num_perm=k, num_bands=k // 4)
        index.insert_many(signatures)
        return [
            (i, j)
            for i, met in enumerate(index.query_all(signatures))
            for j in met
            if j > i and signatures[i].jaccard(signatures[j]) >= MIN_SIMILARITY
        ]

    return check


def rensa_deduplicator(page: Documents, k: int) -> Method:
    from rensa import RMinHashDeduplicator

    named = [(str(rank), signature) for rank, signature in enumerate(_rensa(page, k))]

    def check() -> object:
        return RMinHashDeduplicator(threshold=MIN_SIMILARITY, num_perm=k, use_lsh=True, num_bands=k // 4).add_pairs(
            named
        )

    return check


def fastsketch_lsh(page: Documents, k: int) -> Method:
    from FastSketchLSH import LSH, FastSimilaritySketch

    words = [[str(value) for value in document.tolist()] for document in page]
    matrix = np.asarray(FastSimilaritySketch(size=k, seed=42).batch(words, num_threads=1), dtype=np.uint64)

    def check() -> list[tuple[int, int]]:
        index = LSH(num_perm=k, num_bands=k // 4, num_threads=1)
        index.insert(matrix)
        return [
            (i, j)
            for i, met in enumerate(index.query(matrix))
            for j in met
            if j > i and np.count_nonzero(matrix[i] == matrix[j]) >= MIN_SIMILARITY * k
        ]

    return check


def sourmash_all_pairs(page: Documents, k: int) -> Method:
    from sourmash import MinHash

    signatures = []
    for document in page:
        signature = MinHash(n=k, ksize=21)
        signature.add_many(document.tolist())
        signatures.append(signature.to_frozen())
    return lambda: [
        (i, j)
        for i, j in combinations(range(len(signatures)), 2)
        if signatures[i].jaccard(signatures[j]) >= MIN_SIMILARITY
    ]


def simhash_all_pairs(page: Documents, k: int) -> Method:
    from simhash import Simhash

    prints = [Simhash([str(value) for value in document.tolist()]) for document in page]
    return lambda: [(i, j) for i, j in combinations(range(len(prints)), 2) if prints[i].distance(prints[j]) <= 16]


def tfidf(page: Documents, k: int) -> Method:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [" ".join(map(str, document.tolist())) for document in page]

    def check() -> object:
        rows = TfidfVectorizer().fit_transform(texts)
        return np.nonzero(np.triu((rows @ rows.T).toarray() >= 0.8, 1))

    return check


def sycamore(page: Documents, k: int) -> Method:
    """Sycamore's rule: keep a hit if at most half of its sketch is in that of any hit kept before it."""
    sketches = [sketch.tolist() for sketch in sketches_of(page, k)]

    def is_far(a: list[int], b: list[int]) -> bool:
        i = j = frequency_table = 0
        while i < len(a) and j < len(b):
            if a[i] == b[j]:
                frequency_table, i, j = frequency_table + 1, i + 1, j + 1
            elif a[i] < b[j]:
                i += 1
            else:
                j += 1
        return frequency_table < MIN_SIMILARITY * max(len(a), len(b))

    def check() -> list[list[int]]:
        kept: list[list[int]] = []
        for sketch in sketches:
            if all(is_far(sketch, other) for other in kept):
                kept.append(sketch)
        return kept

    return check


def semhash(page: Documents, k: int) -> Method:
    """semhash with its index and search, on shingle counts in 256 dimensions instead of embeddings."""
    from semhash import SemHash

    vectors = np.zeros((len(page), 256), np.float32)
    for vector, document in zip(vectors, page, strict=True):
        np.add.at(vector, document % 256, np.where(document // 256 % 2, 1, -1))
    records = [{"text": str(rank)} for rank in range(len(page))]

    class Encoder:
        def encode(self, texts: list[str], **others: object) -> np.ndarray:
            return vectors[list(map(int, texts))]

    def check() -> object:
        found = SemHash.from_embeddings(vectors, records=records, model=Encoder(), columns=["text"])
        return found.self_deduplicate(threshold=0.8)

    return check


PEERS = {
    "rensa, deduplicator": rensa_deduplicator,
    "rensa, LSH and verify": rensa_lsh,
    "FastSketchLSH, LSH and verify": fastsketch_lsh,
    "datasketch, all pairs": datasketch_all_pairs,
    "datasketch, LSH and verify": datasketch_lsh,
    "simhash, all pairs": simhash_all_pairs,
    "semhash, stand-in vectors": semhash,
    "sourmash, all pairs": sourmash_all_pairs,
    "Sycamore's rule": sycamore,
    "scikit-learn, TF-IDF from text": tfidf,
}


def _datasketch(page: Documents, k: int) -> list[Any]:
    from datasketch import MinHash

    found: list[Any] = MinHash.bulk([document.tolist() for document in page], num_perm=k, hashfunc=int)
    return found


def _rensa(page: Documents, k: int) -> list[Any]:
    from rensa import RMinHash

    texts = [[str(value) for value in one.tolist()] for one in page]
    found: list[Any] = RMinHash.from_token_sets(texts, num_perm=k, seed=42)
    return found
