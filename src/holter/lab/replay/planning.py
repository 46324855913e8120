"""The changes to try on a captured failure, each alone, and why some do not apply."""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from holter.lab.birth.guards import OperationGuard
from holter.lab.changes import Change
from holter.lab.changes.clipping import clip_to
from holter.lab.changes.dropout import DROPOUT_OFF, drops
from holter.lab.changes.gradients import ACCUMULATION_DIVIDED
from holter.lab.changes.kernels import COMPILE_OFF, DETERMINISTIC, MATH_ATTENTION
from holter.lab.changes.learning_rate import groups_of, learning_rate_times
from holter.lab.changes.optimizer import LARGER_EPSILON, parameters_of, reset_moments
from holter.lab.changes.precision import FLOAT32, HALF
from holter.lab.replay.rates import earlier_rate, raises_rate
from holter.lab.replay.settings import held_options, held_settings
from holter.lab.replay.window import NO_EDIT, FailureWindow, WindowEdit
from holter.lab.setup import Batch
from holter.record.births import Birth
from holter.record.trials import TrialKind, TrialName, combined
from holter.watching.blackbox.capture import Step
from holter.watching.taps import Tap

_CLIP, _TIGHT = 1.0, 0.1
_FEWEST = 6  # gradient norms that tell a typical one
NOT_EDITED = "the script does not write to weights between steps"
NOT_RAISED = "the learning rate does not rise in the window"
NOT_MORE = "the failing step is not made of more batches than those before"


@dataclass(frozen=True, slots=True)
class PlannedReplay:
    """A pass through a window under changes; `why_not` says why they do not apply, if so."""

    name: str
    changes: tuple[Change, ...] = ()
    edit: WindowEdit = NO_EDIT
    why_not: str = ""
    reached: Callable[[], bool] | None = None  # whether the change met what it acts on, afterwards

    def together_with(self, other: "PlannedReplay") -> "PlannedReplay":
        """Return both in one pass."""
        names = [TrialName.parse(each.name) for each in (self, other)]
        changes = (*self.changes, *other.changes)
        return PlannedReplay(combined(*names), changes, self.edit.combined(other.edit))


def clip_norms(norms: Iterable[float]) -> tuple[float, ...]:
    """Return the norms to clip at: 1, and what is typical where that is far less, or else 0.1.

    `norms` are those of gradients before a failure. A limit that ordinary gradients never reach
    says nothing about clipping, and steps of norm 1 may be too large where gradients explode.
    """
    finite = sorted(norm for norm in norms if math.isfinite(norm) and norm > 0)
    if len(finite) < _FEWEST:
        return (_CLIP,)
    typical = float(f"{statistics.median(finite):.1g}")
    return (_CLIP, typical if typical <= _CLIP / 2 else _TIGHT)


def planned_replays(
    window: FailureWindow, birth: Birth | None, norms: Iterable[float] = ()
) -> list[PlannedReplay]:
    """Return every change that is known, the mildest of each kind first.

    `norms` are those of the gradients before the failure.
    """
    used = StepUses.of(window)
    before, other, lower = used.before, used.other, used.lower
    fewer = _as_many_batches(window)
    reset = WindowEdit(before={window.onset: reset_moments})
    planned = [
        # These two tell other data from a failure of steps, by which all others are judged.
        _edit(TrialKind.STEP_SKIPPED, WindowEdit(skips=window.bad)),
        _change(learning_rate_times(0.1)),
        _change(DETERMINISTIC),
        _change(
            MATH_ATTENTION,
            "" if used.attention else "the step does not call scaled_dot_product_attention",
        ),
        _change(COMPILE_OFF, "" if used.compiled else "nothing is compiled"),
        _change(FLOAT32, "" if used.reduced else "everything is in float32 already"),
        *_guards(birth),
        _change(DROPOUT_OFF.on_setup, "" if used.dropout else "there is no dropout"),
        _edit(
            TrialKind.EARLIER_RATE,
            None if lower is None else WindowEdit(rates_of=lower),
            NOT_RAISED,
        ),
        _change(learning_rate_times(1 / 3)),
        *(_change(clip_to(norm), used.clipped_below(norm)) for norm in clip_norms(norms)),
        _change(LARGER_EPSILON.on_setup, "" if used.epsilon else "the optimizer has no epsilon"),
        _edit(
            TrialKind.SECOND_MOMENT_RESET,
            reset if used.adam else None,
            "the optimizer has no second moment",
        ),
        _edit(
            TrialKind.EDITS_LEFT_OUT,
            WindowEdit(leaves_weights=True) if window.edits.at else None,
            NOT_EDITED,
        ),
        _change(ACCUMULATION_DIVIDED.on_setup, "" if fewer is not None else NOT_MORE),
        _edit(TrialKind.SAME_ACCUMULATION, fewer, NOT_MORE),
        *(
            PlannedReplay(str(name), (), edit)
            for name, edit in (*held_settings(window), *held_options(window))
        ),
        _edit(
            TrialKind.PREVIOUS_BATCH,
            None if before is None else instead(window, before),
            "the window has no step before the failing one",
        ),
        _edit(
            TrialKind.ANOTHER_BATCH,
            None if other is None else instead(window, other),
            "the window has too few steps",
        ),
    ]
    return [_if_known(window, each) for each in planned]


