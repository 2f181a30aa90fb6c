"""The five lessons: a question, something to run, and what it shows.

Each says what it asks of the measuring process and how its pieces are made; how all of them are drawn is in
`learning_frame`. Numbers come from rows and exhibits alone.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from core.answer.export import exhibit_sections, sections
from core.answer.lesson.handout import Section
from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question import catalog, describe
from core.question.demonstration import Demonstration
from core.question.experiment import Contender, Experiment, Point
from core.question.presets import PRESETS
from core.results.exhibit import Exhibit
from core.results.schema import Trial
from pages.shared.draw.text import plain
from pages.shared.frame import apart
from pages.shared.learning import frame, tasks
from pages.shared.learning.frame import Expectation
from pages.shared.learning.tasks import Known, Task
from pages.shared.link import memory, state

CLOCKS = ("ours", "no_drain", "no_warm_up", "loader_inside", "item_every_step", "one_repeat")
CLOCK_POINT = Point(dataset="digits", model="mlp", hidden_size=4_096, depth=2, batch_size=256, epochs=2)
"""Steps that keep an accelerator busy for longer than it takes to queue them: only then there is something to miss."""

HOST_CLOCK_POINT = Point(dataset="digits", model="mlp", hidden_size=256, depth=2, batch_size=64, epochs=5)
"""Without an accelerator nothing is queued, and small steps show best what a loader costs."""

WAYS = (("tutorial", 0), ("tutorial", 1), ("tutorial", 2), ("tutorial", 4), ("loader", 0), ("per_batch", 0))
"""Data path and workers, beside data that live on the device."""

LOADER_DATA = ("digits", "mnist", "fashion-mnist")
PART_S = 20.0
"""Seconds that one training of a lesson may take."""

SEEDS = (2, 5, 10)
MARGINS = (0.25, 0.5, 1.0, 2.0)
"""Percentage points."""

SAME_POINT = Point(dataset="digits", model="mlp", hidden_size=128, depth=2, batch_size=64, epochs=20)

BATCHES = (32, 8_192)
SMALL_POINT = Point(dataset="signal", samples=16_384, model="mlp", hidden_size=128, depth=2, epochs=2)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a lesson is given: the devices, and its own settings.

    Attributes:
        contenders: the baseline first.
        machine: this machine.
        data: data set of the lesson on the loader.
        seeds: of the lesson on learning.
        margin: the same, as a share of the test items.
    """

    contenders: tuple[Contender, ...]
    machine: Machine
    data: str = LOADER_DATA[0]
    seeds: int = 5
    margin: float = 0.005

    @property
    def names(self) -> tuple[str, str]:
        """First and last contender as asked for."""
        return str(self.contenders[0]), str(self.contenders[-1])

    @property
    def alone(self) -> bool:
        """Whether no accelerator takes part."""
        return all(contender.on_host for contender in self.contenders)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a lesson has to show.

    Attributes:
        rows: measured here.
        shown: exhibits of this machine.
        recorded_rows: of another machine, with an accelerator.
        recorded: exhibits of another machine, with an accelerator.
    """

    rows: tuple[Trial, ...] = ()
    shown: tuple[Exhibit, ...] = ()
    recorded_rows: tuple[Trial, ...] = ()
    recorded: tuple[Exhibit, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One lesson.

    Attributes:
        title: for its choice.
        intro: what it is about, before the question.
        question: asked before and after.
        without: what an accelerator would add, where there is none.
        task: what is asked of the measuring process.
        build: makes what is shown.
        takeaway: what to keep in mind.
        recorded: kinds of exhibits that may be replayed.
    """

    title: str
    intro: str
    question: Expectation
    without: str
    task: Callable[[Choice], Task]
    build: Callable[[Choice, Found], Sequence[Section]]
    takeaway: str
    recorded: tuple[str, ...] = ()


def _clock_task(choice: Choice) -> Task:
    ends = tuple(dict.fromkeys((choice.contenders[0], choice.contenders[-1])))
    asked = Demonstration(kind="clock", point=clock_point(choice), contenders=ends, budget_s=60.0, recipes=CLOCKS)
    return Task(asked=(asked,))


def clock_point(choice: Choice) -> Point:
    """The training of the lesson on the clock."""
    return HOST_CLOCK_POINT if choice.alone else CLOCK_POINT


