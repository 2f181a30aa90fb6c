"""What a tutorial or a lesson shows, as pieces for page and paper: figures, tables, and the sentences between them.

Every number in a sentence comes from the rows or the exhibit that the piece is about, or is said to be published.
Nothing here measures, draws to a screen or knows a page.
"""

from collections.abc import Mapping, Sequence

from core import units
from core.answer.charts import runs, tutorials
from core.answer.lesson import bottleneck, equivalence, exhibition, launches, seed_band, tutorial
from core.answer.lesson.bottleneck import Bottleneck
from core.answer.lesson.equivalence import Equivalence
from core.answer.lesson.handout import Figure, Listing, Section, Table
from core.answer.lesson.launches import TwoBatches
from core.answer.lesson.tutorial import Origin
from core.answer.run import learned, speedup
from core.errors import CrossoverError
from core.question.fields import DATA_PATHS
from core.question.presets import Preset, Scale
from core.results.exhibit import Clock, Exhibit, FirstStep, Moving
from core.results.schema import Trial

NO_PAIR = "No run has both devices yet, so there is nothing to set side by side."


def published_only(of: Preset) -> Section:
    """What the tutorial published, where nothing was measured yet."""
    return Section(title="Published", sentences=tutorial.claims(of))


def compared(
    of: Preset, scale: Scale, rows: Sequence[Trial], *, contenders: tuple[str, str], origin: Origin, note: str = ""
) -> Section:
    """Published and measured side by side.

    Args:
        of: the tutorial.
        scale: of the rows.
        rows: of its training or sweep on one machine.
        contenders: baseline and challenger as asked for.
        origin: whether the rows are from here or recorded elsewhere.
        note: where they are from, if not from here.
    """
    title = f"Published and {origin}"
    try:
        found = tutorial.compare(of, scale, rows, baseline=contenders[0], challenger=contenders[1], origin=origin)
    except CrossoverError as error:
        return Section(title=title, sentences=(str(error),))
    if found is None:
        return Section(title=title, sentences=(*tutorial.claims(of), NO_PAIR))
    figures = [Figure(title=f"Time of one {found.per}", spec=tutorials.times(found))]
    if found.speedups:
        figures.append(Figure(title="Speedup", spec=tutorials.speedups(found)))
    sentences = (note, *found.sentences) if note else found.sentences
    return Section(
        title=title, sentences=sentences, figures=tuple(figures), tables=(found.table,), notes=found.differences
    )


def own_clock(of: Preset, shown: Exhibit, note: str = "") -> Section:
    """The tutorial's own way to time beside ours, shortcut by shortcut in words."""
    recipe = tutorial.recipe_name(of)
    section = clock(shown, title="Its own clock beside ours", only=("ours", recipe), note=note)
    lines = tuple((sentence,) for sentence in tutorial.protocol(of))
    listed = Table(title="What its clock does otherwise", header=("Shortcut",), rows=lines, prose=True)
    return Section(
        title=section.title,
        sentences=section.sentences,
        figures=section.figures,
        tables=(*section.tables, listed),
        notes=section.notes,
    )


def clock(
    shown: Exhibit,
    *,
    title: str = "The wrong number beside the right one",
    only: Sequence[str] = (),
    note: str = "",
) -> Section:
    """One training by several clocks.

    Args:
        shown: what was timed.
        title: heading.
        only: recipes that are shown; all unless given.
        note: where it is from, if not from here.
    """
    content = shown.content
    if not isinstance(content, Clock):
        return Section(title=title, sentences=("This exhibit shows no clocks.",))
    kept = tuple(variant for variant in content.variants if not only or variant.name in only)
    content = Clock(variants=kept, notes=content.notes)
    contenders = tuple(dict.fromkeys(variant.contender for variant in content.variants))
    said = [note] if note else []
    entries = exhibition.comparisons(content, contenders[-1])
    said += [f"On {contenders[-1]}: {entry.sentence}" for entry in entries]
    kinds = {entry.contender: entry.kind for entry in shown.participants}
    return Section(
        title=title,
        sentences=(*said, *_by_each_clock(content, contenders)),
        figures=(Figure(title="An epoch by each clock", spec=tutorials.clocks(content, kinds)),),
        tables=(_clock_table(content, contenders), _clock_words(content)),
        notes=content.notes,
    )


def _by_each_clock(content: Clock, contenders: Sequence[str]) -> tuple[str, ...]:
    """What each clock would have said of the second device against the first."""
    if len(contenders) < 2:
        return ()
    one, other = contenders[0], contenders[-1]
    found = exhibition.speedups(content, one, other)
    ours = found.pop("ours", None)
    titles = {variant.name: variant.title for variant in content.variants}
    if ours is None or not found:
        return ()
    low, high = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    said = f"By our clock {other} is {units.ratio(ours)} as fast as {one}; by the others it is "
    if low == high:
        return (f"{said}{units.ratio(found[low])} ({titles[low]}).",)
    return (f"{said}{units.ratio(found[low])} ({titles[low]}) to {units.ratio(found[high])} ({titles[high]}).",)


