"""The cache in Redis or Valkey by itself: what every cache guarantees, and what becomes of faults."""

import pickle
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.paging.cache import Cache, CachePaused, MemoryCache
from tests.redis_server import Link, server

redis = pytest.importorskip("redis")
KEY, OTHER = b"0123456789abcdef", b"fedcba9876543210"

Make = Callable[..., Any]


@pytest.fixture
def make(redis_url: str) -> Iterator[Make]:
    """make(url=None, **settings): a cache with a long budget, because machines may be slow, and keys of its own."""
    made: list[Any] = []

    def cache(url: str | None = None, **settings: Any) -> Any:
        made.append(
            ndd.plugins.RedisCache(url or redis_url, **{"prefix": uuid.uuid4().hex, "budget": 20.0, **settings})
        )
        return made[-1]

    yield cache
    for one in made:
        one.close()


@pytest.fixture(params=["memory", "redis"])
def cache(request: pytest.FixtureRequest) -> Cache:
    """Every kind of cache."""
    if request.param == "memory":
        return MemoryCache(max_bytes=10_000)
    made: Cache = request.getfixturevalue("make")(most_bytes=5_000)
    return made


def test_a_cache_returns_the_newest_value_and_forgets_what_is_cleared(cache: Cache) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, b"first")
    cache.put(KEY, b"\x00second\xff", seconds=60)
    assert cache.get(KEY) == b"\x00second\xff"
    assert cache.get_many([OTHER, KEY]) == [None, b"\x00second\xff"]
    assert cache.get_many([]) == []
    assert (cache.stats().hits, cache.stats().misses) == (1, 1)
    cache.put(KEY, bytes(20_000))  # too large: the former value would not be the newest
    assert cache.get(KEY) is None
    cache.put(OTHER, b"1")
    cache.clear()
    assert cache.get(OTHER) is None


def test_an_entry_expires(make: Make) -> None:
    cache = make()
    cache.put(KEY, b"1", seconds=0.001)
    cache.put(OTHER, b"1", seconds=60)
    while cache.get(KEY) is not None:  # the server's clock decides
        pass
    name = cache._name(OTHER)
    assert 0 < cache._redis.pttl(name) <= 60_000
    cache.put(OTHER, b"2")
    assert 0 < cache._redis.pttl(name) <= 10_000


def test_an_embedded_index_takes_it_too(make: Make, tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    cache = make()
    with ndd.Index.open(tmp_path / "news", text="body", cache=cache) as one:
        one.add({"id": number, "body": f"a story about the climate {number}"} for number in range(5))
        first = one.search("climate")
    with ndd.Index.open(tmp_path / "news", cache=cache) as other:
        again = other.search("climate")
    assert (first["ndd"]["cache"], again["ndd"]["cache"]) == ("miss", "hit")
    assert again["hits"] == first["hits"]


def test_a_lock_belongs_to_one_process_until_it_ends(make: Make) -> None:
    one = make()
    other = pickle.loads(pickle.dumps(one))
    token = one.acquire(KEY, 60)
    assert token is not None
    assert other.acquire(KEY, 60) is None
    other.release(KEY, b"another token")
    assert other.acquire(KEY, 60) is None
    one.release(KEY, token)
    assert other.acquire(KEY, 0.001)
    while not one.acquire(KEY, 60):
        pass


def test_a_value_of_another_program_is_no_lock(make: Make) -> None:
    """Whatever its type, and though it has no end."""
    one, other = make(prefix="own"), make(prefix="own")
    for put in (one._redis.set, one._redis.rpush):
        one._redis.delete(one._name(KEY))
        put(one._name(KEY), "of another program")
        token = one.acquire(KEY, 60)
        assert token is not None
        assert other.acquire(KEY, 60) is None
        one.release(KEY, token)
        assert one._redis.exists(one._name(KEY)) == 0


def test_a_user_of_the_server_needs_four_rights(make: Make) -> None:
    one = make(prefix="own")
    one.clear()
    one._redis.acl_setuser(
        "reader", enabled=True, passwords=["+secret"], keys=["*"], commands=["+get", "+mget", "+set", "+del"]
    )
    at = one._redis.connection_pool.connection_kwargs
    limited = make(f"redis://reader:secret@{at['host']}:{at['port']}/{at.get('db', 0)}", prefix="own")
    limited.put(KEY, b"1")
    assert limited.get_with(KEY, [OTHER]) == (b"1", [None])
    token = limited.acquire(OTHER, 60)
    assert token is not None
    assert one.acquire(OTHER, 60) is None
    limited.release(OTHER, token)
    assert one.acquire(OTHER, 60) is not None


def test_a_copy_shares_the_entries_and_the_settings(make: Make) -> None:
    one = make(seconds=7.0)
    one.put(KEY, b"1")
    other = pickle.loads(pickle.dumps(one))
    assert other.get(KEY) == b"1"
    assert other._arguments == one._arguments


def test_a_value_of_another_program_is_no_value(make: Make) -> None:
    cache = make()
    cache._redis.rpush(cache._name(KEY), "a", "list")
    assert cache.get(KEY) is None


def test_a_cache_that_fails_is_left_alone_for_a_while(make: Make, link: Link) -> None:
    now = [0.0]
    cache = make(link.url, pause=5.0, clock=lambda: now[0])
    cache.put(KEY, b"1")
    link.cut = True
    with pytest.raises(redis.ConnectionError):
        cache.get(KEY)
    asked, link.cut = link.asked, False
    for time in (0.0, 4.9):
        now[0] = time
        with pytest.raises(CachePaused):
            cache.get(KEY)
        with pytest.raises(CachePaused):
            cache.put(KEY, b"2")
        with pytest.raises(CachePaused):
            cache.acquire(KEY, 1)
    assert link.asked == asked
    now[0] = 5.0
    assert cache.get(KEY) == b"1"


def test_a_cache_that_answers_late_is_left_alone(make: Make, link: Link) -> None:
    link.delay = 5.0
    cache = make(link.url, budget=0.05)
    with pytest.raises(redis.TimeoutError):
        cache.get(KEY)
    with pytest.raises(CachePaused):
        cache.get(KEY)


def fill(cache: Cache) -> None:
    for number in range(100):
        cache.put(b"%016d" % number, bytes(100_000))


def test_a_full_server_keeps_nothing_and_a_restarted_one_goes_on(make: Make) -> None:
    with server("--maxmemory", "3mb", "--maxmemory-policy", "noeviction") as full:
        cache = make(full.url, pause=0.0)
        with pytest.raises(redis.OutOfMemoryError):
            fill(cache)
        assert cache.get(b"%016d" % 0) == bytes(100_000)
        full.stop()
        with pytest.raises(redis.ConnectionError):
            cache.get(KEY)
        full.start()
        assert cache.get(b"%016d" % 0) is None
        cache.put(KEY, b"1")
        assert cache.get(KEY) == b"1"


@pytest.mark.parametrize(
    ("url", "settings"),
    [("http://cache:6379", {}), ("redis://cache", {"seconds": 0}), ("redis://cache", {"budget": float("inf")})],
)
def test_impossible_settings_are_refused(url: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"finite and above 0|scheme"):
        ndd.plugins.RedisCache(url, **settings)


def test_the_password_is_not_shown() -> None:
    cache = ndd.plugins.RedisCache("redis://user:secret@cache:6379/0")
    assert repr(cache) == "RedisCache('cache')"