def _clock(choice: Choice, found: Found) -> list[Section]:
    here = [exhibit_sections.clock(shown) for shown in found.shown]
    return [*here, *(_again(exhibit_sections.clock, shown) for shown in found.recorded)]


def _moving_task(choice: Choice) -> Task:
    others = [contender for contender in choice.contenders if not contender.on_host]
    return Task(asked=(Demonstration(kind="moving", contenders=tuple(others[:1]) or (Contender(),)),))


def _moving(choice: Choice, found: Found) -> list[Section]:
    here = [exhibit_sections.moving(shown) for shown in found.shown]
    return [*here, *(_again(exhibit_sections.moving, shown) for shown in found.recorded)]


def _again(make: Callable[..., Section], shown: Exhibit) -> Section:
    """A piece of a recorded exhibit, which says so in its heading and in its first sentence."""
    made = make(shown, note=frame.recorded_note(shown))
    return dataclasses.replace(made, title=f"Recorded: {made.title}")


def loader_points(data: str) -> list[Point]:
    """The same training with its data delivered in every way."""
    tutorial = PRESETS["mnist-linear"].at("class")
    samples = min(tutorial.samples, catalog.dataset(data).default_samples)
    base = dataclasses.replace(tutorial, dataset=data, samples=samples)
    ways = (*WAYS, ("resident", 0))
    return [dataclasses.replace(base, data_path=path, loader_workers=workers) for path, workers in ways]


def _loader_task(choice: Choice) -> Task:
    points = loader_points(choice.data)
    return Task(asked=tuple(_experiment(point, choice.contenders) for point in points))


def _loader(choice: Choice, found: Found) -> list[Section]:
    recorded = sections.loader(found.recorded_rows, note=frame.recorded_note(None, found.recorded_rows))
    return [*sections.loader(found.rows), *_marked(recorded)]


def learners(choice: Choice) -> tuple[Contender, ...]:
    """First and last contender; two numbers of threads, which sum in two orders, where both are the CPU."""
    if choice.alone:
        return Contender(threads=1), Contender(threads=max(2, choice.machine.environment.cores_usable))
    return choice.contenders[0], choice.contenders[-1]


def _same_task(choice: Choice) -> Task:
    pair = learners(choice)
    first = Demonstration(kind="first_step", point=SAME_POINT, contenders=pair, budget_s=PART_S)
    points = (dataclasses.replace(SAME_POINT, seed=seed) for seed in range(choice.seeds))
    return Task(asked=(first, *(_experiment(point, pair) for point in points)))


def _same(choice: Choice, found: Found) -> list[Section]:
    baseline, challenger = map(str, learners(choice))
    here = [exhibit_sections.first_step(shown) for shown in found.shown]
    here += [_again(exhibit_sections.first_step, shown) for shown in found.recorded]
    if found.rows:
        here += sections.same(found.rows, baseline=baseline, challenger=challenger, margin=choice.margin)
    if found.recorded_rows:
        ends = (found.recorded_rows[0].contender, found.recorded_rows[-1].contender)
        note = frame.recorded_note(None, found.recorded_rows)
        rows, margin = found.recorded_rows, choice.margin
        here += _marked(sections.same(rows, baseline=ends[0], challenger=ends[1], margin=margin, note=note))
    return here


def _small_task(choice: Choice) -> Task:
    points = (dataclasses.replace(SMALL_POINT, batch_size=batch) for batch in BATCHES)
    return Task(asked=tuple(_experiment(point, choice.contenders) for point in points))


def _small(choice: Choice, found: Found) -> list[Section]:
    recorded = sections.small(found.recorded_rows, frame.recorded_note(None, found.recorded_rows))
    here = sections.small(found.rows) if found.rows else ()
    return [*here, *(_marked(recorded) if found.recorded_rows else ())]


def _marked(made: Sequence[Section]) -> list[Section]:
    return [dataclasses.replace(section, title=f"Recorded: {section.title}") for section in made]


def _experiment(point: Point, contenders: Sequence[Contender]) -> Experiment:
    return Experiment(point=point, contenders=tuple(contenders), budget_s=PART_S)


