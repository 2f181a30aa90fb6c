"""Permissions of a page to queue or stop a measurement: the only module that decides them.

The check is in `submit` and `stop` and not in the buttons, so it also applies to links, scripts and messages over the
websocket. A person is an account that has signed in, else a member of a class, else a browser. Only a salted hash of a
person is stored. A network address never identifies a person, because a school has one for all its members.

The module also stores classes in the link and in the session: the open class, the visitor's membership in it, and
refused codes.
"""

import contextlib
import dataclasses
import hashlib
import ipaddress
import logging
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import streamlit as st

from core.classroom import students
from core.errors import DamagedFile, JobError, NotAllowed, unwritable
from core.files import documents
from core.jobs import client
from core.jobs.job import Job, RemoteTarget
from core.jobs.usage import Terms
from core.question import policy
from core.question.demonstrations import Demonstration
from core.question.policy import AnyQuestion, Policy
from core.results.store import Store
from core.text import as_lines
from pages.shared import custom_files, queries, session
from pages.shared.custom_files import CustomFile
from pages.shared.elements import plain

SIGN_IN = "Sign in to run something here. You can look at results without signing in."
_COOKIE = "_streamlit_xsrf"
_HANDED_ON = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip")
"""Headers by which a proxy passes on the address or host of its client."""

_SALT_LENGTH = 64
_SALT = re.compile(f"[0-9a-f]{{{_SALT_LENGTH}}}")

_log = logging.getLogger(__name__)


def submit(
    asked: AnyQuestion,
    store: Store,
    *,
    fresh: bool = False,
    elsewhere: RemoteTarget | None = None,
    quiet_s: float = 0.0,
) -> Job:
    """Queue a measurement for the visitor, here or on other machines, or join one that is under way.

    The measurement waits up to `quiet_s` seconds for a quiet machine.

    Raises:
        NotAllowed: the visitor has no permission.
        StoreError: the store cannot be written.
        JobError: the queue is full, or its folder cannot be written.
    """
    held = _require(asked)
    terms = _terms(held)
    if elsewhere and (elsewhere.on not in clusters() or asked.point.training):
        raise NotAllowed("This cannot be measured on other machines from here.")
    if not isinstance(asked, Demonstration) and (file := custom_files.find_custom_file(asked.point)):
        asked = dataclasses.replace(asked, folder=str(file.path.parent))  # the folder comes from the start command
    return queries.open_queue().submit(
        asked,
        store,
        fresh=fresh,
        asked_by=person(),
        asked_from=place(),
        terms=terms,
        elsewhere=elsewhere,
        quiet_s=quiet_s,
    )


def clusters() -> tuple[str, ...]:
    """Return the clusters that may measure a sweep for the visitor, from the host's settings."""
    held = policy.load_policy().cluster
    return held.on if held.who_may_ask == "everybody" or account_name() else ()


def sees_hosts() -> bool:
    """Return whether the visitor may see the names of hosts: on their own machine, or if the settings allow it."""
    return policy.load_policy().cluster.host_names or on_own_machine()


def refusal(*wanted: AnyQuestion) -> str:
    """Return why the visitor may not run some questions together, in one sentence; empty if they may.

    Without a question, returns why they may not run anything at all. Faults of the host's settings are at the top of
    every page, see `frame`.
    """
    try:
        held = _require(*wanted)
        return queries.open_queue().refusal(wanted, person(), _terms(held)) if wanted else ""
    except (NotAllowed, JobError) as error:
        return str(error).removesuffix(f" {policy.load_policy().fault}")


def stop(jobs: Iterable[str]) -> None:
    """End jobs in the given order.

    Raises:
        NotAllowed: one of the jobs is not the visitor's, if the settings require this; then none is ended.
        JobError: there is no such job, or its process belongs to another user.
    """
    ids = list(jobs)
    if reason := stop_refusal([queries.open_queue().job(job_id) for job_id in ids]):
        raise NotAllowed(reason)
    for job_id in ids:
        client.stop(queries.open_queue(), job_id)


