"""Sections of tutorials and lessons for page and paper: figures, tables, and the sentences between them.

Every number in a sentence comes from the rows or the exhibit of the section, or is marked as published. Nothing here
measures, draws to a screen or knows a page.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from ... import units
from ...errors import CrossoverError
from ...question.experiment import display_name, inline_name
from ...question.fields import value_label
from ...question.lanes import does
from ...question.presets import Preset, Scale
from ...results.exhibits import Clock, Exhibit, FirstStep, Moving
from ...results.schema import Trial
from .. import accuracy, interference, speedup
from ..accuracy import Equivalence
from ..charts import lesson_charts, run_charts
from ..lessons import limits, outcomes, tutorials
from ..lessons.limits import Bottleneck, TwoBatches
from ..lessons.outcomes import Section, SectionFigure, SectionListing, SectionTable, sections_text
from ..lessons.tutorials import Origin
from ..verdict import QUIET_NOTE, Verdict

NO_PAIR = "No run has both devices yet, so there is nothing to compare."


def tutorial_section(
    preset: Preset, scale: Scale, rows: Sequence[Trial], *, contenders: tuple[str, str], origin: Origin, note: str = ""
) -> Section:
    """Compare published and measured results of one machine; the note names the source of other rows."""
    title = f"Published and {origin}"
    try:
        beside = tutorials.compare_with_published(
            preset, scale, rows, baseline=contenders[0], challenger=contenders[1], origin=origin
        )
    except CrossoverError as error:
        return Section(title=title, sentences=(str(error),))
    if beside is None:
        return Section(title=title, sentences=(*tutorials.claim_sentences(preset), NO_PAIR))
    figures = [SectionFigure(title=f"Time of one {beside.per}", spec=lesson_charts.tutorial_times_chart(beside))]
    if beside.speedups:
        figures.append(SectionFigure(title=lesson_charts.SPEEDUP, spec=lesson_charts.tutorial_speedups_chart(beside)))
    sentences = (note, *beside.sentences) if note else beside.sentences
    return Section(
        title=title, sentences=sentences, figures=tuple(figures), tables=(beside.table,), notes=beside.differences
    )


def loader_sections(rows: Sequence[Trial], note: str = "") -> tuple[Section, ...]:
    """Return an epoch in its parts for each way of delivering data, and the speedups side by side.

    Of several contenders on the CPU only the last is included: their loader is the same.
    """
    shown = []
    contenders = dict.fromkeys(row.contender for row in rows)
    if all(speedup.is_host(row) for row in rows):
        contenders = dict.fromkeys(list(contenders)[-1:])
    for contender in contenders:
        mine = [row for row in rows if row.contender == contender]
        try:
            training = limits.find_bottleneck(mine)
        except CrossoverError as error:
            shown.append(Section(title=f"Where an epoch goes on {inline_name(contender)}", sentences=(str(error),)))
            continue
        if training:
            shown.append(_ways(training, _extreme_way_sentences(mine), _load_notes(mine), note))
    speedups = _speedups_by_way(rows)
    return (*shown, speedups) if speedups else tuple(shown)


def _load_notes(rows: Sequence[Trial]) -> tuple[str, ...]:
    """Return for each contender that other programs were running, if they were."""
    by_contender: dict[str, list[Trial]] = {}
    for row in rows:
        if row.block_steps:
            by_contender.setdefault(row.contender, []).append(row)
    marks = (interference.row_interference(mine).sentence for mine in by_contender.values())
    return tuple(dict.fromkeys(filter(None, marks)))


def _extreme_way_sentences(rows: Sequence[Trial]) -> tuple[str, ...]:
    """Return the cost of the loader: samples one by one without workers, compared with data on the device."""
    ends = [row for row in rows if row.data_path in ("tutorial", "resident") and not row.loader_workers]
    training = limits.find_bottleneck(ends)
    if training is None:
        return ()
    one_by_one = [way.sentence for way in training.ways if way.data_path == "tutorial"]
    return (*one_by_one, training.sentence) if len(training.ways) > 1 else tuple(one_by_one)


def _worker_sentences(training: Bottleneck) -> tuple[str, ...]:
    """Return sentences on the effect of worker processes where samples are transformed one by one."""
    ways = sorted((way for way in training.ways if way.data_path == "tutorial"), key=lambda way: way.loader_workers)
    if len(ways) < 2:
        return ()
    listed = ", ".join(f"{way.loader_workers}: {units.format_duration(way.epoch_s)}" for way in ways)
    return (f"An epoch by the number of loader workers, on {inline_name(training.contender)}: {listed}.",)


def _ways(training: Bottleneck, ends: Sequence[str], load: Sequence[str], note: str) -> Section:
    lines = tuple(
        (
            way.title,
            units.format_duration(way.epoch_s),
            units.format_if_known(way.loader_share, units.format_share),
            units.format_ratio(way.bound) if way.bound is not None else "unknown",
            units.format_interval(way.low_s, way.high_s, units.format_duration),
        )
        for way in training.ways
    )
    header = ("Data", "An epoch", "Loader", "Largest possible gain from a faster device", "95 % interval")
    said, where = (*ends, *_worker_sentences(training)), inline_name(training.contender)
    return Section(
        title=f"Where an epoch goes on {where}",
        sentences=(note, *said) if note else said,
        figures=(SectionFigure(title=f"Parts of an epoch on {where}", spec=lesson_charts.epoch_parts_chart(training)),),
        tables=(SectionTable(title=f"Every way of delivering the data, on {where}", header=header, rows=lines),),
        notes=(
            *load,
            *_unknown_gain_notes(training),
            *_losses(training),
            "The parts were timed separately; the tick is the undisturbed epoch.",
        ),
    )


def _unknown_gain_notes(training: Bottleneck) -> tuple[str, ...]:
    """Return why the possible gain of a device is unknown, a sentence for each reason, with the ways it applies to."""
    ways: dict[str, list[str]] = {}
    for way in training.ways:
        if way.bound is None:
            ways.setdefault(way.bound_reason, []).append(way.title)
    return tuple(
        f"The possible gain of a device is unknown for {'; '.join(names)}: {reason}." for reason, names in ways.items()
    )


def _losses(training: Bottleneck) -> tuple[str, ...]:
    if training.loss_difference is None:
        return ()
    if not training.loss_difference:
        return ("All loss curves are the same.",)
    same = "the same except for rounding" if training.same_losses else "not the same"
    apart = units.format_power(training.loss_difference)
    return (f"All loss curves are {same}: they differ by at most {apart} (relative).",)


def _speedups_by_way(rows: Sequence[Trial]) -> Section | None:
    pairs = _run_pairs(rows)
    if not pairs:
        return None
    verdicts = [_judge_pair(*pair) for pair in pairs]
    lines = [
        (value_label("data_path", base.data_path), str(base.loader_workers), *_verdict_cells(verdict))
        for (base, _), verdict in zip(pairs, verdicts, strict=True)
    ]
    header = ("Data", "Workers", *_verdict_header(*pairs[0]))
    step_s = [speedup.step_time(base).median_s or 0.0 for base, _ in pairs]
    slow, fast = (verdicts[step_s.index(end)] for end in (max(step_s), min(step_s)))
    ends = (("with the slowest way of delivering the data", slow), ("with the fastest", fast))
    return Section(
        title="The gain from the device alone",
        sentences=_claim_sentences(ends),
        tables=(SectionTable(title="Speedup for each data path", header=header, rows=tuple(lines)),),
    )


def equivalence_sections(
    rows: Sequence[Trial], *, baseline: str, challenger: str, margin: float, note: str = ""
) -> tuple[Section, ...]:
    """Return loss curves in the band of the seeds, disagreeing items, and the verdict with its margin."""
    try:
        verdict = accuracy.judge_equivalence(rows, baseline=baseline, challenger=challenger, margin=margin)
        curves = _band_sections(rows, baseline, challenger)
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
            f"The margin of {100 * margin:g} percentage points was fixed before the results were "
            f"shown, and {accuracy.MIN_SEEDS} seeds are the fewest for a verdict.",
            *filter(None, [accuracy.early_end_sentence(row for row in rows if row.confusion)]),
        ),
    )
    return (*curves, items, decided, *_reports(rows, baseline, challenger))


def _band_sections(rows: Sequence[Trial], baseline: str, challenger: str) -> tuple[Section, ...]:
    band = accuracy.find_seed_band(rows, baseline=baseline, challenger=challenger)
    if band is None:
        return (Section(title="2. Loss curves", sentences=("A band needs at least two seeds.",)),)
    theirs = [row for row in rows if row.contender == challenger and row.seed in band.seeds]
    figure = SectionFigure(title="Losses on the band of the seeds", spec=lesson_charts.seed_band_chart(band, theirs))
    return (Section(title="2. Loss curves", sentences=(band.sentence,), figures=(figure,)),)


def _seed_table(verdict: Equivalence) -> SectionTable:
    lines = tuple(
        (str(seed), f"{100 * ours:.2f} %", f"{100 * theirs:.2f} %", str(apart), _points_text(theirs - ours))
        for seed, (ours, theirs), apart in zip(verdict.seeds, verdict.accuracies, verdict.disagreeing, strict=True)
    )
    one, other = display_name(verdict.baseline), display_name(verdict.challenger)
    header = ("Seed", one, other, "Items that differ", f"{other}, percentage points")
    return SectionTable(title="Test accuracy, seed by seed", header=header, rows=lines)


def _points_text(difference: float) -> str:
    """Return a difference in words, as spreadsheets read a cell that begins with a sign as a formula."""
    shown = f"{100 * abs(difference):.2f}"
    return "alike" if float(shown) == 0 else f"{shown} {'higher' if difference > 0 else 'lower'}"


def _reports(rows: Sequence[Trial], baseline: str, challenger: str) -> tuple[Section, ...]:
    pairs = accuracy.seed_pairs(rows, baseline, challenger)
    if not pairs:
        return ()
    reports = [accuracy.classification(row) or {} for row in pairs[0]]
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
    table = SectionTable(
        title=f"Classification reports, seed {pairs[0][0].seed}",
        header=("Class", *names, "Test items"),
        rows=tuple(lines),
    )
    matrices = tuple(
        SectionFigure(
            title=f"Confusion matrix of {display_name(row.contender)}, seed {row.seed}",
            spec=run_charts.confusion_chart(row),
        )
        for row in pairs[0]
    )
    return (Section(title="Classification reports side by side", tables=(table,), figures=matrices),)


def batch_size_sections(rows: Sequence[Trial], note: str = "") -> tuple[Section, ...]:
    """Return one model at two batch sizes on each device: launches against arithmetic."""
    pairs: list[TwoBatches] = []
    said: list[str] = [note] if note else []
    for contender in dict.fromkeys(row.contender for row in rows):
        by_batch = {row.batch_size: row for row in rows if row.contender == contender and row.block_steps}
        if len(by_batch) < 2:
            continue
        try:
            pair = limits.compare_batch_sizes(by_batch[min(by_batch)], by_batch[max(by_batch)])
        except CrossoverError as error:
            said.append(str(error))
            continue
        if pair:
            pairs.append(pair)
            said.append(pair.sentence)
    if not pairs:
        return (Section(title="A step and its batch", sentences=(*said, "Both batch sizes are needed.")),)
    figures = [SectionFigure(title="The parts of a step", spec=lesson_charts.step_shares_chart(pairs))]
    if any(pair.small.busy_s is not None for pair in pairs):
        figures.append(
            SectionFigure(
                title="Share of a step in which the device computes", spec=lesson_charts.device_shares_chart(pairs)
            )
        )
    step = Section(
        title="A step and its batch",
        sentences=tuple(said),
        figures=tuple(figures),
        tables=(_launch_table(pairs),),
        notes=_load_notes(rows),
    )
    speedups = _speedups_by_batch(rows)
    return (step, speedups) if speedups else (step,)


def _launch_table(pairs: Sequence[TwoBatches]) -> SectionTable:
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
    return SectionTable(title="Launches and arithmetic", header=header, rows=lines)


def _speedups_by_batch(rows: Sequence[Trial]) -> Section | None:
    pairs = sorted(_run_pairs(rows), key=lambda pair: pair[0].batch_size)
    if not pairs:
        return None
    verdicts = [(units.format_count(base.batch_size), _judge_pair(base, other)) for base, other in pairs]
    lines = tuple((batch, *_verdict_cells(verdict)) for batch, verdict in verdicts)
    header = ("Batch", *_verdict_header(*pairs[0]))
    table = SectionTable(title="Speedup at each batch size", header=header, rows=lines)
    said = _claim_sentences([(f"at a batch of {batch}", verdict) for batch, verdict in verdicts])
    return Section(title="The devices compared", sentences=said, tables=(table,))


def _run_pairs(rows: Sequence[Trial]) -> list[tuple[Trial, Trial]]:
    """Return the first and last contender of each run that timed both."""
    by_run: dict[str, list[Trial]] = {}
    for row in rows:
        if row.block_steps:
            by_run.setdefault(row.run_id, []).append(row)
    return [(run[0], run[-1]) for run in by_run.values() if len(run) > 1]


def _claim_sentences(verdicts: Sequence[tuple[str, Verdict | None]]) -> tuple[str, ...]:
    """Return the verdict on each pair of rows that can be compared, followed by the place where it holds."""
    said = [f"{verdict.claim}, {place}." for place, verdict in verdicts if verdict]
    is_conditional = any(verdict and verdict.is_conditional for _, verdict in verdicts)
    return (*said, QUIET_NOTE) if is_conditional else tuple(said)


def _judge_pair(base: Trial, other: Trial) -> Verdict | None:
    """Return the verdict on two rows; None if they cannot be compared."""
    try:
        return speedup.speedup(base, other)
    except CrossoverError:
        return None


def _verdict_header(base: Trial, other: Trial) -> tuple[str, str, str]:
    return f"{display_name(other.contender)} against {display_name(base.contender)}", "95 % interval", "Verdict"


def _verdict_cells(verdict: Verdict | None) -> tuple[str, str, str]:
    """Return the speedup, its interval and the verdict as text."""
    if verdict is None:
        return "not comparable", "", ""
    if verdict.value is None or verdict.low is None or verdict.high is None:
        return "unknown", "", verdict.short_claim
    interval = units.format_interval(verdict.low, verdict.high, units.format_ratio)
    return units.format_ratio(verdict.value), interval, verdict.short_claim


def tutorial_clock_section(preset: Preset, exhibit: Exhibit, note: str = "") -> Section:
    """Build the section that compares the tutorial's own clock with Crossover's, shortcut by shortcut in words."""
    recipe = preset.name
    section = clock_section(exhibit, title="Its clock compared with Crossover's", only=("ours", recipe), note=note)
    lines = tuple((sentence,) for sentence in tutorials.clock_shortcut_sentences(preset))
    listed = SectionTable(title="How its clock differs", header=("Shortcut",), rows=lines, prose=True)
    return dataclasses.replace(section, tables=(*section.tables, listed))


def clock_section(
    exhibit: Exhibit,
    *,
    title: str = "The wrong number compared with the right one",
    only: Sequence[str] = (),
    note: str = "",
) -> Section:
    """Return one training by several clocks, all of them unless recipes are named; the note names the source."""
    content = exhibit.content
    if not isinstance(content, Clock):
        return Section(title=title, sentences=("This exhibit shows no clocks.",))
    kept = tuple(variant for variant in content.variants if not only or variant.name in only)
    content = Clock(variants=kept, notes=content.notes)
    contenders = tuple(dict.fromkeys(variant.contender for variant in content.variants))
    said = [note] if note else []
    entries = outcomes.compare_clocks(content, contenders[-1])
    said += [f"On {inline_name(contenders[-1])}: {entry.sentence[:1].lower()}{entry.sentence[1:]}" for entry in entries]
    kinds = {entry.contender: entry.kind for entry in exhibit.participants}
    words = tuple({variant.title: variant.explains for variant in content.variants}.items())
    in_words = SectionTable(title="How each clock measures", header=("Clock", "Method"), rows=words, prose=True)
    return Section(
        title=title,
        sentences=(*said, *_clock_speedup_sentences(content, contenders)),
        figures=(SectionFigure(title="An epoch by each clock", spec=lesson_charts.clocks_chart(content, kinds)),),
        tables=(_clock_table(content, contenders), in_words),
        notes=content.notes,
    )


def _clock_speedup_sentences(content: Clock, contenders: Sequence[str]) -> tuple[str, ...]:
    """Return the speedup of the second device against the first according to each clock, in sentences."""
    if len(contenders) < 2:
        return ()
    one, other = contenders[0], contenders[-1]
    by_clock = outcomes.clock_speedups(content, one, other)
    ours = by_clock.pop("ours", None)
    titles = {variant.name: variant.title for variant in content.variants}
    if ours is None or not by_clock:
        return ()
    low, high = min(by_clock, key=by_clock.__getitem__), max(by_clock, key=by_clock.__getitem__)
    faster = f"{does(inline_name(other), 'is', 'are')} {units.format_ratio(ours)} as fast as {inline_name(one)}"
    others = "others" if len(by_clock) > 1 else "other"
    said = f"By Crossover's clock {faster}; by the {others} the speedup is "
    if low == high:
        return (f"{said}{units.format_ratio(by_clock[low])} ({titles[low]}).",)
    return (
        f"{said}{units.format_ratio(by_clock[low])} ({titles[low]}) to {units.format_ratio(by_clock[high])} "
        f"({titles[high]}).",
    )


def _clock_table(content: Clock, contenders: Sequence[str]) -> SectionTable:
    entries = {
        (contender, entry.variant.name): entry
        for contender in contenders
        for entry in outcomes.compare_clocks(content, contender)
    }
    titles = {variant.name: variant.title for variant in content.variants}
    lines = []
    for name, title in titles.items():
        line = [title]
        for contender in contenders:
            entry = entries.get((contender, name))
            line.append(
                f"{units.format_duration(entry.epoch_s)} ({units.format_ratio(entry.against_ours)})" if entry else ""
            )
        lines.append(tuple(line))
    return SectionTable(
        title="An epoch by each clock, and its ratio to Crossover's",
        header=("Clock", *map(display_name, contenders)),
        rows=tuple(lines),
    )


def moving_section(exhibit: Exhibit, note: str = "") -> Section:
    """Build the section on moving tensors and modules: each piece of code with its output."""
    content = exhibit.content
    if not isinstance(content, Moving):
        return Section(title="Moving", sentences=("This exhibit shows no code.",))
    listings = tuple(
        SectionListing(
            title=f"{number}. {snippet.title} (device {snippet.device})",
            code=snippet.code,
            output="\n".join(filter(None, (snippet.output, snippet.error))) or "It prints nothing.",
        )
        for number, snippet in enumerate(content.snippets, start=1)
    )
    failed = sum(bool(snippet.error) for snippet in content.snippets)
    pieces, raise_ = units.format_quantity(len(content.snippets), "piece"), "raises" if failed == 1 else "raise"
    lead = f"{pieces} of code, run as written; {failed} of them {raise_} an error, shown word for word."
    rule = (
        "A tensor stays where it is, and .to() returns a new one. A module moves its parameters in place, and .to() "
        "returns the module itself."
    )
    return Section(
        title="PyTorch's behavior and messages",
        sentences=(note, rule, lead) if note else (rule, lead),
        listings=listings,
        notes=content.notes,
    )


def first_step_section(exhibit: Exhibit, note: str = "") -> Section:
    """Build the section on the difference of two devices after one step."""
    content = exhibit.content
    title = "1. One step"
    if not isinstance(content, FirstStep):
        return Section(title=title, sentences=("This exhibit shows no first step.",))
    sentence = outcomes.first_step_sentence(content)
    lines = tuple(
        (name, units.format_power(difference) if difference else "0") for name, difference in content.parameters
    )
    header = ("Gradient of", "Relative difference")
    return Section(
        title=title,
        sentences=(note, sentence) if note else (sentence,),
        tables=(SectionTable(title="Gradients after the first step", header=header, rows=lines),),
    )


def exhibit_text(exhibit: Exhibit) -> str:
    """Return a demonstration for a terminal: the devices, then its section."""
    where = ", ".join(f"{display_name(entry.contender)}: {entry.device_name}" for entry in exhibit.participants)
    match exhibit.content:
        case Clock():
            section = clock_section(exhibit)
        case Moving():
            section = moving_section(exhibit)
        case FirstStep():
            section = first_step_section(exhibit)
    return f"{where}; torch {exhibit.torch_version}, {exhibit.measured_at}\n\n{sections_text([section])}"