def _clock_table(content: Clock, contenders: Sequence[str]) -> Table:
    entries = {
        (contender, entry.variant.name): entry
        for contender in contenders
        for entry in exhibition.comparisons(content, contender)
    }
    titles = {variant.name: variant.title for variant in content.variants}
    lines = []
    for name, title in titles.items():
        line = [title]
        for contender in contenders:
            entry = entries.get((contender, name))
            line += [units.duration(entry.epoch_s), units.ratio(entry.against_ours)] if entry else ["", ""]
        lines.append(tuple(line))
    header = ["Clock"]
    for contender in contenders:
        header += [f"An epoch, {contender}", f"of ours, {contender}"]
    return Table(
        title="An epoch by each clock, and how often ours fits into it", header=tuple(header), rows=tuple(lines)
    )


def _clock_words(content: Clock) -> Table:
    """What each clock does, in words."""
    words = {variant.title: variant.explains for variant in content.variants}
    return Table(title="What each clock does", header=("Clock", "What is done"), rows=tuple(words.items()), prose=True)


def moving(shown: Exhibit, note: str = "") -> Section:
    """What moving does: each piece of code with what it said."""
    content = shown.content
    if not isinstance(content, Moving):
        return Section(title="Moving", sentences=("This exhibit shows no code.",))
    listings = tuple(
        Listing(
            title=f"{number}. {snippet.title} (device {snippet.device})",
            code=snippet.code,
            output="\n".join(filter(None, (snippet.output, snippet.error))) or "It says nothing.",
        )
        for number, snippet in enumerate(content.snippets, start=1)
    )
    failed = sum(bool(snippet.error) for snippet in content.snippets)
    lead = f"{len(content.snippets)} pieces of code, run as they stand; {failed} of them raise an error, word for word."
    rule = (
        "A tensor stays where it is, and .to() returns another one. A module moves its parameters in place, and .to() "
        "returns the module itself."
    )
    return Section(
        title="What PyTorch does and says",
        sentences=(note, rule, lead) if note else (rule, lead),
        listings=listings,
        notes=content.notes,
    )


def loader(rows: Sequence[Trial], note: str = "") -> tuple[Section, ...]:
    """An epoch in its parts for each way of delivering data, and the speedups side by side.

    Of several devices on the CPU only the last is looked into: their loader is the same.
    """
    found = []
    contenders = dict.fromkeys(row.contender for row in rows)
    if all(speedup.is_host(row) for row in rows):
        contenders = dict.fromkeys(list(contenders)[-1:])
    for contender in contenders:
        try:
            of = bottleneck.bottleneck([row for row in rows if row.contender == contender])
        except CrossoverError as error:
            found.append(Section(title=f"Where an epoch goes on {contender}", sentences=(str(error),)))
            continue
        if of:
            found.append(_ways(of, _both_ends(rows, contender), note))
    speedups = _speedups_by_way(rows)
    return (*found, speedups) if speedups else tuple(found)


def _both_ends(rows: Sequence[Trial], contender: str) -> tuple[str, ...]:
    """Samples one by one without workers, and data on the device: what the loader costs, and what is left without."""
    ends = [
        row
        for row in rows
        if row.contender == contender and row.data_path in ("tutorial", "resident") and not row.loader_workers
    ]
    of = bottleneck.bottleneck(ends)
    if of is None:
        return ()
    one_by_one = [way.sentence for way in of.ways if way.data_path == "tutorial"]
    return (*one_by_one, of.sentence) if len(of.ways) > 1 else tuple(one_by_one)


def _workers(of: Bottleneck) -> tuple[str, ...]:
    """What worker processes bring where samples are transformed one by one."""
    found = sorted((way for way in of.ways if way.data_path == "tutorial"), key=lambda way: way.loader_workers)
    if len(found) < 2:
        return ()
    listed = ", ".join(f"{way.loader_workers}: {units.duration(way.epoch_s)}" for way in found)
    return (f"An epoch by the number of loader workers, on {of.contender}: {listed}.",)