def stop_refusal(jobs: Sequence[Job]) -> str:
    """Return why the visitor may not end some jobs, in one sentence; empty if they may."""
    return (
        "" if len(list_visitor_jobs(jobs)) == len(jobs) else "Only the user who started this measurement can stop it."
    )


def list_visitor_jobs(jobs: Sequence[Job]) -> list[Job]:
    """Return the visitor's jobs; all jobs if anybody may stop them, as on a user's own machine."""
    if policy.load_policy().who_may_stop == "anybody":
        return list(jobs)
    me = person()
    return [job for job in jobs if job.asked_by == me]


def trainings() -> Mapping[str, CustomFile]:
    """Return the custom scripts that the visitor may choose, by name; none on a host or from another machine."""
    files = custom_files.list_custom_files()
    return files if files and on_own_machine() else {}


def on_own_machine() -> bool:
    """Return whether the visitor uses the machine that serves the page, under a local name, and it is no host."""
    if policy.find_policy_file() is not None:
        return False
    headers = st.context.headers
    name = urlsplit(f"//{headers.get('Host', 'localhost')}").hostname or ""
    handed_on = any(header in headers for header in _HANDED_ON)
    from_here = _is_loopback(_address() or "127.0.0.1") and not handed_on
    return from_here and (name == "localhost" or _is_loopback(name))


def may_import() -> str:
    """Return why the visitor cannot import a file into this host's gallery, in one sentence; empty if they can."""
    held = policy.load_policy()
    if held.fault:
        return f"Nothing can be imported here until the host's settings are fixed. {held.fault}"
    return "The gallery of this host is read-only." if held.read_only_gallery else ""


def may_upload() -> str:
    """Return why this host accepts no file of any kind, in one sentence; empty if it accepts some."""
    held = policy.load_policy()
    return "This host accepts no files." if held.read_only_gallery and not held.classes.mode else ""


def person() -> str:
    """Return an anonymous name of the visitor, from their account, their class membership or their browser."""
    account = account_name()
    if account:
        return _hash_name("account", account)
    member = find_first_membership()
    if member:
        return _hash_name("class", *member)
    return _hash_name("browser", _browser() or session.name_visitor())


def place() -> str:
    """Return an anonymous name under which the visitor takes turns.

    An account that has signed in, or a member of a class, is known to be one person and takes turns as a person. All
    other visitors from one network address share the turns of one person.
    """
    if account_name() or find_first_membership():
        return person()
    return _hash_name("address", _address())


def source() -> students.VisitorSource:
    """Return the origin of the visitor for counting attempts and new items, never for the budget of a person."""
    return students.source(_browser(), _address())


def account_name() -> str:
    """Return the account that has signed in, as its provider names it; empty if there is none."""
    return _account(_user())


def _account(user: Mapping[str, object]) -> str:
    if user.get("is_logged_in") is not True or not user.get("sub"):
        return ""
    return f"{user.get('iss', '')} {user['sub']}"


def has_login() -> bool:
    """Return whether this host has a login; Streamlit then reports for every visitor whether they have signed in."""
    return "is_logged_in" in _user()


def frame() -> None:
    """Draw the beginning of every page: the host's banner, the faults of its settings, and its login."""
    held = policy.load_policy()
    if held.fault:
        st.error(plain(f"Nothing can be run here until the host's settings are fixed. {held.fault}"))
    if held.banner:
        with st.container(border=True, key="banner"):
            st.text(as_lines(held.banner))
    if held.who_may_run == "signed_in" and has_login():
        _login()


def _login() -> None:
    with st.container(horizontal=True, horizontal_alignment="right"):
        if account_name():
            st.button("Sign out", key="sign_out", on_click=st.logout, type="tertiary", icon=":material/logout:")
        else:
            st.button("Sign in to run", key="sign_in", on_click=st.login, type="tertiary", icon=":material/login:")