def _if_known(window: FailureWindow, planned: PlannedReplay) -> PlannedReplay:
    """Leave out a change if the script writes to weights after it, and how is not known."""
    if planned.why_not or planned.edit.leaves_weights or window.edits.are_repeatable:
        return planned
    acts_from = window.steps[0].step if planned.changes or planned.edit.rates_of else window.onset
    after = [step for step in window.edits.at if acts_from < step <= window.failing]
    if not after:
        return planned
    return replace(
        planned,
        why_not=f"the script writes to weights before step {after[0]}; what it would write after"
        " this change is not known",
    )


def _change(change: Change, why_not: str = "") -> PlannedReplay:
    return PlannedReplay(str(change.id), (change,), why_not=why_not)


def _guards(birth: Birth | None) -> list[PlannedReplay]:
    """Guard the operation that gave birth, if there is a guard for it."""
    if birth is None or not OperationGuard.exists_for(birth):
        return []
    guard = OperationGuard(birth)
    change = guard.change.on_setup
    return [PlannedReplay(str(change.id), (change,), reached=lambda: guard.calls > 0)]


def _edit(kind: TrialKind, edit: WindowEdit | None, why_not: str = "") -> PlannedReplay:
    name = str(TrialName(kind))
    return PlannedReplay(name, (), edit) if edit else PlannedReplay(name, why_not=why_not)


@dataclass(frozen=True, slots=True)
class StepUses:
    """What a training step makes use of, seen by running one."""

    attention: bool
    compiled: bool
    reduced: bool  # precision
    dropout: bool
    adam: bool
    epsilon: bool  # which the optimizer adds to a denominator
    clipped: float | None  # the norm that gradients are clipped to, if they all are
    before: Step | None  # a step whose batch may stand in
    other: Step | None
    lower: Step | None  # whose learning rates are lower than those of the failure

    def clipped_below(self, norm: float) -> str:
        """Say that gradients are clipped to a norm, or to less, already; or return ""."""
        if self.clipped is None or self.clipped > norm:
            return ""
        return f"gradients are clipped to {self.clipped:g} already"

    @classmethod
    def of(cls, window: FailureWindow) -> "StepUses":
        """Run the first step of the window and look."""
        setup = window.setup
        seen: set[str] = set()

        def attention(original: Callable[..., Any]) -> Callable[..., Any]:
            def called(*args: Any, **kwargs: Any) -> Any:
                seen.add("attention")
                return original(*args, **kwargs)

            return called

        def autocast(original: Callable[..., Any]) -> Callable[..., Any]:
            def entered(self: Any) -> Any:
                if self._enabled:
                    seen.add("autocast")
                return original(self)

            return entered

        window.restore()
        taps = [
            Tap(functional, "scaled_dot_product_attention", attention),
            Tap(torch.amp.autocast_mode.autocast, "__enter__", autocast),
        ]
        try:
            for kind in {window.kind(step): step for step in reversed(window.steps)}.values():
                window.one(kind)
        finally:
            for tap in reversed(taps):
                tap.remove()
        modules = [module for model in setup.models.values() for module in model.modules()]
        alike = window.like(window.at(window.onset))
        steps = [step for step in alike if step.step < window.onset]
        norms = [phase.max_norm for phase in setup.phases]
        limits = [norm for norm in norms if norm is not None]
        return cls(
            attention="attention" in seen,
            compiled=any(map(_is_compiled, modules)),
            reduced="autocast" in seen or any(p.dtype in HALF for p in parameters_of(setup)),
            dropout=any(drops(module) and module.training for module in modules),
            epsilon=any("eps" in group for group in groups_of(setup)),
            adam=any("exp_avg_sq" in s for o in setup.optimizers for s in o.state.values()),
            clipped=max(limits) if limits and len(limits) == len(norms) else None,
            before=steps[-1] if steps else None,
            other=steps[len(steps) // 2] if len(steps) > 2 else None,
            lower=_lower(window),
        )


def instead(window: FailureWindow, step: Step) -> WindowEdit:
    """Give the steps that fail the batch of another one."""

    def batches(number: int, own: list[Batch]) -> list[Batch]:
        return window.batches(step) if number in window.bad else own

    return WindowEdit(batches=batches)


def _as_many_batches(window: FailureWindow) -> WindowEdit | None:
    """Give steps as many batches as those before the failure had, if they have more."""
    counts = {step.step: len(window.given(step)) for step in window.like(window.at(window.onset))}
    before = [count for step, count in counts.items() if step < window.onset]
    usual = statistics.mode(before) if before else 0
    if not 0 < usual < counts.get(window.onset, 0):
        return None
    return WindowEdit(batches=lambda _, own: own[:usual])


def _lower(window: FailureWindow) -> Step | None:
    """Return a step with the rates from before a schedule raised or broke them; None if not."""
    earlier = earlier_rate(window.run, window.failing)
    if earlier is not None:
        failing = window.at(window.failing)
        rates = tuple(tuple(earlier.share * rate for rate in group) for group in failing.rates)
        return replace(failing, rates=rates)
    return window.steps[0] if raises_rate(window.steps, window.failing) else None


def _is_compiled(module: nn.Module) -> bool:
    return module._compiled_call_impl is not None or type(module).__name__ == "OptimizedModule"  # noqa: SLF001