def _ways(of: Bottleneck, ends: Sequence[str], note: str) -> Section:
    lines = tuple(
        (
            way.title,
            units.duration(way.epoch_s),
            _interval(way.low_s, way.high_s),
            "" if way.loader_share is None else units.share(way.loader_share),
            units.ratio(way.bound) if way.bound is not None else way.bound_reason,
        )
        for way in of.ways
    )
    header = ("Data", "An epoch", "95 % interval", "Loader", "Most that a device can gain")
    said = (*ends, *_workers(of))
    return Section(
        title=f"Where an epoch goes on {of.contender}",
        sentences=(note, *said) if note else said,
        figures=(Figure(title=f"An epoch on {of.contender} in its parts", spec=tutorials.epoch_parts(of)),),
        tables=(Table(title=f"Every way of delivering the data, on {of.contender}", header=header, rows=lines),),
        notes=(*_losses(of), "The parts were timed apart; the tick is the undisturbed epoch."),
    )


def _losses(of: Bottleneck) -> tuple[str, ...]:
    """Whether every way of delivering the data taught the same."""
    if of.loss_difference is None:
        return ()
    same = "the same but for rounding" if of.same_losses else "not the same"
    return (f"The loss curves of all ways are {same}: at most {of.loss_difference:.1e} apart, relatively.",)


def _speedups_by_way(rows: Sequence[Trial]) -> Section | None:
    """The second device against the first, for each way of delivering data."""
    pairs = _pairs(rows)
    lines = []
    for base, other in pairs:
        found = _speedup(base, other)
        path = DATA_PATHS.get(base.data_path, base.data_path).partition(":")[0]
        lines.append((path, str(base.loader_workers), *found))
    if not lines:
        return None
    base, other = pairs[0]
    header = ("Data", "Workers", f"{other.contender} against {base.contender}", "95 % interval")
    slow = max(pairs, key=lambda pair: speedup.step_time(pair[0]).median_s or 0.0)
    fast = min(pairs, key=lambda pair: speedup.step_time(pair[0]).median_s or 0.0)
    said = (
        f"{other.contender} is {_speedup(*slow)[0]} as fast as {base.contender} with the slowest way of delivering the "
        f"data, {_speedup(*fast)[0]} with the fastest."
    )
    return Section(
        title="What the device itself brings",
        sentences=(said,),
        tables=(Table(title="Speedup for each way", header=header, rows=tuple(lines)),),
    )


def first_step(shown: Exhibit, note: str = "") -> Section:
    """How far two devices are apart after one step."""
    content = shown.content
    title = "1. One step"
    if not isinstance(content, FirstStep):
        return Section(title=title, sentences=("This exhibit shows no first step.",))
    sentence = exhibition.first_step_sentence(content)
    lines = tuple((name, f"{difference:.1e}" if difference else "0") for name, difference in content.parameters)
    header = ("Gradient of", "Relative difference")
    return Section(
        title=title,
        sentences=(note, sentence) if note else (sentence,),
        tables=(Table(title="Gradients after the first step", header=header, rows=lines),),
    )


def same(
    rows: Sequence[Trial], *, baseline: str, challenger: str, margin: float, note: str = ""
) -> tuple[Section, ...]:
    """Loss curves in the band of the seeds, disagreeing items, and the verdict with its margin."""
    try:
        verdict = equivalence.equivalence(rows, baseline=baseline, challenger=challenger, margin=margin)
        curves = _band(rows, baseline, challenger)
    except CrossoverError as error:
        return (Section(title="The same learning?", sentences=(str(error),)),)
    lead = (note,) if note else ()
    items = Section(
        title="3. Single answers",
        sentences=(verdict.disagreement_sentence,),
        tables=(_seed_table(verdict),) if verdict.seeds else (),
    )
    decided = Section(
        title="4. The verdict",
        sentences=(*lead, verdict.sentence),
        notes=(
            f"The margin of {units.significant(100 * margin)} percentage points was fixed before the results were "
            f"shown, and {equivalence.MIN_SEEDS} seeds are the fewest for a verdict.",
        ),
    )
    return (*curves, items, decided, *_reports(rows, baseline, challenger))


def _band(rows: Sequence[Trial], baseline: str, challenger: str) -> tuple[Section, ...]:
    band = seed_band.seed_band(rows, baseline=baseline, challenger=challenger)
    if band is None:
        return (Section(title="2. Loss curves", sentences=("Two seeds at least make a band.",)),)
    theirs = [row for row in rows if row.contender == challenger and row.seed in band.seeds]
    figure = Figure(title="Losses on the band of the seeds", spec=tutorials.seed_band(band, theirs))
    return (Section(title="2. Loss curves", sentences=(band.sentence,), figures=(figure,)),)


def _seed_table(found: Equivalence) -> Table:
    lines = tuple(
        (str(seed), f"{100 * ours:.2f} %", f"{100 * theirs:.2f} %", f"{100 * (theirs - ours):+.2f}", str(apart))
        for seed, (ours, theirs), apart in zip(found.seeds, found.accuracies, found.disagreeing, strict=True)
    )
    header = ("Seed", found.baseline, found.challenger, "Difference (percentage points)", "Items that differ")
    return Table(title="Test accuracy, seed by seed", header=header, rows=lines)


