"""Learning-rate schedules, drawn before they are used."""

from collections.abc import Mapping
from typing import Any

from holter.dashboard.encoding import numbers
from holter.lab.schedules import OneCycle, WarmupCosine
from holter.record.errors import HolterError

_POINTS = 600


def schedule(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rate by step, and the code that builds the schedule."""
    peak, steps = float(options["peak"]), int(options["steps"])
    warmup = round(steps * float(options["warmup"]) / 100)
    try:
        if options["kind"] == "one-cycle":
            warmup = max(warmup, 2)
            share: OneCycle | WarmupCosine = OneCycle(steps, warmup)
            code = f"holter.one_cycle(optimizer, peak={peak:g}, steps={steps}, warmup={warmup})"
        else:
            floor = float(options["floor"]) / 100
            share = WarmupCosine(warmup, steps, floor)
            tail = f", floor={floor:g}" if floor else ""
            code = f"holter.warmup_cosine(optimizer, warmup={warmup}, steps={steps}{tail})"
    except ValueError as error:
        raise HolterError(f"Invalid schedule: {error}.") from error
    at = sorted({*range(0, steps, max(steps // _POINTS, 1)), warmup, steps - 1} - {steps})
    rates = [peak * share(step) for step in at]
    mean = sum(share(step) for step in at) / len(at)
    return {
        "steps": at,
        "rates": numbers(rates),
        "mean": peak * mean,
        "code": f"optimizer = torch.optim.AdamW(model.parameters(), lr={peak:g})\n"
        f"schedule = {code}\n"
        "# after each optimizer.step():\nschedule.step()",
    }
