"""The one place from which a page queues a measurement or ends one, and where it is decided who may.

The refusal is here and not in the buttons: what a link, a script or a message over the websocket asks for comes
through `submit` and `stop` all the same. A person is who has signed in, else who has joined a class, else the browser;
what is written down of them is a salted hash. Never the address: a school has one for everybody.
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
from urllib.parse import urlsplit

import streamlit as st

from core.classroom import limits
from core.errors import DamagedFile, JobError, NotAllowed, unwritable
from core.files import documents
from core.jobs import client
from core.jobs.job import Elsewhere, Job
from core.jobs.usage import Terms
from core.question import policy
from core.question.demonstration import Demonstration
from core.question.policy import Asked, Policy
from core.results.store import Store
from core.text import as_lines
from pages.shared.data import own_files, reads
from pages.shared.data.own_files import OwnFile
from pages.shared.draw.text import plain
from pages.shared.link import membership, memory

SIGN_IN = "Sign in to run something here; looking needs no sign-in."
_COOKIE = "_streamlit_xsrf"
_HANDED_ON = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip")
"""Headers of what a proxy hands on, for whomever."""

_SALT_LENGTH = 64
_SALT = re.compile(f"[0-9a-f]{{{_SALT_LENGTH}}}")

_log = logging.getLogger(__name__)


def submit(asked: Asked, store: Store, *, fresh: bool = False, elsewhere: Elsewhere | None = None) -> Job:
    """Queue a measurement for who looks at the page, or join one that is under way; here, or on other machines.

    Raises:
        NotAllowed: who asks may not.
        StoreError: the store cannot be written.
        JobError: the queue is full, or its folder cannot be written.
    """
    held = _require(asked)
    terms = _terms(held)
    if elsewhere and (elsewhere.on not in clusters() or asked.point.training):
        raise NotAllowed("This cannot be measured on other machines from here.")
    if not isinstance(asked, Demonstration) and (file := own_files.of(asked.point)):
        asked = dataclasses.replace(asked, folder=str(file.path.parent))  # as whoever started the server has said it
    who: dict[str, str] = {"asked_by": person(), "asked_from": place()}
    return reads.queue().submit(asked, store, fresh=fresh, terms=terms, elsewhere=elsewhere, **who)


def clusters() -> tuple[str, ...]:
    """The clusters on which who looks at the page may have a sweep measured, as the host's settings name them."""
    held = policy.current().cluster
    return held.on if held.who_may_ask == "everybody" or signed_in_as() else ()


def sees_hosts() -> bool:
    """Whether who looks at the page may know what hosts are called: on one's own machine, or where the host says so."""
    return policy.current().cluster.host_names or on_own_machine()


def refusal(*wanted: Asked) -> str:
    """Why who looks at the page may not run some questions together, in one sentence; empty if they may.

    Without a question: why they may not run anything at all. What is wrong with the host's settings stands on top of
    every page, see `frame`.
    """
    try:
        held = _require(*wanted)
        return reads.queue().refusal(wanted, person(), _terms(held)) if wanted else ""
    except (NotAllowed, JobError) as error:
        return str(error).removesuffix(f" {policy.current().fault}")


def stop(jobs: Iterable[str]) -> None:
    """End jobs, in the order given.

    Raises:
        NotAllowed: one of them is not theirs who look at the page, where that matters; then none is ended.
        JobError: there is no such job, or its process belongs to another user.
    """
    ids = list(jobs)
    if reason := stop_refusal([reads.queue().job(job_id) for job_id in ids]):
        raise NotAllowed(reason)
    for job_id in ids:
        client.stop(reads.queue(), job_id)


def stop_refusal(jobs: Sequence[Job]) -> str:
    """Why who looks at the page may not end some jobs, in one sentence; empty if they may."""
    return "" if len(ours(jobs)) == len(jobs) else "Only the person who asked for this measurement can stop it."


def ours(jobs: Sequence[Job]) -> list[Job]:
    """The jobs that who looks at the page asked for; on one's own machine, all jobs are everybody's."""
    if policy.current().who_may_stop == "anybody":
        return list(jobs)
    me = person()
    return [job for job in jobs if job.asked_by == me]


def trainings() -> Mapping[str, OwnFile]:
    """By name, the trainings of one's own that who looks at the page may choose: none on a host, or from elsewhere."""
    files = own_files.offered()
    return files if files and on_own_machine() else {}


def on_own_machine() -> bool:
    """Whether the page is looked at on the machine that serves it, under a name of its own, and that is no host."""
    if policy.file() is not None:
        return False
    headers = st.context.headers
    name = urlsplit(f"//{headers.get('Host', 'localhost')}").hostname or ""
    handed_on = any(header in headers for header in _HANDED_ON)
    from_here = _is_loopback(_address() or "127.0.0.1") and not handed_on
    return from_here and (name == "localhost" or _is_loopback(name))


