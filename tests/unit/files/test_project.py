"""Where results go without a clone, and which code this is."""

import subprocess
from pathlib import Path

import pytest

from core.files import project


def git(folder: Path, *command: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *command], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class TestTheCommit:
    @pytest.fixture
    def checkout(self, tmp_path):
        git(tmp_path, "init", "--quiet")
        (tmp_path / "code.py").write_text("1\n")
        git(tmp_path, "add", "code.py")
        git(tmp_path, "commit", "--quiet", "--message", "first")
        return tmp_path

    def test_it_is_twelve_digits_of_the_newest(self, checkout):
        assert project.read_checkout(checkout).commit == git(checkout, "rev-parse", "HEAD")[:12]

    def test_a_tag_does_not_stand_for_it(self, checkout):
        git(checkout, "tag", "--annotate", "v1", "--message", "v1")
        assert project.read_checkout(checkout).commit == git(checkout, "rev-parse", "HEAD")[:12]

    def test_a_changed_file_adds_a_plus(self, checkout):
        (checkout / "code.py").write_text("2\n")
        assert project.read_checkout(checkout).commit == git(checkout, "rev-parse", "HEAD")[:12] + "+"

    def test_a_new_file_that_is_not_tracked_does_not(self, checkout):
        (checkout / "notes.txt").write_text("mine\n")
        assert not project.read_checkout(checkout).commit.endswith("+")

    def test_a_copy_of_the_code_within_another_checkout_has_none(self, checkout):
        (checkout / "crossover").mkdir()
        assert project.read_checkout(checkout / "crossover").commit == ""

    def test_a_checkout_without_a_commit_has_none(self, tmp_path):
        git(tmp_path, "init", "--quiet")
        assert project.read_checkout(tmp_path).commit == ""

    @pytest.mark.parametrize(
        "failure", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 5), PermissionError("git")]
    )
    def test_where_git_is_missing_or_hangs_there_is_none(self, checkout, monkeypatch, failure):
        def run(command, **options):
            raise failure

        monkeypatch.setattr(subprocess, "run", run)
        assert project.read_checkout(checkout).commit == ""


@pytest.mark.parametrize(
    ("system", "environment", "folder"),
    [
        ("linux", {}, "home/.local/share/crossover"),
        ("darwin", {}, "home/Library/Application Support/crossover"),
        ("win32", {}, "home/AppData/Local/crossover"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/crossover"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/crossover"),
        ("darwin", {"XDG_DATA_HOME": "/data"}, "/data/crossover"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "home/.local/share/crossover"),
    ],
)
def test_without_a_clone_results_go_to_the_users_data_folder(monkeypatch, tmp_path, system, environment, folder):
    monkeypatch.setattr(project.Path, "home", lambda: tmp_path / "home")
    assert project.find_user_data_folder(environment, system) == tmp_path / folder


def test_the_address_is_that_of_the_repository_it_was_cloned_from(tmp_path):
    git(tmp_path, "init", "--quiet")
    assert project.read_checkout(tmp_path).address == ""
    git(tmp_path, "remote", "add", "origin", "https://example.org/crossover.git")
    assert project.read_checkout(tmp_path).address == "https://example.org/crossover.git"
