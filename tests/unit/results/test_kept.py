from core.results.index import Kept


def made(kept: Kept[str, str], keys: str, *, times: int = 1) -> list[str]:
    """The keys whose values were made, in order; a value is its key, so many times."""
    found: list[str] = []

    def make(key: str) -> str:
        found.append(key)
        return key * times

    for key in keys:
        assert kept.get(key, lambda key=key: make(key)) == key * times
    return found


def test_what_was_made_is_not_made_again():
    assert made(Kept(10, len), "aabab") == ["a", "b"]


def test_what_was_not_asked_for_longest_goes_first():
    kept = Kept[str, str](2, len)
    assert made(kept, "abacab") == ["a", "b", "c", "b"]
    assert (kept.bytes, len(kept)) == (2, 2)


def test_what_takes_more_than_the_whole_room_is_not_kept_and_drives_nothing_out():
    kept = Kept[str, str](2, len)
    assert made(kept, "ab") == ["a", "b"]
    assert made(kept, "cc", times=3) == ["c", "c"]
    assert made(kept, "ab") == []


def test_what_cannot_be_made_leaves_nothing():
    kept = Kept[str, str](2, len)
    for _ in range(2):
        try:
            kept.get("a", lambda: str(1 // 0))
        except ZeroDivisionError:
            continue
    assert (kept.bytes, len(kept)) == (0, 0)