def _require(*wanted: AnyQuestion) -> Policy:
    """Return the policy if it lets this visitor run all questions; else raise NotAllowed.

    Without a question, it must let the visitor run anything at all.
    """
    held = policy.load_policy()
    held.check_open()
    for asked in wanted:
        held.check(asked)
        _require_own(asked)
    if held.who_may_run == "signed_in":
        user = _user()
        if not _account(user):
            known = "is_logged_in" in user
            raise NotAllowed(SIGN_IN if known else "Running needs a sign-in, which this host has not set up.")
        _require_domain(held, user)
    return held


def _require_own(asked: AnyQuestion) -> None:
    """Raise NotAllowed if a custom script is not offered to the visitor, or its file has changed."""
    if not asked.point.training:
        return
    if not on_own_machine():
        raise NotAllowed("A custom training script runs only for users at the machine that stores it.")
    if reason := custom_files.describe_file_state(asked.point):
        raise NotAllowed(f"{reason} Only the current file can run.")


def _is_loopback(name: str) -> bool:
    """Return whether an address is this machine's own; a server on IPv4 and IPv6 sees IPv4 addresses within IPv6."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return ((isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address).is_loopback


def _require_domain(held: Policy, user: Mapping[str, object]) -> None:
    domain = str(user.get("email", "")).rpartition("@")[2].lower()
    if held.sign_in_domains and (domain not in held.sign_in_domains or user.get("email_verified") is False):
        raise NotAllowed(f"Only accounts of {', '.join(held.sign_in_domains)} may run something on this host.")


def _terms(held: Policy) -> Terms:
    budget = held.person
    return Terms(seconds_per_day=budget.seconds_per_day, waiting=budget.waiting, queue_length=held.queue_length)


def _user() -> Mapping[str, object]:
    return st.user.to_dict()


def _browser() -> str:
    """Return Streamlit's token of this browser, the same in all its tabs; empty if there is none."""
    from streamlit.web.server.starlette import starlette_app_utils  # not a public interface, so imported on use

    cookie = st.context.cookies.get(_COOKIE, "")
    token, _ = starlette_app_utils.decode_xsrf_token_string(cookie) if cookie else (None, None)
    return token.hex() if token else ""


def _address() -> str:
    """Return the network address of the visitor; empty on the machine that serves the page, and without a browser."""
    address = st.context.ip_address
    return address if isinstance(address, str) else ""


def _hash_name(kind: str, *parts: str) -> str:
    text = "\n".join((_salt(queries.open_queue().folder), *parts))
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _salt(folder: Path) -> str:
    """Return a secret of this host, so that no name can be guessed from an account.

    Raises JobError if it cannot be stored.
    """
    path = folder / "salt"
    try:
        return _read_secret(path) or _create_secret(path)
    except OSError as error:
        raise JobError(unwritable(f"The folder of jobs {folder}", error)) from error


def _read_secret(path: Path) -> str:
    """Return the stored secret; empty if there is none. A damaged file is renamed, and new names are assigned."""
    try:
        kept = documents.read_text(path, most_bytes=_SALT_LENGTH)
        if kept is None and not path.is_symlink():
            return ""
        if kept is None or not _SALT.fullmatch(kept):
            raise DamagedFile(path.name, "it is not a file of Crossover")
        return kept
    except DamagedFile as error:
        _log.warning("New user names are assigned: %s", error)
        path.replace(path.with_suffix(".damaged"))
        return ""