def may_import() -> str:
    """Why no file may be brought to this host's gallery, in one sentence; empty if one may."""
    held = policy.current()
    if held.fault:
        return f"Nothing can be imported here until the host's settings are mended. {held.fault}"
    return "The gallery of this host is read-only." if held.read_only_gallery else ""


def may_upload() -> str:
    """Why this host takes no file of any kind, in one sentence; empty if it takes some."""
    held = policy.current()
    return "This host takes no files." if held.read_only_gallery and not held.classes.mode else ""


def person() -> str:
    """Who looks at the page, as far as that can be told: a name that says nothing about them."""
    account = signed_in_as()
    if account:
        return _named("account", account)
    member = membership.class_member()
    if member:
        return _named("class", *member)
    return _named("browser", _browser() or memory.visitor())


def place() -> str:
    """Where who looks at the page asks from, for taking turns: a name that says nothing about them.

    Who has signed in, or was let into a class, is known to be somebody and takes turns as such; all others at one
    network address take the turns of one.
    """
    if signed_in_as() or membership.class_member():
        return person()
    return _named("address", _address())


def source() -> limits.Source:
    """Where who looks at the page comes from: for counting what is tried or made, never for charging anybody."""
    return limits.source(_browser(), _address())


def signed_in_as() -> str:
    """The account that is signed in, as its provider names it; empty if none is."""
    return _account(_user())


def _account(user: Mapping[str, object]) -> str:
    if user.get("is_logged_in") is not True or not user.get("sub"):
        return ""
    return f"{user.get('iss', '')} {user['sub']}"


def can_sign_in() -> bool:
    """Whether this host has a login; Streamlit then knows of every visitor whether they are signed in."""
    return "is_logged_in" in _user()


def frame() -> None:
    """Draw what every page begins with: the host's banner, what is wrong with its settings, and its login."""
    held = policy.current()
    if held.fault:
        st.error(plain(f"Nothing can be run here until the host's settings are mended. {held.fault}"))
    if held.banner:
        with st.container(border=True, key="banner"):
            st.text(as_lines(held.banner))
    if held.who_may_run == "signed_in" and can_sign_in():
        _login()


def _login() -> None:
    with st.container(horizontal=True, horizontal_alignment="right"):
        if signed_in_as():
            st.button("Sign out", key="sign_out", on_click=st.logout, type="tertiary", icon=":material/logout:")
        else:
            st.button("Sign in to run", key="sign_in", on_click=st.login, type="tertiary", icon=":material/login:")


def _require(*wanted: Asked) -> Policy:
    """The policy, if it lets this visitor ask all questions, or anything without one; else raises NotAllowed."""
    held = policy.current()
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


def _require_own(asked: Asked) -> None:
    """Let a training of one's own be asked only where it is offered, and as its file is now; else raises NotAllowed."""
    if not asked.point.training:
        return
    if not on_own_machine():
        raise NotAllowed("A training of one's own is only run for whoever sits at the machine that it lies on.")
    if reason := own_files.state_of(asked.point):
        raise NotAllowed(f"{reason} It can only be run as it is there now.")


def _is_loopback(name: str) -> bool:
    """Whether an address is this machine's own; a server that listens on both kinds has IPv4 ones within IPv6."""
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
    """What Streamlit gave this browser to tell it from others: the same in all its tabs; empty if it has none."""
    from streamlit.web.server.starlette import starlette_app_utils  # not for public use, so asked for when needed

    cookie = st.context.cookies.get(_COOKIE, "")
    token, _ = starlette_app_utils.decode_xsrf_token_string(cookie) if cookie else (None, None)
    return token.hex() if token else ""


def _address() -> str:
    """The network address that the page is asked from; empty on one's own machine, and where there is no browser."""
    address = st.context.ip_address
    return address if isinstance(address, str) else ""


def _named(kind: str, *parts: str) -> str:
    text = "\n".join((_salt(reads.queue().folder), *parts))
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _salt(folder: Path) -> str:
    """A secret of this host, so that no name can be guessed from an account; raises JobError if it cannot be kept."""
    path = folder / "salt"
    try:
        return _kept(path) or _made(path)
    except OSError as error:
        raise JobError(unwritable(f"The folder of jobs {folder}", error)) from error


def _kept(path: Path) -> str:
    """The secret that is there; empty where there is none. A damaged one is put aside, and names begin anew."""
    try:
        kept = documents.read_text(path, most_bytes=_SALT_LENGTH)
        if kept is None and not path.is_symlink():
            return ""
        if kept is None or not _SALT.fullmatch(kept):
            raise DamagedFile(path.name, "it is none of ours")
        return kept
    except DamagedFile as error:
        _log.warning("People are named anew: %s", error)
        path.replace(path.with_suffix(".damaged"))
        return ""


def _made(path: Path) -> str:
    """A new secret, or that of another visitor who was quicker."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")  # swept as such if we are killed
    draft.touch(mode=0o600)
    try:
        draft.write_text(secrets.token_hex(_SALT_LENGTH // 2), encoding="ascii")
        with contextlib.suppress(FileExistsError):  # only one of several first visitors makes it
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return path.read_text(encoding="ascii")
