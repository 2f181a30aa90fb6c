"""What a tutorial or a lesson shows, as pieces for page and paper: figures, tables, and the sentences between them.

Every number in a sentence comes from the rows or the exhibit that the piece is about, or is said to be published.
Nothing here measures, draws to a screen or knows a page.
"""

from collections.abc import Mapping, Sequence

from core import units
from core.answer.charts import lessons, runs, tutorials
from core.answer.lesson import bottleneck, claims, equivalence, launches, seed_band, tutorial
from core.answer.lesson.bottleneck import Bottleneck
from core.answer.lesson.claims import Origin
from core.answer.lesson.equivalence import Equivalence
from core.answer.lesson.handout import HandoutFigure, HandoutSection, HandoutTable
from core.answer.lesson.launches import TwoBatches
from core.answer.run import learned, speedup
from core.errors import CrossoverError
from core.question.experiment import display_name, inline_name
from core.question.fields import value_label
from core.question.presets import Preset, Scale
from core.results.schema import Trial

NO_PAIR = "No run has both devices yet, so there is nothing to set side by side."


def tutorial_section(
    preset: Preset, scale: Scale, rows: Sequence[Trial], *, contenders: tuple[str, str], origin: Origin, note: str = ""
) -> HandoutSection:
    """Published and measured side by side, of rows of one machine; the note says where they are from, if elsewhere."""
    title = f"Published and {origin}"
    try:
        beside = tutorial.compare_with_published(
            preset, scale, rows, baseline=contenders[0], challenger=contenders[1], origin=origin
        )
    except CrossoverError as error:
        return HandoutSection(title=title, sentences=(str(error),))
    if beside is None:
        return HandoutSection(title=title, sentences=(*claims.claim_sentences(preset), NO_PAIR))
    figures = [HandoutFigure(title=f"Time of one {beside.per}", spec=tutorials.tutorial_times_chart(beside))]
    if beside.speedups:
        figures.append(HandoutFigure(title=tutorials.SPEEDUP, spec=tutorials.tutorial_speedups_chart(beside)))
    sentences = (note, *beside.sentences) if note else beside.sentences
    return HandoutSection(
        title=title, sentences=sentences, figures=tuple(figures), tables=(beside.table,), notes=beside.differences
    )


def loader_sections(rows: Sequence[Trial], note: str = "") -> tuple[HandoutSection, ...]:
    """An epoch in its parts for each way of delivering data, and the speedups side by side.

    Of several devices on the CPU only the last is looked into: their loader is the same.
    """
    shown = []
    contenders = dict.fromkeys(row.contender for row in rows)
    if all(speedup.is_host(row) for row in rows):
        contenders = dict.fromkeys(list(contenders)[-1:])
    for contender in contenders:
        try:
            training = bottleneck.find_bottleneck([row for row in rows if row.contender == contender])
        except CrossoverError as error:
            shown.append(
                HandoutSection(title=f"Where an epoch goes on {inline_name(contender)}", sentences=(str(error),))
            )
            continue
        if training:
            shown.append(_ways(training, _extreme_way_sentences(rows, contender), note))
    speedups = _speedups_by_way(rows)
    return (*shown, speedups) if speedups else tuple(shown)


def _extreme_way_sentences(rows: Sequence[Trial], contender: str) -> tuple[str, ...]:
    """Samples one by one without workers, and data on the device: what the loader costs, and what is left without."""
    ends = [
        row
        for row in rows
        if row.contender == contender and row.data_path in ("tutorial", "resident") and not row.loader_workers
    ]
    training = bottleneck.find_bottleneck(ends)
    if training is None:
        return ()
    one_by_one = [way.sentence for way in training.ways if way.data_path == "tutorial"]
    return (*one_by_one, training.sentence) if len(training.ways) > 1 else tuple(one_by_one)


def _worker_sentences(training: Bottleneck) -> tuple[str, ...]:
    """What worker processes bring where samples are transformed one by one."""
    ways = sorted((way for way in training.ways if way.data_path == "tutorial"), key=lambda way: way.loader_workers)
    if len(ways) < 2:
        return ()
    listed = ", ".join(f"{way.loader_workers}: {units.format_duration(way.epoch_s)}" for way in ways)
    return (f"An epoch by the number of loader workers, on {inline_name(training.contender)}: {listed}.",)


def _ways(training: Bottleneck, ends: Sequence[str], note: str) -> HandoutSection:
    lines = tuple(
        (
            way.title,
            units.format_duration(way.epoch_s),
            units.format_if_known(way.loader_share, units.format_share),
            units.format_ratio(way.bound) if way.bound is not None else "not known",
            units.format_interval(way.low_s, way.high_s, units.format_duration),
        )
        for way in training.ways
    )
    header = ("Data", "An epoch", "Loader", "Most that a device can gain", "95 % interval")
    said, where = (*ends, *_worker_sentences(training)), inline_name(training.contender)
    return HandoutSection(
        title=f"Where an epoch goes on {where}",
        sentences=(note, *said) if note else said,
        figures=(HandoutFigure(title=f"An epoch on {where} in its parts", spec=lessons.epoch_parts_chart(training)),),
        tables=(HandoutTable(title=f"Every way of delivering the data, on {where}", header=header, rows=lines),),
        notes=(
            *_unknown_gain_notes(training),
            *_losses(training),
            "The parts were timed apart; the tick is the undisturbed epoch.",
        ),
    )