LESSONS: dict[str, Lesson] = {
    "clock": Lesson(
        title="The clock",
        intro="A GPU is given work and goes on alone, while the program that gave it runs ahead. So a clock on the "
        "CPU can stop before the work is done. Here one training is timed properly, and then with one "
        "shortcut at a time.",
        question=Expectation(
            name="clock",
            text="Somebody stops the clock without waiting for the GPU. What does the clock say?",
            options=("too little", "the right time", "too much", "it depends on the size of the model"),
            after="Which shortcut would have changed your verdict on the two devices, and why?",
        ),
        without="A CPU has no queue: without a drain its clock is still right. On a GPU, that line is the one to see.",
        task=_clock_task,
        build=_clock,
        takeaway="Wait for the device before both readings, warm up first, and repeat: a single number does not "
        "say how far the next one would be from it. The loader and .item() do not make the clock wrong, "
        "they make it measure something else.",
        recorded=("clock",),
    ),
    "moving": Lesson(
        title="Moving things",
        intro="Tensors live on a device, and so do the parameters of a network. Two tensors can only meet in one "
        "place. The code below is run here, and what PyTorch says is shown word for word.",
        question=Expectation(
            name="moving",
            text="You write t.to(device) for a tensor t and m.to(device) for a module m, and keep neither result. "
            "What has moved?",
            options=("the tensor", "the module's parameters", "both", "neither"),
            after="How would you write a training so that the same lines run with and without a GPU?",
        ),
        without="Where there is no accelerator, PyTorch's meta device stands for one: it has a place but no numbers, "
        "so that moving and meeting can be shown. With a GPU, its own name and messages would be here.",
        task=_moving_task,
        build=_moving,
        takeaway="Choose the device once, in one place, and send the network and every batch there. Where the "
        "numbers are wanted on the CPU, .item() or .cpu() brings them back, with or without a GPU.",
        recorded=("moving",),
    ),
    "loader": Lesson(
        title="The loader",
        intro="Before a network can learn from a batch, somebody has to make the batch. The usual way reads samples "
        "one by one and transforms each of them. Here the same training gets its data in seven ways.",
        question=Expectation(
            name="loader",
            text="One layer, samples read and transformed one by one: how much of an epoch does the loader take?",
            options=("less than 10 %", "10 to 50 %", "50 to 90 %", "more than 90 %"),
            after="Somebody buys a GPU that is ten times as fast. What becomes of their epoch? What would you advise?",
        ),
        without="The loader works on the CPU either way, so its share can be seen without a GPU; what a GPU could gain "
        "at most follows from it.",
        task=_loader_task,
        build=_loader,
        takeaway="A faster device cannot speed up what it does not do. First bring the data close to the device, "
        "then measure the device.",
    ),
    "learning": Lesson(
        title="Same learning?",
        intro="Two devices add up the same numbers in another order, so they round differently. Does it matter for "
        "what is learned? We climb a ladder: one step, whole loss curves, single answers, and a verdict.",
        question=Expectation(
            name="learning",
            text="Same weights, same batches, two devices: will the trained networks answer alike?",
            options=(
                "yes, on every test item",
                "on all but a few, with the same accuracy",
                "no, one of them is better",
                "it depends on the seed",
            ),
            after="Why is “no difference was seen” not the same as “there is no difference”?",
        ),
        without="One thread and several add in different orders too. That stands for a second device here; a GPU "
        "would differ a little more, for the same reason.",
        task=_same_task,
        build=_same,
        takeaway="Rounding differs, and a training carries it on. Whether that matters is a question about a "
        "margin, fixed before looking, and about several seeds.",
        recorded=("first_step",),
    ),
    "small": Lesson(
        title="Why small models lose",
        intro="Every operation of a step is launched by the CPU, one after the other, however little there is to "
        "compute. Here one small model is trained with a small and with a large batch.",
        question=Expectation(
            name="small",
            text=f"A batch of {BATCHES[1]:,} samples instead of {BATCHES[0]} has {BATCHES[1] // BATCHES[0]} times as "
            "many: how much longer does a step take on the second device?",
            options=(
                "about as long",
                "up to 10 times",
                "10 to 100 times",
                f"{BATCHES[1] // BATCHES[0]} times, as it should",
            ),
            after="What can be done to a small model so that a GPU pays off, and what does it cost?",
        ),
        without="A CPU pays for every operation too, but much less than for a launch on a GPU. With a GPU, a "
        "step of the small batch would take nearly as long as one of the large batch.",
        task=_small_task,
        build=_small,
        takeaway="Launching an operation costs the same however little it computes. Larger batches and wider "
        "layers spread that cost; they are not free, for a larger batch takes fewer steps an epoch and "
        "learns otherwise.",
    ),
}


