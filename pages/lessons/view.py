"""The five lessons: their questions, pictures, settings, tasks and results.

Before the prediction a picture hides the answer, afterwards it shows all. No picture is a measurement of this module;
a simulated one is labelled.

The lessons: the measurements and results of each, and the functions that draw a lesson.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from core.answer.export import sections
from core.answer.lessons import outcomes
from core.answer.lessons import timeline as timelines
from core.answer.lessons.outcomes import PredictionOutcome, Section
from core.answer.lessons.timeline import Timeline, trace_section, untimed_section
from core.jobs.machine import Machine
from core.question import catalog
from core.question.demonstrations import Demonstration
from core.question.describe import describe_question
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import short_label
from core.question.presets import PRESETS
from core.results.exhibits import Exhibit, Moving
from core.results.schema import Trial
from core.text import as_lines
from pages.shared import layout, learning, links, session
from pages.shared.elements import draw_timeline, plain, show_errors
from pages.shared.layout import Sides
from pages.shared.learning import Expectation, Pair, Task, TaskAnswers, TaskResults

UNTIMED = (
    "A published benchmark stopped its clock in this way, too: "
    "[mmarkakis/pytorch-cpu-gpu-benchmarking](https://github.com/mmarkakis/pytorch-cpu-gpu-benchmarking) "
    "(MIT licence). Its figures are below."
)

MOVES = """t, m = torch.ones(3), nn.Linear(2, 1)
t.to(device)
m.to(device)
print(t.device, m.weight.device)"""

SUMS = ("(0.1 + 0.2) + 0.3", "0.1 + (0.2 + 0.3)")


def find_clock_trace(found: TaskResults) -> Timeline:
    """Return the trace of an asynchronous device here, else of a recorded one, else a simulated trace."""
    here = (timelines.trace_clock(shown) for shown in found.shown)
    recorded = (timelines.trace_clock(shown, learning.describe_recording(shown)) for shown in found.recorded)
    return next(filter(None, (*here, *recorded)), timelines.simulate_clock())


def draw_clock_scene(found: TaskResults, covered: bool) -> None:
    """Draw the work of host and device, and the times at which each clock is read."""
    draw_timeline(find_clock_trace(found), key="trace", covered=covered)
    if not covered:
        st.markdown(UNTIMED)


def draw_moving_scene(found: TaskResults, covered: bool) -> None:
    """Draw the code of the question, and the error message of PyTorch if two devices meet."""
    if not covered:
        return
    st.markdown("**The lines in question.** Their output is covered until you predict.")
    st.code(MOVES, language="python")
    contents = [shown.content for shown in found.exhibits if isinstance(shown.content, Moving)]
    failed = next((snippet for content in contents for snippet in content.snippets if snippet.error), None)
    if failed:
        st.markdown(f"**{plain(failed.title)}**: PyTorch's message.")
        st.code(as_lines(failed.code), language="python", wrap_lines=True)
        st.code(as_lines(failed.error), language=None, wrap_lines=True)


def draw_loader_scene(found: TaskResults, covered: bool) -> None:
    """Draw an epoch in which loader and network take turns, at a made-up rate."""
    if covered:
        draw_timeline(timelines.simulate_loader(), key="loader_scene", covered=True)


def draw_rounding_scene(found: TaskResults, covered: bool) -> None:
    """Draw the sum of three numbers in two orders."""
    if not covered:
        return
    st.markdown("**The same three numbers, added in two orders by this computer:**")
    st.code(
        "\n".join(f"{each} = {value!r}" for each, value in zip(SUMS, add_in_two_orders(), strict=True)), language=None
    )
    st.markdown("Two devices add millions of numbers in different orders. What does that do over a whole training?")


def add_in_two_orders() -> tuple[float, float]:
    """Return 0.1 + 0.2 + 0.3, added from the left and from the right."""
    numbers = (0.1, 0.2, 0.3)
    return (numbers[0] + numbers[1]) + numbers[2], numbers[0] + (numbers[1] + numbers[2])


def draw_launches_scene(found: TaskResults, covered: bool) -> None:
    """Draw a step of a small batch, operation by operation, and a covered step of a large batch."""
    if covered:
        draw_timeline(timelines.simulate_launches(), key="launches_scene", covered=True)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Settings of a lesson: its devices, baseline first, and its own settings; the margin is a share of items."""

    contenders: tuple[Contender, ...]
    machine: Machine
    data: str = ""
    seeds: int = 0
    margin: float = 0.0

    @property
    def names(self) -> tuple[str, str]:
        return str(self.contenders[0]), str(self.contenders[-1])

    @property
    def alone(self) -> bool:
        return all(contender.on_host for contender in self.contenders)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One lesson.

    Attributes:
        without: note on the difference that an accelerator would make, if there is none.
        why: explanation of the answer, in one or two sentences.
        build: makes the sections of the result, with their charts.
        settings: draws the settings of the lesson and its training; may raise CrossoverError.
        recorded: kinds of exhibits that may be replayed.
        shows: draws a picture of the question; its second argument says whether the answer is covered.
        judge: compares rows or exhibits with the answers; returns None without a result.
        pair: returns the contenders that it compares.
    """

    intro: str
    question: Expectation
    without: str
    task: Callable[[Choice], Task]
    build: Callable[[Choice, TaskResults], Sequence[Section]]
    why: str
    takeaway: str
    judge: Callable[[Choice, Sequence[Trial], Sequence[Exhibit], Pair], PredictionOutcome | None]
    pair: Callable[[Choice], Pair] = lambda choice: choice.names
    settings: Callable[[Choice], Choice] = lambda choice: choice
    recorded: tuple[str, ...] = ()
    shows: Callable[[TaskResults, bool], None] = lambda found, covered: None

    @property
    def title(self) -> str:
        return links.LESSON_TITLES[self.question.name]


def draw_lesson(lesson: Lesson, machine: Machine | None, places: Sides) -> None:
    """Draw a lesson: topic, prediction and settings on the left, results on the right."""
    with places.settings:
        st.markdown(f"## {plain(lesson.title)}")
        st.markdown(plain(lesson.intro))
        said = learning.ask_expectation(lesson.question)
        st.markdown("### 2 · Run")
        run = _draw_lesson_task(lesson, machine, places)
    known, running = run[2:] if run else (None, False)
    with places.answer:
        ran = bool(known and (known.rows or known.exhibits))
        found = _collect_lesson_results(lesson, *run[:3]) if run else TaskResults()
        seen = learning.can_see_outcome(
            lesson.question, has_expectation=said, ran=ran, running=running, show=lambda: lesson.shows(found, True)
        )
        if seen and run:
            layout.draw_isolated(_draw_lesson_outcome, lesson, run[0], found)


def _collect_lesson_results(lesson: Lesson, choice: Choice, task: Task, answers: TaskAnswers) -> TaskResults:
    points = [asked.point for asked in task if isinstance(asked, Experiment)]
    return learning.collect_results(answers, points, choice.machine, [(kind, "") for kind in lesson.recorded])


def _draw_lesson_task(
    lesson: Lesson, machine: Machine | None, places: Sides
) -> tuple[Choice, Task, TaskAnswers, bool] | None:
    """Draw the run settings; return them, their questions, the known answers and whether a measurement runs."""
    chosen = learning.choose_learning_devices(machine)
    if machine is None:
        with places.ask:
            learning.draw_waiting_button()
        return None
    if not chosen:
        st.warning("Choose a device.")
        return None
    with show_errors():
        choice = lesson.settings(Choice(contenders=tuple(map(Contender.parse, chosen)), machine=machine))
        task = lesson.task(choice)
        known = learning.find_answers(task, machine)
        with places.ask:
            running = learning.draw_task_button(task, known, places.answer)
        return choice, task, known, running
    return None


def _draw_lesson_outcome(lesson: Lesson, choice: Choice, found: TaskResults) -> None:
    if not found.trials and not found.exhibits:
        st.markdown("## 3 · See")
        st.markdown("No results yet. Press Run to see them here.")
        lesson.shows(found, False)
        return
    key = (lesson.question.name, *choice.names, choice.data, str(choice.margin), found.key)
    keep = Section(title="Remember", sentences=(lesson.takeaway,))
    built = learning.build_sections(key, lambda: [*lesson.build(choice, found), keep])
    outcome = found.find_outcome(partial(lesson.judge, choice), lesson.pair(choice))
    learning.draw_sections(
        built,
        lesson.question,
        outcome,
        why=lesson.why,
        note=lesson.without if choice.alone else "",
        show=lambda: lesson.shows(found, False),
    )
    learning.draw_report(f"Lesson: {lesson.title}", lesson.question, built, found, outcome)


CLOCKS = ("ours", "no_drain", "no_warm_up", "loader_inside", "item_every_step", "one_repeat")
CLOCK_POINT = Point(dataset="digits", model="mlp", hidden_size=4_096, depth=2, batch_size=256, epochs=2)
"""Steps whose computation on an accelerator takes longer than queueing them: only then can a clock miss time."""

HOST_CLOCK_POINT = Point(dataset="digits", model="mlp", hidden_size=256, depth=2, batch_size=64, epochs=5)
"""Steps without an accelerator: nothing is queued, and small steps show the cost of a loader best."""

WAYS = (("tutorial", 0), ("tutorial", 1), ("tutorial", 2), ("tutorial", 4), ("loader", 0), ("per_batch", 0))
"""Data path and number of workers of each variant; all are compared with data preloaded on the device."""

LOADER_DATA = ("digits", "mnist", "fashion-mnist")
PART_S = 20.0
"""Time limit for one training of a lesson, in seconds."""

SAME_POINT = Point(dataset="digits", model="mlp", hidden_size=128, depth=2, batch_size=64, epochs=20)

BATCHES = (32, 8_192)
SMALL_POINT = Point(dataset="signal", samples=16_384, model="mlp", hidden_size=128, depth=2, epochs=2)


def make_clock_point(choice: Choice) -> Point:
    return HOST_CLOCK_POINT if choice.alone else CLOCK_POINT


def _choose_clock(choice: Choice) -> Choice:
    st.caption(plain(describe_question(make_clock_point(choice))))
    return choice


def _make_clock_task(choice: Choice) -> Task:
    ends = tuple(dict.fromkeys((choice.contenders[0], choice.contenders[-1])))
    asked = Demonstration(kind="clock", point=make_clock_point(choice), contenders=ends, budget_s=60.0, recipes=CLOCKS)
    return (asked,)


def _make_moving_task(choice: Choice) -> Task:
    others = [contender for contender in choice.contenders if not contender.on_host]
    return (Demonstration(kind="moving", contenders=tuple(others[:1]) or (Contender(),)),)


def _make_exhibit_sections(
    make: Callable[..., Section],
) -> Callable[[Choice, TaskResults], list[Section]]:
    """Return a function that makes a section of each demo result, starting with this machine."""

    def pieces(_: Choice, found: TaskResults) -> list[Section]:
        recorded = [make(shown, note=learning.describe_recording(shown)) for shown in found.recorded]
        return [*map(make, found.shown), *learning.mark_recorded(recorded)]

    return pieces


def _make_clock_sections(choice: Choice, found: TaskResults) -> list[Section]:
    """Return the sections of the clocks, with a trace of the times at which each was read."""
    trace = trace_section(find_clock_trace(found))
    return [trace, *_make_exhibit_sections(sections.clock_section)(choice, found), untimed_section()]


def make_loader_points(data: str) -> list[Point]:
    """Return the same training once for each way to deliver its data."""
    tutorial = PRESETS["mnist-linear"].point_at_scale("class")
    samples = min(tutorial.samples, catalog.dataset(data).default_samples)
    base = dataclasses.replace(tutorial, dataset=data, samples=samples)
    ways = (*WAYS, ("resident", 0))
    return [dataclasses.replace(base, data_path=path, loader_workers=workers) for path, workers in ways]


def _choose_loader(choice: Choice) -> Choice:
    names = list(LOADER_DATA)
    bound = session.bind_choice("data", names, names[0], partial(short_label, "dataset"))
    data = st.segmented_control("Data", names, required=True, **bound) or names[0]
    st.caption(plain(catalog.dataset(data).summary))
    st.caption(plain(describe_question(make_loader_points(data)[0])))
    return dataclasses.replace(choice, data=data)


def _make_loader_task(choice: Choice) -> Task:
    return _make_comparisons(make_loader_points(choice.data), choice.contenders)


def _make_loader_sections(choice: Choice, results: TaskResults) -> list[Section]:
    recorded = sections.loader_sections(
        results.recorded_rows, note=learning.describe_recording(None, results.recorded_rows)
    )
    return [*sections.loader_sections(results.rows), *learning.mark_recorded(recorded)]


def pick_learners(choice: Choice) -> tuple[Contender, ...]:
    """Return the first and last contender; if both are the CPU, two thread counts, which sum in different orders."""
    if choice.alone:
        return Contender(threads=1), Contender(threads=max(2, choice.machine.environment.cores_usable))
    return choice.contenders[0], choice.contenders[-1]


def name_learners(choice: Choice) -> Pair:
    one, other = pick_learners(choice)
    return str(one), str(other)


def _choose_learning(choice: Choice) -> Choice:
    """Draw the choice of seeds and margin; the margin is locked once there are results."""
    seeds = st.segmented_control("Seeds", list(links.SEEDS), default=5, required=True, **session.bind_control("seeds"))
    choice = dataclasses.replace(choice, seeds=seeds or 5)
    st.caption(plain(describe_question(SAME_POINT)))
    locked, bound = (
        bool(learning.find_answers(_make_learning_task(choice), choice.machine).rows),
        session.bind_control("margin"),
    )
    margin = st.segmented_control(
        "Margin in percentage points: a smaller difference does not matter",
        list(links.MARGINS),
        default=0.5,
        required=True,
        help="Fixed before the run; a margin that is chosen to fit the results proves nothing.",
        **{**bound, "disabled": locked or bound["disabled"]},
    )
    return dataclasses.replace(choice, margin=float(margin or 0.5) / 100)


def _make_learning_task(choice: Choice) -> Task:
    pair = pick_learners(choice)
    first = Demonstration(kind="first_step", point=SAME_POINT, contenders=pair, budget_s=PART_S)
    points = (dataclasses.replace(SAME_POINT, seed=seed) for seed in range(choice.seeds))
    return (first, *_make_comparisons(points, pair))


def _make_learning_sections(choice: Choice, results: TaskResults) -> list[Section]:
    baseline, challenger = name_learners(choice)
    here = _make_exhibit_sections(sections.first_step_section)(choice, results)
    if results.rows:
        here += sections.equivalence_sections(
            results.rows, baseline=baseline, challenger=challenger, margin=choice.margin
        )
    if results.recorded_rows:
        rows, margin = results.recorded_rows, choice.margin
        ends, note = (rows[0].contender, rows[-1].contender), learning.describe_recording(None, rows)
        here += learning.mark_recorded(
            sections.equivalence_sections(rows, baseline=ends[0], challenger=ends[1], margin=margin, note=note)
        )
    return here


def _choose_batches(choice: Choice) -> Choice:
    batches = " and ".join(f"{batch:,}" for batch in BATCHES)
    st.caption(plain(f"{describe_question(SMALL_POINT, without=['batch_size'])} · batch {batches}"))
    return choice


def _make_small_task(choice: Choice) -> Task:
    return _make_comparisons(
        (dataclasses.replace(SMALL_POINT, batch_size=batch) for batch in BATCHES), choice.contenders
    )


def _make_small_sections(choice: Choice, results: TaskResults) -> list[Section]:
    here = sections.batch_size_sections(results.rows) if results.rows else ()
    recorded = sections.batch_size_sections(
        results.recorded_rows, learning.describe_recording(None, results.recorded_rows)
    )
    return [*here, *(learning.mark_recorded(recorded) if results.recorded_rows else ())]


def _make_comparisons(points: Iterable[Point], contenders: Sequence[Contender]) -> Task:
    """Return a comparison of the contenders at every point, each with the time limit of a lesson's training."""
    return tuple(Experiment(point=point, contenders=tuple(contenders), budget_s=PART_S) for point in points)


