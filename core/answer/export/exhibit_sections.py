"""What an exhibit shows, as pieces for page and paper: clocks beside ours, code with what it said, a first step.

Every number in a sentence comes from the exhibit that the piece is about.
"""

import dataclasses
from collections.abc import Sequence

from core import units
from core.answer.charts import lessons
from core.answer.lesson import claims, exhibition
from core.answer.lesson.handout import HandoutFigure, HandoutListing, HandoutSection, HandoutTable
from core.question.device_kinds import does
from core.question.experiment import display_name, inline_name
from core.question.presets import Preset
from core.results.exhibits.exhibit import Clock, Exhibit, FirstStep, Moving


def tutorial_clock_section(preset: Preset, exhibit: Exhibit, note: str = "") -> HandoutSection:
    """The tutorial's own way to time beside ours, shortcut by shortcut in words."""
    recipe = preset.name
    section = clock_section(exhibit, title="Its own clock beside ours", only=("ours", recipe), note=note)
    lines = tuple((sentence,) for sentence in claims.clock_shortcut_sentences(preset))
    listed = HandoutTable(title="What its clock does otherwise", header=("Shortcut",), rows=lines, prose=True)
    return dataclasses.replace(section, tables=(*section.tables, listed))


def clock_section(
    exhibit: Exhibit, *, title: str = "The wrong number beside the right one", only: Sequence[str] = (), note: str = ""
) -> HandoutSection:
    """One training by several clocks, all of them unless recipes are named; the note says where it is from."""
    content = exhibit.content
    if not isinstance(content, Clock):
        return HandoutSection(title=title, sentences=("This exhibit shows no clocks.",))
    kept = tuple(variant for variant in content.variants if not only or variant.name in only)
    content = Clock(variants=kept, notes=content.notes)
    contenders = tuple(dict.fromkeys(variant.contender for variant in content.variants))
    said = [note] if note else []
    entries = exhibition.compare_clocks(content, contenders[-1])
    said += [f"On {inline_name(contenders[-1])}: {entry.sentence[:1].lower()}{entry.sentence[1:]}" for entry in entries]
    kinds = {entry.contender: entry.kind for entry in exhibit.participants}
    words = tuple({variant.title: variant.explains for variant in content.variants}.items())
    in_words = HandoutTable(title="What each clock does", header=("Clock", "What is done"), rows=words, prose=True)
    return HandoutSection(
        title=title,
        sentences=(*said, *_clock_speedup_sentences(content, contenders)),
        figures=(HandoutFigure(title="An epoch by each clock", spec=lessons.clocks_chart(content, kinds)),),
        tables=(_clock_table(content, contenders), in_words),
        notes=content.notes,
    )


def _clock_speedup_sentences(content: Clock, contenders: Sequence[str]) -> tuple[str, ...]:
    """What each clock would have said of the second device against the first."""
    if len(contenders) < 2:
        return ()
    one, other = contenders[0], contenders[-1]
    by_clock = exhibition.clock_speedups(content, one, other)
    ours = by_clock.pop("ours", None)
    titles = {variant.name: variant.title for variant in content.variants}
    if ours is None or not by_clock:
        return ()
    low, high = min(by_clock, key=by_clock.__getitem__), max(by_clock, key=by_clock.__getitem__)
    faster = f"{does(inline_name(other), 'is', 'are')} {units.format_ratio(ours)} as fast as {inline_name(one)}"
    others = "others" if len(by_clock) > 1 else "other"
    said = f"By our clock {faster}; by the {others} the speedup is "
    if low == high:
        return (f"{said}{units.format_ratio(by_clock[low])} ({titles[low]}).",)
    return (
        f"{said}{units.format_ratio(by_clock[low])} ({titles[low]}) to {units.format_ratio(by_clock[high])} "
        f"({titles[high]}).",
    )


def _clock_table(content: Clock, contenders: Sequence[str]) -> HandoutTable:
    entries = {
        (contender, entry.variant.name): entry
        for contender in contenders
        for entry in exhibition.compare_clocks(content, contender)
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
    return HandoutTable(
        title="An epoch by each clock, and how often ours fits into it",
        header=("Clock", *map(display_name, contenders)),
        rows=tuple(lines),
    )


def moving_section(exhibit: Exhibit, note: str = "") -> HandoutSection:
    """What moving does: each piece of code with what it said."""
    content = exhibit.content
    if not isinstance(content, Moving):
        return HandoutSection(title="Moving", sentences=("This exhibit shows no code.",))
    listings = tuple(
        HandoutListing(
            title=f"{number}. {snippet.title} (device {snippet.device})",
            code=snippet.code,
            output="\n".join(filter(None, (snippet.output, snippet.error))) or "It says nothing.",
        )
        for number, snippet in enumerate(content.snippets, start=1)
    )
    failed = sum(bool(snippet.error) for snippet in content.snippets)
    pieces, raise_ = units.format_quantity(len(content.snippets), "piece"), "raises" if failed == 1 else "raise"
    lead = f"{pieces} of code, run as written; {failed} of them {raise_} an error, shown word for word."
    rule = (
        "A tensor stays where it is, and .to() returns another one. A module moves its parameters in place, and .to() "
        "returns the module itself."
    )
    return HandoutSection(
        title="What PyTorch does and says",
        sentences=(note, rule, lead) if note else (rule, lead),
        listings=listings,
        notes=content.notes,
    )


def first_step_section(exhibit: Exhibit, note: str = "") -> HandoutSection:
    """How far two devices are apart after one step."""
    content = exhibit.content
    title = "1. One step"
    if not isinstance(content, FirstStep):
        return HandoutSection(title=title, sentences=("This exhibit shows no first step.",))
    sentence = exhibition.first_step_sentence(content)
    lines = tuple(
        (name, units.format_power(difference) if difference else "0") for name, difference in content.parameters
    )
    header = ("Gradient of", "Relative difference")
    return HandoutSection(
        title=title,
        sentences=(note, sentence) if note else (sentence,),
        tables=(HandoutTable(title="Gradients after the first step", header=header, rows=lines),),
    )