def page_of(name: str, machine: Machine | None) -> None:
    """Draw one lesson."""
    lesson = LESSONS[name]
    st.markdown(f"## {plain(lesson.title)}")
    st.markdown(plain(lesson.intro))
    ready = frame.expect(lesson.question)
    with st.container(border=True):
        st.markdown("**2 · Run**")
        choice, asked, known = _run(name, lesson, machine)
    if ready and choice is not None and asked is not None and known is not None:
        apart.draw(_see, name, choice, asked, known)


def _see(name: str, choice: Choice, asked: Task, known: Known) -> None:
    """What the lesson shows, and the report on it."""
    lesson = LESSONS[name]
    found = _found(lesson, choice, asked, known)
    trials, shown = (*found.rows, *found.recorded_rows), (*found.shown, *found.recorded)
    if not trials and not shown:
        st.caption("Nothing was run yet. What it shows will be here.")
        return
    key = (name, *choice.names, choice.data, str(choice.margin), tasks.content_key(trials, shown))
    keep = Section(title="What to keep in mind", sentences=(lesson.takeaway,))
    built = frame.built(key, lambda: [*lesson.build(choice, found), keep])
    if choice.alone:
        st.info(plain(lesson.without), icon=":material/info:")
    frame.draw(built, memory.expected(lesson.question.name))
    frame.report(f"Lesson: {lesson.title}", lesson.question, built, trials, shown)


def _run(name: str, lesson: Lesson, machine: Machine | None) -> tuple[Choice | None, Task | None, Known | None]:
    """Draw the settings and the button; what they ask, and what is known of it."""
    chosen = frame.devices(machine)
    if machine is None:
        return None, None, None
    if not chosen:
        st.warning("Choose a device.")
        return None, None, None
    try:
        choice = _choice(name, tuple(map(Contender.parse, chosen)), machine)
        asked = lesson.task(choice)
        known = tasks.known(asked, machine)
        if name == "learning":
            choice = dataclasses.replace(choice, margin=_margin(locked=bool(known.rows)))
    except CrossoverError as error:
        st.error(plain(str(error)))
        return None, None, None
    tasks.run_button(asked, known)
    return choice, asked, known


def _choice(name: str, contenders: tuple[Contender, ...], machine: Machine) -> Choice:
    """The settings that a lesson has of its own."""
    choice = Choice(contenders=contenders, machine=machine)
    if name == "loader":
        data = st.segmented_control(
            "Data", list(LOADER_DATA), default=LOADER_DATA[0], required=True, **state.bound("data")
        )
        st.caption(plain(catalog.dataset(data or LOADER_DATA[0]).summary))
        choice = dataclasses.replace(choice, data=data or LOADER_DATA[0])
        st.caption(plain(describe.sentence(loader_points(choice.data)[0])))
    if name == "learning":
        seeds = st.segmented_control("Seeds", list(SEEDS), default=5, required=True, **state.bound("seeds"))
        choice = dataclasses.replace(choice, seeds=seeds or 5)
        st.caption(plain(describe.sentence(SAME_POINT)))
    if name == "clock":
        st.caption(plain(describe.sentence(clock_point(choice))))
    if name == "small":
        batches = " and ".join(f"{batch:,}" for batch in BATCHES)
        st.caption(plain(f"{describe.sentence(SMALL_POINT, without=['batch_size'])} · batch {batches}"))
    return choice


def _margin(*, locked: bool) -> float:
    """The difference that would not matter; it cannot be chosen any more once there are results."""
    bound = state.bound("margin")
    chosen = st.segmented_control(
        "Margin in percentage points: a smaller difference does not matter",
        list(MARGINS),
        default=0.5,
        required=True,
        help="Fixed before the run; a margin that is chosen to fit the results proves nothing.",
        **{**bound, "disabled": locked or bound["disabled"]},
    )
    return float(chosen or 0.5) / 100


def _found(lesson: Lesson, choice: Choice, asked: Task, known: Known) -> Found:
    """What was measured here, and what was recorded elsewhere if there is no accelerator here."""
    alone = len(choice.machine.devices) == 1
    points = [of.point for of in asked.asked if isinstance(of, Experiment)]
    replays = [tasks.recorded_exhibit(kind, choice.machine) for kind in lesson.recorded] if alone else []
    return Found(
        rows=known.trials,
        shown=tuple(known.exhibits.values()),
        recorded_rows=tasks.recorded_rows(points, choice.machine) if alone else (),
        recorded=tuple(shown for shown in replays if shown),
    )