LESSONS: dict[str, Lesson] = {
    "clock": Lesson(
        intro="A GPU works through queued operations while the program runs ahead. A clock on the CPU can therefore "
        "stop before the work is done. Here one training is timed correctly, then with one shortcut at a time.",
        question=Expectation(
            name="clock",
            text="Somebody stops the clock without waiting for the GPU. What does the clock show?",
            options=("too little", "the right time", "too much", "it depends on the size of the model"),
            after="Which shortcut would have changed your verdict on the two devices, and why?",
        ),
        without="A CPU has no queue, so its clock is right even without waiting. With a GPU, watch that line.",
        settings=_choose_clock,
        task=_make_clock_task,
        build=_make_clock_sections,
        judge=lambda choice, rows, shown, pair: outcomes.clock_outcome(shown),
        why="A GPU works through a queue. Without waiting, the clock measures how long the host takes to fill the "
        "queue, not how long the GPU takes to compute.",
        shows=draw_clock_scene,
        takeaway="Wait for the device before both readings, warm up first, and repeat: a single number does not show "
        "how much the next one would differ. The loader and .item() do not make the clock wrong; they make it "
        "measure something else.",
        recorded=("clock",),
    ),
    "moving": Lesson(
        intro="Tensors live on a device, and so do the parameters of a network. An operation needs all its tensors "
        "on one device. The code below runs here, and PyTorch's messages are shown word for word.",
        question=Expectation(
            name="moving",
            text="You write t.to(device) for a tensor t and m.to(device) for a module m, and keep neither result. "
            "What has moved?",
            options=("the tensor", "the module's parameters", "both", "neither"),
            after="How would you write a training so that the same lines run with and without a GPU?",
        ),
        without="Without an accelerator, this lesson uses PyTorch's meta device, whose tensors have a device but no "
        "data. It shows the same placement rules. With a GPU, the GPU's name and messages appear here.",
        task=_make_moving_task,
        build=_make_exhibit_sections(sections.moving_section),
        judge=lambda choice, rows, shown, pair: outcomes.moving_outcome(shown),
        why="A tensor is a value: .to() returns a new one. A module holds its parameters and replaces them in place.",
        shows=draw_moving_scene,
        takeaway="Choose the device once, in one place, and send the network and every batch there. Where the "
        "numbers are needed on the CPU, .item() or .cpu() copies them, with or without a GPU.",
        recorded=("moving",),
    ),
    "loader": Lesson(
        intro="Before a network can learn from a batch, the loader must make it. Usually it reads and transforms "
        "samples one by one. Here the same training gets its data in seven ways.",
        question=Expectation(
            name="loader",
            text="One layer, samples read and transformed one by one: how much of an epoch does the loader take?",
            options=("less than 10 %", "10 to 50 %", "50 to 90 %", "more than 90 %"),
            after="Somebody buys a GPU ten times as fast. How does their epoch time change? What would you advise?",
        ),
        without="The loader works on the CPU either way, so its share can be seen without a GPU; the largest "
        "possible gain of a GPU follows from it.",
        settings=_choose_loader,
        task=_make_loader_task,
        build=_make_loader_sections,
        judge=lambda choice, rows, shown, pair: outcomes.loader_outcome(rows),
        why="Reading and transforming samples one by one runs in Python on the CPU. A small network needs less time "
        "than that for its arithmetic, on any device.",
        shows=draw_loader_scene,
        takeaway="A faster device cannot speed up work that it does not do. First bring the data close to the device, "
        "then measure the device.",
    ),
    "learning": Lesson(
        intro="Two devices add the same numbers in different orders, so they round differently. Does that change "
        "what is learned? Four comparisons answer: one step, whole loss curves, single predictions, and a verdict.",
        question=Expectation(
            name="learning",
            text="Same weights, same batches, two devices: will the trained networks give the same answers?",
            options=(
                "yes, on every test item",
                "on all but a few, with the same accuracy",
                "no, one of them is better",
                "it depends on the seed",
            ),
            after="Why is “no difference was seen” not the same as “there is no difference”?",
        ),
        without="One thread and several threads also add in different orders, so they serve as the two devices here. A "
        "GPU would differ a little more, for the same reason.",
        settings=_choose_learning,
        task=_make_learning_task,
        build=_make_learning_sections,
        judge=lambda choice, rows, shown, pair: outcomes.learning_outcome(rows, pair, choice.margin),
        pair=name_learners,
        why="Floating-point addition depends on the order, and every device adds in a different order. Training "
        "carries these small differences forward, but they rarely favour one device.",
        shows=draw_rounding_scene,
        takeaway="Rounding differs, and training carries it forward. Whether that matters depends on a margin, fixed "
        "in advance, and on several seeds.",
        recorded=("first_step",),
    ),
    "small": Lesson(
        intro="The CPU launches every operation of a step, one after another, however little there is to compute. "
        "Here one small model is trained with a small and a large batch.",
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
            after="What makes a GPU pay off for a small model, and what does it cost?",
        ),
        without="A CPU pays for every operation too, but much less than a launch on a GPU costs. With a GPU, a "
        "step of the small batch would take nearly as long as one of the large batch.",
        settings=_choose_batches,
        task=_make_small_task,
        build=_make_small_sections,
        judge=lambda choice, rows, shown, pair: outcomes.batch_size_outcome(rows),
        why="A step of a small batch consists mostly of launches, whose cost does not depend on the batch. Only the "
        "arithmetic grows with it.",
        shows=draw_launches_scene,
        takeaway="Launching an operation costs the same however little it computes. Larger batches and wider "
        "layers spread that cost; they are not free: a larger batch takes fewer steps per epoch and "
        "learns differently.",
    ),
}