def _unknown_gain_notes(training: Bottleneck) -> tuple[str, ...]:
    """Why it is not known what a device could gain, a sentence for each reason, with the ways that it is true of."""
    ways: dict[str, list[str]] = {}
    for way in training.ways:
        if way.bound is None:
            ways.setdefault(way.bound_reason, []).append(way.title)
    return tuple(
        f"What a device can gain is not known for {'; '.join(names)}: {reason}." for reason, names in ways.items()
    )


def _losses(training: Bottleneck) -> tuple[str, ...]:
    if training.loss_difference is None:
        return ()
    if not training.loss_difference:
        return ("The loss curves of all ways are the same.",)
    same = "the same but for rounding" if training.same_losses else "not the same"
    apart = units.format_power(training.loss_difference)
    return (f"The loss curves of all ways are {same}: at most {apart} apart, relatively.",)


def _speedups_by_way(rows: Sequence[Trial]) -> HandoutSection | None:
    pairs = _run_pairs(rows)
    lines = []
    for base, other in pairs:
        figures = _speedup_cells(base, other)
        lines.append((value_label("data_path", base.data_path), str(base.loader_workers), *figures))
    if not lines:
        return None
    base, other = pairs[0]
    header = (
        "Data",
        "Workers",
        f"{display_name(other.contender)} against {display_name(base.contender)}",
        "95 % interval",
    )
    slow = max(pairs, key=lambda pair: speedup.step_time(pair[0]).median_s or 0.0)
    fast = min(pairs, key=lambda pair: speedup.step_time(pair[0]).median_s or 0.0)
    said = (
        f"Training on {inline_name(other.contender)} is {_speedup_cells(*slow)[0]} as fast as on "
        f"{inline_name(base.contender)} with "
        f"the slowest way of delivering the data, {_speedup_cells(*fast)[0]} with the fastest."
    )
    return HandoutSection(
        title="What the device itself brings",
        sentences=(said,),
        tables=(HandoutTable(title="Speedup for each way", header=header, rows=tuple(lines)),),
    )


def equivalence_sections(
    rows: Sequence[Trial], *, baseline: str, challenger: str, margin: float, note: str = ""
) -> tuple[HandoutSection, ...]:
    """Loss curves in the band of the seeds, disagreeing items, and the verdict with its margin."""
    try:
        verdict = equivalence.judge_equivalence(rows, baseline=baseline, challenger=challenger, margin=margin)
        curves = _band_sections(rows, baseline, challenger)
    except CrossoverError as error:
        return (HandoutSection(title="The same learning?", sentences=(str(error),)),)
    lead = (note,) if note else ()
    items = HandoutSection(
        title="3. Single answers",
        sentences=(verdict.disagreement_sentence,),
        tables=(_seed_table(verdict),) if verdict.seeds else (),
    )
    decided = HandoutSection(
        title="4. The verdict",
        sentences=(*lead, verdict.sentence),
        notes=(
            f"The margin of {100 * margin:g} percentage points was fixed before the results were "
            f"shown, and {equivalence.MIN_SEEDS} seeds are the fewest for a verdict.",
            *filter(None, [learned.early_end_sentence(row for row in rows if row.confusion)]),
        ),
    )
    return (*curves, items, decided, *_reports(rows, baseline, challenger))


def _band_sections(rows: Sequence[Trial], baseline: str, challenger: str) -> tuple[HandoutSection, ...]:
    band = seed_band.find_seed_band(rows, baseline=baseline, challenger=challenger)
    if band is None:
        return (HandoutSection(title="2. Loss curves", sentences=("Two seeds at least make a band.",)),)
    theirs = [row for row in rows if row.contender == challenger and row.seed in band.seeds]
    figure = HandoutFigure(title="Losses on the band of the seeds", spec=lessons.seed_band_chart(band, theirs))
    return (HandoutSection(title="2. Loss curves", sentences=(band.sentence,), figures=(figure,)),)


def _seed_table(verdict: Equivalence) -> HandoutTable:
    lines = tuple(
        (str(seed), f"{100 * ours:.2f} %", f"{100 * theirs:.2f} %", str(apart), _points_text(theirs - ours))
        for seed, (ours, theirs), apart in zip(verdict.seeds, verdict.accuracies, verdict.disagreeing, strict=True)
    )
    one, other = display_name(verdict.baseline), display_name(verdict.challenger)
    header = ("Seed", one, other, "Items that differ", f"{other}, percentage points")
    return HandoutTable(title="Test accuracy, seed by seed", header=header, rows=lines)


def _points_text(difference: float) -> str:
    """A difference in words: a cell that begins with a sign is a formula to a spreadsheet."""
    shown = f"{100 * abs(difference):.2f}"
    return "alike" if float(shown) == 0 else f"{shown} {'higher' if difference > 0 else 'lower'}"


