"""Lanes are written, read, titled and refused as people expect, and the plain one has no name."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidValue
from core.files.project import PROJECT
from core.question import lanes, models
from core.question.experiment import PROTOCOL_VERSION, Contender, Experiment, Point, inline_name
from core.question.fields import TRAINING, Training
from core.question.lanes import PLAIN, Lane
from core.results.store import Store

GALLERY = PROJECT / "data" / "gallery"


@pytest.mark.parametrize(
    ("text", "contender"),
    [
        ("cpu", Contender()),
        ("cpu@2+compiled", Contender(threads=2, lane=Lane(execution="compiled"))),
        ("cuda:0+graph10", Contender(device="cuda:0", lane=Lane(execution="graph", steps_per_call=10))),
        ("cuda:0+graph+fused", Contender(device="cuda:0", lane=Lane(execution="graph", optimizer="fused"))),
        ("cpu@2+channels_last+kept", Contender(threads=2, lane=Lane.parse(["kept", "channels_last"]))),
        ("cpu@2+micro250", Contender(threads=2, lane=Lane(micro_batch=250))),
        ("cuda:1+bf16+channels_last", Contender(device="cuda:1", lane=Lane.parse(["bf16", "channels_last"]))),
    ],
)
def test_a_contender_is_written_as_it_is_read_with_its_defaults_left_out(text, contender):
    assert Contender.parse(text) == contender
    assert str(contender) == text


def test_words_may_come_in_any_order_and_are_written_in_one():
    assert str(Contender.parse("cuda:0+micro10+tf32+fused+graph")) == "cuda:0+graph+fused+tf32+micro10"


def test_a_plus_that_a_link_turned_into_a_space_is_still_one():
    assert Contender.parse("cpu@2 compiled bf16") == Contender.parse("cpu@2+compiled+bf16")


@given(
    st.builds(
        Lane,
        execution=st.just("graph"),
        steps_per_call=st.integers(1, lanes.MAX_STEPS_PER_CALL),
        optimizer=st.sampled_from(list(lanes.LANE_WORDS["optimizer"])),
        precision=st.sampled_from(list(lanes.LANE_WORDS["precision"])),
        memory_format=st.sampled_from(list(lanes.LANE_WORDS["memory_format"])),
        host_memory=st.sampled_from(list(lanes.LANE_WORDS["host_memory"])),
        cudnn=st.sampled_from(list(lanes.LANE_WORDS["cudnn"])),
        micro_batch=st.integers(0, lanes.MAX_MICRO_BATCH),
    )
)
def test_every_lane_survives_being_written(lane):
    assert Lane.parse(lane.words) == lane
    assert Contender.parse(str(Contender(device="cuda:0", lane=lane))).lane == lane
    assert len(lane.title.split(", ")) == len(lane.words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cpu+quick", "lane must be .*got 'quick'"),
        ("cpu+compiled0", "lane must be .*got 'compiled0'"),
        ("cpu+compiled101", "steps_per_call must be .*got 101"),
        ("cpu+compiled+graph", "left out, as compiled was given already"),
        ("cpu+tf32+bf16", "left out, as tf32 was given already"),
        ("cpu+compiled+fused", "optimizer must be .*got 'fused'"),
        ("cpu+eager", "lane must be .*got 'eager'"),
        ("cpu+", "devices must be .*got 'cpu\\+'"),
        ("+compiled", "devices must be "),
    ],
)
def test_what_is_no_lane_is_refused_in_one_sentence(text, message):
    with pytest.raises(InvalidValue, match=message):
        Contender.parse(text)


def test_an_eager_lane_has_one_step_a_call():
    with pytest.raises(InvalidValue, match=r"steps_per_call must be .*got 2"):
        Lane(steps_per_call=2)


@pytest.mark.parametrize(("text", "same"), [("graph10+fused+micro5", True), ("compiled", True), ("tf32", False)])
def test_lanes_say_whether_they_keep_the_mathematics(text, same):
    assert Lane.parse(text.split("+")).has_same_numerics is same


def test_lanes_have_titles_for_people_and_the_plain_one_has_none():
    assert PLAIN.title == ""
    assert Lane.parse(["compiled10", "micro250"]).title == "compiled, 10 steps a call, micro-batches of 250"
    assert Lane.parse(["graph10", "fused", "tf32"]).title == "CUDA graph of 10 steps, fused optimizer, TF32"
    assert Lane.parse(["graph"]).title == "CUDA graph"


def test_a_device_that_lacks_a_lane_says_why_and_others_have_it():
    refusals = {"graph": "only GPUs replay CUDA graphs", "bf16": "it is too old"}
    why = lanes.why_not(Lane.parse(["graph10", "bf16"]), refusals, inline_name("cpu+graph10+bf16"))
    assert why == "Training on the CPU (CUDA graph of 10 steps, bf16) is not possible: only GPUs replay CUDA graphs."
    assert lanes.why_not(Lane.parse(["compiled10"]), refusals, "cpu") == ""
    assert lanes.why_not(PLAIN, refusals, "cpu") == ""


@pytest.mark.parametrize(
    ("point", "contender", "message"),
    [
        ({"batch_size": 100}, "cpu+micro30", "micro_batch must be .*a smaller divisor of the batch size 100.*got 30"),
        ({"batch_size": 100}, "cpu+micro100", "micro_batch must be .*got 100"),
        ({"model": "mlp"}, "cpu+channels_last", "memory_format must be .*got 'channels_last'"),
    ],
)
def test_a_lane_that_a_training_cannot_have_is_refused_before_anything_runs(point, contender, message):
    with pytest.raises(InvalidValue, match=message):
        Experiment(point=Point(**point), contenders=(Contender.parse(contender),))


def test_lanes_of_one_device_are_different_contenders_and_different_questions():
    texts = ["cpu@1", "cpu@1+compiled", "cpu@1+compiled10", "cpu@1+bf16"]
    contenders = tuple(map(Contender.parse, texts))
    whole = Experiment(point=Point(), contenders=contenders)
    assert Experiment.from_json(whole.to_json()) == whole
    ids = {Experiment(point=Point(), contenders=pair).id for pair in itertools.combinations(contenders, 2)}
    assert len(ids) == 6


@pytest.mark.slow
def test_stored_rows_still_have_the_identity_of_their_question():
    """Links and the gallery name questions by it."""
    runs = {}
    for row in Store(GALLERY).trials():
        runs.setdefault(row.run_id, []).append(row)
    assert runs
    for rows in runs.values():
        ordered = sorted(rows, key=lambda row: row.trial_id)
        contenders = tuple(Contender.parse(row.contender) for row in ordered)
        assert [str(contender) for contender in contenders] == [row.contender for row in ordered]
        assert rows[0].protocol_version == PROTOCOL_VERSION
        assert Experiment(point=Point.from_row(rows[0]), contenders=contenders).id == rows[0].experiment_id
        assert [Lane.from_row(row) for row in ordered] == [contender.lane for contender in contenders]


def test_other_mathematics_is_refused_in_float64_and_pieces_of_a_batch_of_one():
    asked = Training(dtype="float64", batch_size=1_000)
    for word in ("bf16", "tf32"):
        field, value, allowed = lanes.unfit(Lane.parse([word]), asked)
        assert (field, value) == ("precision", word)
        assert "float64" in allowed
    assert lanes.unfit(Lane.parse(["compiled10", "kept"]), asked) is None
    assert all(lane.has_same_numerics for host in (True, False) for lane in lanes.worth_trying(asked, on_host=host))
    with pytest.raises(InvalidValue, match=r"micro_batch must be .*a batch of one sample has no pieces.*got 1"):
        Experiment(point=Point(batch_size=1), contenders=(Contender.parse("cpu+micro1"),))


def test_lanes_that_store_images_by_pixel_are_for_every_family_with_convolutions():
    lane = Lane.parse(["channels_last"])
    fits = {model for model in models.FAMILIES if lanes.unfit(lane, Training(model=model)) is None}
    assert fits == {"cnn", "resnet"}
    assert lanes.unfit(lane, Training(model="invented-later")) is not None


@pytest.mark.parametrize(
    ("words", "model", "field"),
    [
        ("benchmark", "mlp", "cudnn"),
        ("benchmark", "cnn", None),
        ("fp16", "mlp", None),
        ("fp16+fused+micro10", "mlp", None),
        ("fp16+graph10", "mlp", "precision"),
        ("fp16+compiled", "mlp", "precision"),
        ("fp16+foreach", "mlp", "precision"),
    ],
)
def test_float16_needs_single_steps_and_timed_algorithms_need_convolutions(words, model, field):
    found = lanes.unfit(Lane.parse(words.split("+")), Training(model=model, batch_size=100))
    assert (found and found[0]) == field


def test_a_card_is_tried_in_float16_and_with_timed_algorithms_where_it_has_convolutions():
    card = {lane.words for lane in lanes.worth_trying(Training(batch_size=100, model="cnn"), on_host=False)}
    assert {("fp16",), ("benchmark",)} < card
    assert Lane.parse(["benchmark"]).has_same_numerics
    assert not Lane.parse(["fp16"]).has_same_numerics


def test_jobs_of_earlier_versions_are_still_read():
    point = {name: getattr(Point(), name) for name in TRAINING}
    data = {"point": point, "contenders": ["cpu", "cuda:0", "cpu@1"], "budget_s": 60.0}
    asked = Experiment.from_json(data)
    assert [contender.lane for contender in asked.contenders] == [PLAIN] * 3


def test_lanes_worth_trying_fit_the_training_and_the_device():
    host = lanes.worth_trying(Training(batch_size=1000, model="cnn"), on_host=True)
    assert {"+".join(lane.words) for lane in host} >= {
        "compiled10",
        "compiled",
        "kept",
        "fused",
        "micro250",
        "channels_last",
    }
    assert not any(lane.execution == "graph" for lane in host)
    card = lanes.worth_trying(Training(batch_size=1000), on_host=False)
    assert [lane.words for lane in card[:2]] == [("graph10",), ("graph",)]
    assert not any(lane.micro_batch or lane.memory_format == "channels_last" for lane in card)


@pytest.mark.parametrize("batch_size", [1, 64, 256, 257, 2 * 257])
def test_a_batch_that_fits_the_cache_or_has_no_fitting_divisor_is_not_cut(batch_size):
    worth = lanes.worth_trying(Training(batch_size=batch_size), on_host=True)
    assert not any(lane.micro_batch for lane in worth)
