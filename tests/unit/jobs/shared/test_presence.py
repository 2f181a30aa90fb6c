"""How machines that work for others are told apart."""

from core.jobs.shared import presence


def test_machines_with_folders_of_jobs_of_their_own_have_names_of_their_own(queue, tmp_path):
    other = type(queue)(tmp_path / "other")
    assert presence.host_name(queue) == presence.host_name(queue) != presence.host_name(other)


def test_machines_that_are_alike_have_ids_of_their_own_that_say_nothing_without_the_salt(at, monkeypatch):
    salt = at.salt()
    assert at.salt() == salt
    ids = set()
    for name in ("lab-1", "lab-2"):
        monkeypatch.setenv(presence.MACHINE_VARIABLE, name)
        ids |= {presence.own_id(salt, "a" * 12), presence.own_id("other", "a" * 12)}
        assert presence.own_id(salt, "a" * 12) == presence.own_id(salt, "a" * 12)
    assert len(ids) == 4