def _reports(rows: Sequence[Trial], baseline: str, challenger: str) -> tuple[HandoutSection, ...]:
    pairs = equivalence.seed_pairs(rows, baseline, challenger)
    if not pairs:
        return ()
    reports = [learned.classification(row) or {} for row in pairs[0]]
    lines = []
    for name, ours in reports[0].items():
        theirs = reports[1].get(name)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            figures = [
                f"{report[figure]:.3f}" for figure in ("precision", "recall", "f1-score") for report in (ours, theirs)
            ]
            lines.append((name, *figures, str(int(ours["support"]))))
    names = [
        f"{figure}, {display_name(contender)}"
        for figure in ("Precision", "Recall", "F1")
        for contender in (baseline, challenger)
    ]
    table = HandoutTable(
        title=f"Classification reports, seed {pairs[0][0].seed}",
        header=("Class", *names, "Test items"),
        rows=tuple(lines),
    )
    matrices = tuple(
        HandoutFigure(
            title=f"Confusion matrix of {display_name(row.contender)}, seed {row.seed}", spec=runs.confusion_chart(row)
        )
        for row in pairs[0]
    )
    return (HandoutSection(title="Classification reports side by side", tables=(table,), figures=matrices),)


def batch_size_sections(rows: Sequence[Trial], note: str = "") -> tuple[HandoutSection, ...]:
    """One model at two batch sizes on each device: launches against arithmetic."""
    pairs: list[TwoBatches] = []
    said: list[str] = [note] if note else []
    for contender in dict.fromkeys(row.contender for row in rows):
        by_batch = {row.batch_size: row for row in rows if row.contender == contender and row.block_steps}
        if len(by_batch) < 2:
            continue
        try:
            pair = launches.compare_batch_sizes(by_batch[min(by_batch)], by_batch[max(by_batch)])
        except CrossoverError as error:
            said.append(str(error))
            continue
        if pair:
            pairs.append(pair)
            said.append(pair.sentence)
    if not pairs:
        return (HandoutSection(title="A step and its batch", sentences=(*said, "Both batch sizes are needed.")),)
    figures = [HandoutFigure(title="What a step consists of", spec=lessons.step_shares_chart(pairs))]
    if any(pair.small.busy_s is not None for pair in pairs):
        figures.append(
            HandoutFigure(title="For how much of a step the device computes", spec=lessons.device_shares_chart(pairs))
        )
    step = HandoutSection(
        title="A step and its batch", sentences=tuple(said), figures=tuple(figures), tables=(_launch_table(pairs),)
    )
    speedups = _speedups_by_batch(rows)
    return (step, speedups) if speedups else (step,)


def _launch_table(pairs: Sequence[TwoBatches]) -> HandoutTable:
    lines = tuple(
        (
            display_name(step.contender),
            units.format_count(step.batch_size),
            str(step.operations),
            units.format_duration(step.step_s),
            units.format_duration(step.per_operation_s),
            f"{units.format_operations(step.flops / step.step_s)}/s",
            units.format_duration(step.busy_s) if step.busy_s is not None else "no queue to be idle",
        )
        for pair in pairs
        for step in (pair.small, pair.large)
    )
    header = ("Device", "Batch", "Operations", "A step", "For each operation", "Arithmetic", "Device computes")
    return HandoutTable(title="Launches and arithmetic", header=header, rows=lines)


def _speedups_by_batch(rows: Sequence[Trial]) -> HandoutSection | None:
    pairs = sorted(_run_pairs(rows), key=lambda pair: pair[0].batch_size)
    if not pairs:
        return None
    base, other = pairs[0]
    said = tuple(
        f"At a batch of {units.format_count(ours.batch_size)}, training on {inline_name(theirs.contender)} is "
        f"{_speedup_cells(ours, theirs)[0]} as fast as on {inline_name(ours.contender)}."
        for ours, theirs in pairs
    )
    lines = tuple((units.format_count(ours.batch_size), *_speedup_cells(ours, theirs)) for ours, theirs in pairs)
    header = ("Batch", f"{display_name(other.contender)} against {display_name(base.contender)}", "95 % interval")
    table = HandoutTable(title="Speedup at each batch size", header=header, rows=lines)
    return HandoutSection(title="And the devices against each other", sentences=said, tables=(table,))


def _run_pairs(rows: Sequence[Trial]) -> list[tuple[Trial, Trial]]:
    """First and last contender of each run that timed both."""
    by_run: dict[str, list[Trial]] = {}
    for row in rows:
        if row.block_steps:
            by_run.setdefault(row.run_id, []).append(row)
    return [(run[0], run[-1]) for run in by_run.values() if len(run) > 1]


def _speedup_cells(base: Trial, other: Trial) -> tuple[str, str]:
    """The speedup and its interval as text; what it is when there is none."""
    try:
        ratio = speedup.speedup(base, other)
    except CrossoverError:
        return "not comparable", ""
    if ratio.value is None or ratio.low is None or ratio.high is None:
        return "not known", ratio.reason
    return units.format_ratio(ratio.value), units.format_interval(ratio.low, ratio.high, units.format_ratio)