def _reports(rows: Sequence[Trial], baseline: str, challenger: str) -> tuple[Section, ...]:
    """Classification reports of the first seed, side by side in one table."""
    pairs = equivalence.seed_pairs(rows, baseline, challenger)
    if not pairs:
        return ()
    reports = [learned.classification(row) or {} for row in pairs[0]]
    lines = []
    for name, ours in reports[0].items():
        theirs = reports[1].get(name)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            figures = [f"{of[figure]:.3f}" for figure in ("precision", "recall", "f1-score") for of in (ours, theirs)]
            lines.append((name, *figures, str(int(ours["support"]))))
    names = [f"{figure}, {of}" for figure in ("Precision", "Recall", "F1") for of in (baseline, challenger)]
    table = Table(
        title=f"Classification reports, seed {pairs[0][0].seed}",
        header=("Class", *names, "Test items"),
        rows=tuple(lines),
    )
    matrices = tuple(
        Figure(title=f"Confusion matrix of {row.contender}, seed {row.seed}", spec=runs.confusion(row))
        for row in pairs[0]
    )
    return (Section(title="Classification reports side by side", tables=(table,), figures=matrices),)


def small(rows: Sequence[Trial], note: str = "") -> tuple[Section, ...]:
    """One model at two batch sizes on each device: launches against arithmetic."""
    found: list[TwoBatches] = []
    said: list[str] = [note] if note else []
    for contender in dict.fromkeys(row.contender for row in rows):
        of = {row.batch_size: row for row in rows if row.contender == contender and row.block_steps}
        if len(of) < 2:
            continue
        try:
            two = launches.two_batches(of[min(of)], of[max(of)])
        except CrossoverError as error:
            said.append(str(error))
            continue
        if two:
            found.append(two)
            said.append(two.sentence)
    if not found:
        return (Section(title="A step and its batch", sentences=(*said, "Both batch sizes are needed.")),)
    figures = [Figure(title="What a step consists of", spec=tutorials.step_shares(found))]
    if any(two.small.busy_s is not None for two in found):
        figures.append(Figure(title="For how much of a step the device computes", spec=tutorials.device_shares(found)))
    step = Section(
        title="A step and its batch", sentences=tuple(said), figures=tuple(figures), tables=(_launch_table(found),)
    )
    speedups = _speedups_by_batch(rows)
    return (step, speedups) if speedups else (step,)


def _launch_table(found: Sequence[TwoBatches]) -> Table:
    lines = tuple(
        (
            of.contender,
            units.count(of.batch_size),
            str(of.operations),
            units.duration(of.step_s),
            units.duration(of.per_operation_s),
            f"{units.operations(of.flops / of.step_s)}/s",
            units.duration(of.busy_s) if of.busy_s is not None else "no queue to be idle",
        )
        for two in found
        for of in (two.small, two.large)
    )
    header = ("Device", "Batch", "Operations", "A step", "For each operation", "Arithmetic", "Device computes")
    return Table(title="Launches and arithmetic", header=header, rows=lines)


def _speedups_by_batch(rows: Sequence[Trial]) -> Section | None:
    pairs = sorted(_pairs(rows), key=lambda pair: pair[0].batch_size)
    if not pairs:
        return None
    base, other = pairs[0]
    said = tuple(
        f"At a batch of {units.count(ours.batch_size)}, {theirs.contender} is {_speedup(ours, theirs)[0]} as fast as "
        f"{ours.contender}."
        for ours, theirs in pairs
    )
    lines = tuple((units.count(ours.batch_size), *_speedup(ours, theirs)) for ours, theirs in pairs)
    header = ("Batch", f"{other.contender} against {base.contender}", "95 % interval")
    table = Table(title="Speedup at each batch size", header=header, rows=lines)
    return Section(title="And the devices against each other", sentences=said, tables=(table,))


def _pairs(rows: Sequence[Trial]) -> list[tuple[Trial, Trial]]:
    """First and last contender of each run that timed both."""
    by_run: dict[str, list[Trial]] = {}
    for row in rows:
        if row.block_steps:
            by_run.setdefault(row.run_id, []).append(row)
    return [(run[0], run[-1]) for run in by_run.values() if len(run) > 1]


def _speedup(base: Trial, other: Trial) -> tuple[str, str]:
    """The speedup and its interval as text; what it is when there is none."""
    try:
        found = speedup.speedup(base, other)
    except CrossoverError:
        return "not comparable", ""
    if found.value is None or found.low is None or found.high is None:
        return "not known", found.reason
    return units.ratio(found.value), f"{units.ratio(found.low)} to {units.ratio(found.high)}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{units.duration(low)} to {units.duration(high)}"
