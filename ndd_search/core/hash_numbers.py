"""The numbers of the hash of a keyed recipe, and its fingerprint, which are derived from its secret.

Who knows the hash of shingles can write a text whose sketch equals that of any other text. Of a keyed recipe, all
numbers of the hash come from a secret. Whoever makes sketches needs it; whoever compares sketches does not.

The secret is stretched by scrypt (Percival 2009), which makes guessing a weak one expensive. Fingerprint and numbers
are two keyed BLAKE2b hashes of the result, so neither tells anything about the other.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b, scrypt
from typing import NamedTuple

_SHORTEST = 16  # characters of a secret
_INTERLEAVED = 5  # of 8: numbers that differ from 1 in the third bit have powers that repeat as late as possible


class HashNumbers(NamedTuple):
    """The numbers of a keyed hash, 0..2**64-1 (see text.shingles)."""

    add: int
    times: int
    p: int
    q: int
    a: int
    seed: int
    first: int
    second: int


@lru_cache(maxsize=16)  # it takes a twentieth of a second
def derived(key: str) -> tuple[str, HashNumbers]:
    """Return the fingerprint of a secret (16 hexadecimal digits) and the numbers of its hash."""
    if not isinstance(key, str):
        raise TypeError(f"key must be a text, got {type(key).__name__}")
    if len(key) < _SHORTEST:
        raise ValueError(f"key must have at least {_SHORTEST} characters, make one with secrets.token_hex(16)")
    root = scrypt(key.encode("utf-8", "surrogatepass"), salt=b"ndd_search recipe", n=2**14, r=8, p=1, dklen=32)
    fingerprint = blake2b(key=root, person=b"ndd fingerprint", digest_size=8).hexdigest()
    drawn = blake2b(key=root, person=b"ndd numbers", digest_size=64).digest()
    numbers = [int.from_bytes(drawn[at : at + 8], "little") for at in range(0, 64, 8)]
    odd = HashNumbers(*(number | 1 for number in numbers))
    p, q = ((number & ~7) | _INTERLEAVED for number in (odd.p, odd.q))
    return fingerprint, odd._replace(add=numbers[0], p=p, q=q, seed=numbers[5])