def _create_secret(path: Path) -> str:
    """Store and return a new secret, or return the secret of another visitor who was faster."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")  # cleanup removes it if the process is killed
    draft.touch(mode=0o600)
    try:
        draft.write_text(secrets.token_hex(_SALT_LENGTH // 2), encoding="ascii")
        with contextlib.suppress(FileExistsError):  # only one of several first visitors creates it
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return path.read_text(encoding="ascii")


ME = "me"
"""Parameter of the link that names a visitor in their class, and proves it."""

TEACHER = "teach"
"""Parameter of the teacher's link with the teacher's code; it is removed once the code is accepted."""

VIEW, PROJECTOR = "view", "projector"
"""Parameter of the link that shows a class for the projector, and its value."""

MAX_REFUSALS = 20
"""Number of refused codes and proofs that a session remembers."""


def read_class_code() -> str:
    """Return the join code in the link; empty if there is none."""
    return st.query_params.get("class", "")


def open_class(code: str) -> None:
    """Put a join code into the link, and remove the code and the membership of another class."""
    if read_class_code() != code:
        st.query_params["class"] = code
        for proof in (ME, TEACHER):
            if proof in st.query_params:
                del st.query_params[proof]


def read_class_proof() -> str:
    """Return the proof of a membership in the link; empty if there is none."""
    return st.query_params.get(ME, "")


def list_entered_codes() -> set[str]:
    """Return codes of classes that this session opened, by code or proof; opening them again needs no check."""
    return cast(set[str], st.session_state.setdefault("_entered", set()))


def note_refusal(text: str, sentence: str) -> None:
    """Store why a code or a proof of membership was refused, so that the page does not try it again."""
    kept = [*st.session_state.get("_refused", {}).items(), (text[:200], sentence)]
    st.session_state["_refused"] = dict(kept[-MAX_REFUSALS:])


def find_refusal(text: str) -> str:
    """Return why a code or a proof of membership was refused; empty if it was not."""
    return str(st.session_state.get("_refused", {}).get(text[:200], ""))


def join_class(class_id: str, student_id: str, token: str) -> None:
    """Store the visitor's membership in a class and the token that proves it, in the session and the visitor's link."""
    _read_memberships()[class_id] = (student_id, token)
    st.query_params[ME] = f"{student_id}.{token}"


def find_membership(class_id: str) -> tuple[str, str]:
    """Return the visitor's id in a class, with the token; both empty without a membership."""
    return _read_memberships().get(class_id, ("", ""))


def note_teacher_code(class_id: str, secret: str) -> None:
    """Store the correct teacher's code of a class in the session, and remove it from the link, which others may see."""
    _read_teacher_codes()[class_id] = secret
    if TEACHER in st.query_params:
        del st.query_params[TEACHER]


def shows_projector() -> bool:
    """Return whether the link asks for the view for the projector."""
    return st.query_params.get(VIEW, "") == PROJECTOR


def show_projector(*, shown: bool = True) -> None:
    """Add the view for the projector to the link, or remove it."""
    if shown:
        st.query_params[VIEW] = PROJECTOR
    elif VIEW in st.query_params:
        del st.query_params[VIEW]


def find_teacher_code(class_id: str) -> str:
    """Return the teacher's code of a class; empty if this session does not have it."""
    return _read_teacher_codes().get(class_id, "")


def read_teacher_code() -> str:
    """Return the teacher's code of the link, right or wrong; empty if there is none."""
    return st.query_params.get(TEACHER, "")


def announce(sentence: str) -> None:
    """Store a sentence that the next run of the page shows."""
    st.session_state["_announced"] = sentence


def take_announcement() -> str:
    """Return the stored sentence and forget it; empty the second time."""
    return str(st.session_state.pop("_announced", ""))


def find_first_membership() -> tuple[str, str] | None:
    """Return the class that this session joined first, and the visitor's id in it; None if there is none."""
    return next(((class_id, student_id) for class_id, (student_id, _) in _read_memberships().items()), None)


def _read_teacher_codes() -> dict[str, str]:
    return cast(dict[str, str], st.session_state.setdefault("_teaches", {}))


def _read_memberships() -> dict[str, tuple[str, str]]:
    return cast(dict[str, tuple[str, str]], st.session_state.setdefault("_classes", {}))
