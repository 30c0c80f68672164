"""What each action does to the state: pure data, no model but for checking sites."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnsight_lab import demo
from nnsight_lab.experiments import KL, Capture, Noise, Patch, Probability, RecipeError, Scale, Zero
from nnsight_lab.widgets import LabError, wire
from nnsight_lab.widgets.actions import apply
from nnsight_lab.widgets.history import History
from nnsight_lab.widgets.modelcontext import ModelContext
from nnsight_lab.widgets.state import UNDO_DEPTH, Experiment, State, target_of
from nnsight_lab.widgets.views.prompts import prompt_view
from nnsight_lab.widgets.views.steps import step_view
from nnsight_lab.widgets.wire import Scope, Target

ACT = "transformer.h.11.mlp.source.self_act_0"
LAYER = "transformer.h.5"


@pytest.fixture(scope="module")
def context():
    return ModelContext(demo.load(), History())


@pytest.fixture
def do(context):
    """A function that carries actions out one after the other, from a state with a prompt."""

    def carry_out(*actions, state=None):
        state = state or State(experiment=Experiment(base=demo.EIFFEL))
        for action in actions:
            state = apply(state, action, context)
        return state

    return carry_out


def steps(state):
    return state.experiment.steps


# Looking


def test_a_module_is_shown_by_any_of_its_spellings(do):
    assert do(wire.ShowModule("model.transformer.h[11].mlp")).module == "transformer.h.11.mlp"
    assert do(wire.ShowModule("transformer.h.11.mlp")).module == "transformer.h.11.mlp"


def test_an_operation_is_no_module_to_show(do):
    with pytest.raises(RecipeError, match="is an operation; its module is"):
        do(wire.ShowModule(ACT))


def test_another_module_closes_what_was_stepped_into(do):
    site = "transformer.h.0.attn.source.attention_interface_0"
    state = do(wire.ShowModule("transformer.h.0.attn"), wire.StepInto(site))
    assert state.opened == (site,)
    assert do(wire.ShowModule("transformer.h.1.attn"), state=state).opened == ()


def test_stepping_out_closes_what_is_inside_as_well(do):
    site = "transformer.h.0.attn.source.attention_interface_0"
    state = msgspec.structs.replace(State(), opened=(site, f"{site}.source.inner_0", f"{site}0"))
    assert do(wire.StepOut(site), state=state).opened == (f"{site}0",)


def test_a_module_cannot_be_stepped_into(do):
    with pytest.raises(LabError, match="show its listing"):
        do(wire.StepInto("transformer.h.0.attn"))


def test_selecting_spells_the_site_as_the_model_does(do):
    state = do(wire.Select(Target("model.transformer.h[11].mlp.source.self_act_0")))
    assert state.selection == Target(ACT)


@pytest.mark.parametrize("site", ["transformer.h.99", "transformer.h.11.mlp.source.self_axt_0", "__import__('os')"])
def test_a_site_that_does_not_exist_is_refused(do, site):
    with pytest.raises(RecipeError):
        do(wire.Select(Target(site)))


def test_an_unknown_operation_is_answered_with_the_nearest(do):
    with pytest.raises(RecipeError, match="self_act_0"):
        do(wire.Select(Target("transformer.h.11.mlp.source.self_axt_0")))


# Steps


def test_an_added_step_is_active_and_selected(do):
    state = do(wire.AddStep(Zero(ACT)))
    assert steps(state) == (Zero(ACT),)
    assert state.experiment.active == 0
    assert state.selection == Target(ACT)


def test_a_step_of_the_same_kind_at_the_same_target_is_replaced(do):
    state = do(wire.AddStep(Scale(ACT, factor=2.0)), wire.AddStep(Zero(LAYER)), wire.AddStep(Scale(ACT, factor=3.0)))
    assert steps(state) == (Scale(ACT, factor=3.0), Zero(LAYER))
    assert state.experiment.active == 0


@pytest.mark.parametrize("other", [Zero(ACT, io="input"), Zero(ACT, call=0), Capture(ACT)])
def test_another_target_or_a_capture_is_another_step(do, other):
    assert len(steps(do(wire.AddStep(Zero(ACT)), wire.AddStep(other)))) == 2


@pytest.mark.parametrize("other", [Noise(ACT, std=1.0), Patch(ACT), Scale(ACT, factor=2.0)])
def test_another_edit_of_the_same_value_takes_its_place_and_its_scope(do, other):
    limited = (wire.Select(Target(ACT)), wire.SetScope(Scope(positions=(-1,), index="0:4")))
    state = do(*limited, wire.AddStep(Zero(ACT)), wire.AddStep(Zero(LAYER)), wire.AddStep(other))
    assert steps(state) == (msgspec.structs.replace(other, positions=(-1,), index="0:4"), Zero(LAYER, positions=[-1]))
    assert state.experiment.active == 0
    assert steps(do(wire.Undo(), state=state)) == (Zero(ACT, positions=[-1], index="0:4"), Zero(LAYER, positions=[-1]))


def test_of_several_edits_of_one_value_the_active_one_is_replaced(do):
    both = (Zero(ACT, positions=[0]), Zero(ACT, positions=[1]))
    state = State(module="transformer", experiment=Experiment(steps=both, active=0))
    assert steps(do(wire.AddStep(Patch(ACT)), state=state)) == (Patch(ACT, positions=[0]), both[1])


def test_a_new_step_takes_the_scope_that_was_set_for_it(do):
    state = do(wire.Select(Target(ACT)), wire.SetScope(Scope(positions=(-1,), index="0:4")), wire.AddStep(Zero(ACT)))
    assert steps(state) == (Zero(ACT, positions=[-1], index="0:4"),)


def test_a_step_elsewhere_takes_the_positions_alone(do):
    state = do(wire.Select(Target(ACT)), wire.SetScope(Scope(positions=(-1,), index="0:4")), wire.AddStep(Zero(LAYER)))
    assert steps(state) == (Zero(LAYER, positions=[-1]),)


def test_a_step_with_a_scope_of_its_own_keeps_it(do):
    state = do(wire.SetScope(Scope(positions=(-1,))), wire.AddStep(Zero(ACT, positions=[0])))
    assert steps(state) == (Zero(ACT, positions=[0]),)
    assert state.experiment.scope == Scope(positions=(0,))


def test_the_scope_belongs_to_the_active_step(do):
    state = do(wire.AddStep(Zero(ACT)), wire.AddStep(Zero(LAYER)), wire.ActivateStep(0))
    state = do(wire.SetScope(Scope(positions=(2, 3))), state=state)
    assert steps(state) == (Zero(ACT, positions=[2, 3]), Zero(LAYER))


def test_selecting_a_value_that_is_edited_activates_its_edit(do):
    state = do(wire.AddStep(Zero(ACT, positions=[1])), wire.AddStep(Zero(LAYER)), wire.Select(Target(ACT)))
    assert state.experiment.active == 0
    assert state.experiment.scope == Scope(positions=(1,))


def test_a_step_that_becomes_active_is_shown_in_its_listing(do):
    inside = (
        "transformer.h.5.attn.source.attention_interface_0.source.torch_nn_functional_scaled_dot_product_attention_0"
    )
    state = do(wire.AddStep(Zero(inside)), wire.AddStep(Zero("lm_head")), wire.ActivateStep(0))
    assert state.module == "transformer.h.5.attn"
    assert state.opened == ("transformer.h.5.attn.source.attention_interface_0",)
    assert do(wire.ActivateStep(1), state=state).module == "lm_head"


def test_an_operation_of_the_model_itself_is_shown_in_the_models_listing(do):
    state = do(wire.AddStep(Zero("source.self_lm_head_0")), state=State(module="transformer"))
    assert (state.module, state.opened) == ("", ())
    assert state.selection == Target("source.self_lm_head_0")
    view = step_view(state.experiment.steps[0], wire.PromptView(), wire.PromptView())
    assert (view.title, view.where.split(" · ")[0]) == ("Zero self_lm_head_0", "model")


@pytest.mark.parametrize(
    ("positions", "error"),
    [
        (0, ""),
        (-5, ""),
        (2, "position 2 “ Tower” has no counterpart in the source prompt"),
        (3, "position 3 “ is” is position 2 of the source prompt, not 3: write -5"),
    ],
)
def test_a_patch_takes_each_position_from_its_counterpart_or_says_why_not(positions, error):
    base, source = (prompt_view(demo.load(), prompt) for prompt in (demo.EIFFEL, demo.COLOSSEUM))
    view = step_view(Patch("transformer.h.5", positions=positions), base, source)
    assert error in view.error
    assert bool(view.error) == bool(error)


def test_selecting_another_value_leaves_the_edits_alone(do):
    state = do(wire.AddStep(Zero(ACT, index="0:3")), wire.Select(Target(LAYER)), wire.SetScope(Scope(positions=(0,))))
    assert steps(state) == (Zero(ACT, index="0:3"),)
    assert state.experiment.active is None
    assert state.experiment.scope == Scope(positions=(0,))


def test_a_patch_takes_its_source_positions_from_the_scope(do):
    scope = Scope(positions=(2,), from_positions=(1,))
    assert steps(do(wire.AddStep(Patch(LAYER)), wire.SetScope(scope))) == (
        Patch(LAYER, positions=[2], from_positions=[1]),
    )


def test_a_capture_has_no_scope(do):
    assert steps(do(wire.SetScope(Scope(positions=(0,))), wire.AddStep(Capture(ACT)))) == (Capture(ACT),)


def test_an_empty_scope_is_refused(do):
    with pytest.raises(ValueError, match="positions is empty"):
        do(wire.AddStep(Zero(ACT)), wire.SetScope(Scope(positions=())))


def test_a_step_changes_into_another_kind(do):
    state = do(wire.AddStep(Zero(ACT)), wire.ChangeStep(0, Scale(ACT, factor=0.5)))
    assert steps(state) == (Scale(ACT, factor=0.5),)


def test_steps_are_switched_off_and_on(do):
    state = do(wire.AddStep(Zero(ACT)), wire.EnableStep(0, False))
    assert not steps(state)[0].enabled
    assert steps(do(wire.EnableStep(0, True), state=state))[0].enabled


def test_all_steps_are_switched_off_and_stay(do):
    state = do(wire.AddStep(Zero(ACT)), wire.AddStep(Capture(LAYER)), wire.DisableAll())
    assert [step.enabled for step in steps(state)] == [False, False]


@pytest.mark.parametrize(("removed", "active"), [(0, 1), (1, 1), (2, None)])
def test_the_active_step_stays_active_when_another_is_removed(do, removed, active):
    sites = [f"transformer.h.{n}" for n in range(3)]
    state = do(*(wire.AddStep(Zero(site)) for site in sites), wire.ActivateStep(2 if removed != 1 else 1))
    if removed == 1:
        state = do(wire.ActivateStep(2), state=state)
    assert do(wire.RemoveStep(removed), state=state).experiment.active == active


@pytest.mark.parametrize(
    "action", [wire.RemoveStep(1), wire.EnableStep(-1, True), wire.ActivateStep(5), wire.ChangeStep(1, Zero(ACT))]
)
def test_a_step_that_is_not_there_is_refused(do, action):
    with pytest.raises(LabError, match="there are 1"):
        do(wire.AddStep(Zero(ACT)), action)


def test_clearing_removes_every_step(do):
    assert steps(do(wire.AddStep(Zero(ACT)), wire.AddStep(Zero(LAYER)), wire.ClearSteps())) == ()


# Prompts


def test_a_prompt_that_is_left_out_stays(do):
    state = do(wire.SetPrompts(source=demo.BRANDENBURG))
    assert (state.experiment.base, state.experiment.source) == (demo.EIFFEL, demo.BRANDENBURG)


def test_an_empty_source_removes_it(do):
    assert do(wire.SetPrompts(source=demo.BRANDENBURG), wire.SetPrompts(source="")).experiment.source is None


# Going back

CHANGES = st.sampled_from([
    wire.AddStep(Zero(ACT)),
    wire.AddStep(Scale(ACT, factor=2.0)),
    wire.AddStep(Patch(LAYER)),
    wire.ChangeStep(0, Zero(LAYER)),
    wire.EnableStep(0, False),
    wire.EnableStep(0, True),
    wire.RemoveStep(0),
    wire.ActivateStep(0),
    wire.ActivateStep(None),
    wire.ClearSteps(),
    wire.DisableAll(),
    wire.SetScope(Scope(positions=(-1,))),
    wire.SetScope(Scope()),
    wire.SetPrompts(base=demo.COLOSSEUM),
    wire.SetPrompts(source=demo.BRANDENBURG),
    wire.SetPrompts(source=""),
    wire.SetMetric(KL()),
    wire.SetMetric(Probability(" Paris")),
    wire.SetMetric(None),
    wire.Select(Target(ACT)),
    wire.Select(None),
    wire.ShowModule("transformer.h.5.mlp"),
    wire.Undo(),
    wire.Redo(),
])  # fmt: skip


def carried_out(state, actions, context):
    """The state after all actions that are possible."""
    for action in actions:
        try:
            state = apply(state, action, context)
        except LabError:
            continue
    return state


@given(st.lists(CHANGES, max_size=25))
def test_undoing_everything_returns_to_the_start(context, actions):
    start = State(experiment=Experiment(base=demo.EIFFEL, steps=(Zero(LAYER),), active=0))
    state = carried_out(start, actions, context)
    last = state.experiment.content
    count = len(state.past)
    state = carried_out(state, [wire.Undo()] * count, context)
    assert state.past == ()
    assert state.experiment.content == start.experiment.content
    future = len(state.future)
    state = carried_out(state, [wire.Redo()] * count, context)
    assert state.experiment.content == last
    assert len(state.future) == future - count


@given(st.lists(CHANGES, max_size=25))
def test_every_state_is_coherent(context, actions):
    state = carried_out(State(experiment=Experiment(base=demo.EIFFEL)), actions, context)
    experiment = state.experiment
    assert experiment.active is None or 0 <= experiment.active < len(experiment.steps)
    targets = [(type(step), target_of(step)) for step in experiment.steps]
    added = [action for action in actions if isinstance(action, wire.ChangeStep)]
    assert added or len(set(targets)) == len(targets)
    assert all(one.content != next.content for one, next in itertools.pairwise((*state.past, experiment)))


def test_looking_around_cannot_be_undone(do):
    state = do(wire.ShowModule("transformer.h.5.mlp"), wire.Select(Target(ACT)))
    assert state.past == ()


def test_a_change_after_an_undo_forgets_what_was_undone(do):
    state = do(wire.AddStep(Zero(ACT)), wire.Undo(), wire.AddStep(Zero(LAYER)))
    assert state.future == ()
    assert steps(do(wire.Redo(), state=state)) == (Zero(LAYER),)


def test_the_oldest_experiments_are_forgotten(do):
    changes = [wire.AddStep(Scale(ACT, factor=float(n + 1))) for n in range(UNDO_DEPTH + 5)]
    assert len(do(*changes).past) == UNDO_DEPTH


def test_an_unknown_run_cannot_be_restored(do):
    with pytest.raises(LabError, match="no run 'r9'"):
        do(wire.Restore("r9"))
