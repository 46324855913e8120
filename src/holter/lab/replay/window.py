"""A captured failure put back into a training, to be run again, unchanged or with changes."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.batches import cloned
from holter.lab.setup import Batch, Setup
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.signals import AMP_SCALE, LOSS
from holter.watching.blackbox.capture import Capture, Fetched, Step
from holter.watching.blackbox.shadow import held_by


@dataclass(frozen=True, slots=True)
class Trial:
    """What a window gave when it was run: a loss and a gradient norm for each step."""

    steps: tuple[int, ...]
    losses: tuple[float, ...]
    norms: tuple[float, ...]
    error: str = ""  # what ended it early, if something did

    @property
    def first_bad(self) -> int | None:
        """The first step whose loss or gradient norm is not finite."""
        for step, loss, norm in zip(self.steps, self.losses, self.norms, strict=True):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                return step
        return None


@dataclass(slots=True)
class Change:
    """What is done differently in a trial; nothing by default.

    `around` is entered for the whole trial, `prepared` after the state was put back, `before` each
    step with its number; `batches` says what a step is given instead; `skips` names steps that are
    left out; `rate` multiplies learning rates, `held` is a step whose rates all steps are given;
    `max_norm` clips.
    """

    name: str
    around: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    prepared: Callable[[Setup], None] | None = None
    before: Callable[[Setup, int], None] | None = None
    batches: Callable[[int, list[Batch]], list[Batch]] | None = None
    skips: frozenset[int] = frozenset()
    rate: float = 1.0
    held: Step | None = None
    max_norm: float | None = None


class FailureWindow:
    """The steps of a capture in a setup: restored exactly, run any number of times."""

    def __init__(
        self,
        setup: Setup,
        capture: Capture,
        run: Run | None = None,
        *,
        drawn: Mapping[int, Batch] | None = None,
    ) -> None:
        self.setup, self.capture, self.run = setup, capture, run
        self._randoms: list[tuple[Tensor, Tensor | None]] = []  # after each batch that was made
        self._drawn = drawn or {}  # of steps that no loader feeds: what the script gave them
        self.steps = [each for each in capture.steps if each.fetches or not _fetches(capture)]
        self._models = _paired_models(setup.models, capture.state)
        self._optimizers = _paired_optimizers(setup.optimizers, capture.plain, capture.state)
        _require_fitting(self._models, capture)
        self.failing = capture.alarm.step  # losses are not read at each step: it may be earlier
        self.onset = self.failing  # the step that left the band first, from which on it went wrong
        self.bad = frozenset(
            [self.onset]
        )  # it, and those after it whose batch older weights fail on

    def recorded(self, step: int) -> float | None:
        """The loss that the run recorded for a step, if it did; each phase has its own steps."""
        if self.run is None or LOSS not in self.run:
            return None
        for series in self.run[LOSS].values():
            place = int(np.searchsorted(series.steps, step))
            if place < len(series) and series.steps[place] == step:
                return float(series.values[place])
        return None

    def restore(self) -> None:
        """Put the state of before the window back: weights, buffers, optimizers."""
        with torch.no_grad():
            for label, model in self._models.items():
                for name, each in (*model.named_parameters(), *model.named_buffers()):
                    each.copy_(self.capture.state[f"model/{label}/{name}"])
                    each.grad = None
            for label, optimizer in self._optimizers.items():
                _restore_optimizer(optimizer, label, self.capture)

    def play(
        self, change: Change | None = None, *, until: int | None = None, beyond: int = 0
    ) -> Trial:
        """Run the window from its start to the step `until` (the alarm's), and `beyond` it."""
        change = change or Change("as it was")
        last = (self.failing if until is None else until) + beyond
        self.restore()
        steps, losses, norms, error = [], [], [], ""
        with contextlib.ExitStack() as stack:
            stack.enter_context(change.around())
            if change.prepared is not None:
                change.prepared(self.setup)
            for each in self.steps:
                if each.step > last:
                    break
                if each.step in change.skips:
                    continue
                try:
                    loss, norm = self.one(each, change)
                except Exception as failure:
                    error = f"{type(failure).__name__}: {failure}"
                    break
                steps.append(each.step)
                losses.append(loss)
                norms.append(norm)
        return Trial(tuple(steps), tuple(losses), tuple(norms), error)

    def one(self, step: Step, change: Change) -> tuple[float, float]:
        """Run one step of the window; its loss, and the norm of its gradients before clipping.

        Of several phases it is the first's, but for a norm or a loss that is not finite.
        """
        self.set_rates(change.held or step, change.rate)
        batches = self.batches(step)
        if change.batches is not None:
            batches = change.batches(step.step, batches)
        if change.before is not None:
            change.before(self.setup, step.step)
        self.set_scale(step.step)
        norms: list[float] = []
        with _measuring(self.setup, norms, change.max_norm):
            means = self._as_drawn(batches).losses_of_step(*batches)
        losses = [len(batches) * each for each in means]  # their sum is what a run records
        bad = [each for each in (*norms, *losses[1:]) if not math.isfinite(each)]
        return losses[0], bad[0] if bad else norms[0] if norms else math.nan

    def batches(self, step: Step) -> list[Batch]:
        """What a step was given, with the random state that it had right after it was fetched."""
        self._randoms = []
        made = [self._batch(fetch) for fetch in step.fetches]
        if not made:
            _set_random(step.random, step.random_cuda)
            # Drawn once more even where it is known: the random numbers that follow depend on it.
            own = [self.setup.prepare(None)] if self.setup.prepare else self.setup.batches(1)
            made = [self._drawn[step.step]] if step.step in self._drawn else own
        return made

    def given(self, step: Step) -> list[Callable[[], Batch]]:
        """What makes each batch of a step, with the random state that it had then."""
        if step.fetches:
            return [partial(self._batch, fetch) for fetch in step.fetches]
        return [partial(lambda made: made, each) for each in self.batches(step)]

    def _batch(self, fetch: Fetched) -> Batch:
        batch = cloned(fetch.batch)  # on the host, as the loader gave it
        _set_random(fetch.random, fetch.random_cuda)
        made = batch if self.setup.prepare is None else self.setup.prepare(batch)
        self._randoms.append(_random())
        return made

    def _as_drawn(self, batches: Sequence[Batch]) -> Setup:
        """The setup; of several batches each has the random state that followed its own fetch."""
        if len(batches) < 2 or len(self._randoms) != len(batches):
            return self.setup
        first, *others = self.setup.phases
        randoms = iter(self._randoms)

        def loss(batch: Batch) -> Tensor:
            _set_random(*next(randoms))
            return first.loss(batch)

        return replace(self.setup, phases=(replace(first, loss=loss), *others))

    def set_rates(self, step: Step, factor: float = 1.0) -> None:
        """Give every group the learning rate that it had in a step, times `factor`."""
        for optimizer, rates in zip(self._optimizers.values(), step.rates, strict=False):
            for group, rate in zip(optimizer.param_groups, rates, strict=False):
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(rate * factor)
                else:
                    group["lr"] = rate * factor

    def set_scale(self, step: int) -> None:
        """Give the loss scaler the scale that was recorded for a step."""
        if self.run is None or AMP_SCALE not in self.run:
            return
        series = next(iter(self.run[AMP_SCALE].values()))
        place = int(np.searchsorted(series.steps, step, "right")) - 1
        for phase in self.setup.phases:
            if phase.scaler is not None and place >= 0:
                phase.scaler.update(float(series.values[place]))


def _fetches(capture: Capture) -> bool:
    return any(step.fetches for step in capture.steps)


def _paired_models(
    models: Mapping[str, nn.Module], state: Mapping[str, Tensor]
) -> dict[str, nn.Module]:
    """The models by the labels that the capture has for them."""
    labels = list(dict.fromkeys(n.split("/")[1] for n in state if n.startswith("model/")))
    if set(models) <= set(labels):
        return dict(models)
    if len(models) != len(labels):
        raise HolterError(
            f"The capture is of {len(labels)} models ({', '.join(labels)}), the training that is to"
            f" replay it has {len(models)}."
        )
    return dict(zip(labels, models.values(), strict=True))


def _paired_optimizers(
    optimizers: Sequence[Optimizer], plain: Mapping[str, Any], state: Mapping[str, Tensor]
) -> dict[str, Optimizer]:
    """The optimizers by the labels that the capture has for them: by class, groups and shapes."""
    left = list(optimizers)
    paired: dict[str, Optimizer] = {}
    for label, about in plain.items():
        alike = [
            o
            for o in left
            if type(o).__name__ == about["class"]
            and len(about["groups"]) == len(o.param_groups)
            and len(about["state"]) == len(held_by(o))
            and _fits(o, label, state)
        ]
        if not alike:
            raise HolterError(
                f"No optimizer of the training is like the captured {about['class']}."
            )
        paired[label] = alike[0]
        left.remove(alike[0])
    return paired


def _fits(optimizer: Optimizer, label: str, state: Mapping[str, Tensor]) -> bool:
    """Whether the captured moments have the shapes of the parameters: two may be alike else."""
    return all(
        not kept.ndim or kept.shape == each.shape
        for place, each in enumerate(held_by(optimizer))
        for name in ("exp_avg", "momentum_buffer", "square_avg", "sum")
        if (kept := state.get(f"optimizer/{label}/{place}/{name}")) is not None
    )


def _require_fitting(models: Mapping[str, nn.Module], capture: Capture) -> None:
    for label, model in models.items():
        for name, each in (*model.named_parameters(), *model.named_buffers()):
            kept = capture.state.get(f"model/{label}/{name}")
            if kept is None or kept.shape != each.shape:
                what = "is not in the capture" if kept is None else f"is {tuple(kept.shape)} there"
                raise HolterError(
                    f"The model has changed since the capture: {name} {tuple(each.shape)} {what}."
                )


def _restore_optimizer(optimizer: Optimizer, label: str, capture: Capture) -> None:
    about = capture.plain[label]
    for group, kept in zip(optimizer.param_groups, about["groups"], strict=True):
        for key, value in kept.items():
            if isinstance(group.get(key), Tensor):
                group[key].fill_(value)
            elif key in group:
                group[key] = tuple(value) if isinstance(group[key], tuple) else value
    optimizer.state.clear()
    for place, parameter in enumerate(held_by(optimizer)):
        start = f"optimizer/{label}/{place}/"
        tensors = {n[len(start) :]: t for n, t in capture.state.items() if n.startswith(start)}
        plain = about["state"].get(str(place), {})
        if tensors or plain:
            optimizer.state[parameter] = {
                **plain,
                # A count of steps stays on the host, unless it was captured with the device's help.
                **{n: t.clone().to(_home(n, optimizer, parameter)) for n, t in tensors.items()},
            }
        parameter.grad = None


def _home(name: str, optimizer: Optimizer, parameter: Tensor) -> torch.device:
    group = next(g for g in optimizer.param_groups if any(p is parameter for p in g["params"]))
    on_device = bool(group.get("fused")) or bool(group.get("capturable"))
    return parameter.device if name != "step" or on_device else torch.device("cpu")


def _set_random(state: Tensor, cuda: Tensor | None) -> None:
    torch.set_rng_state(state)
    if cuda is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(cuda)


def _random() -> tuple[Tensor, Tensor | None]:
    cuda = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    return torch.get_rng_state(), cuda


@contextlib.contextmanager
def _measuring(setup: Setup, norms: list[float], max_norm: float | None) -> Iterator[None]:
    """Measure gradients before each update, and clip them if asked to."""

    def hook(optimizer: Optimizer, *_: Any) -> None:
        held = [each for each in held_by(optimizer) if each.grad is not None]
        if max_norm is not None:
            norms.append(float(nn.utils.clip_grad_norm_(held, max_norm)))
        else:
            norms.append(
                float(nn.utils.get_total_norm([p.grad for p in held if p.grad is not None]))
            )

    handles = [each.register_step_pre_hook(hook) for each in setup.optimizers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
