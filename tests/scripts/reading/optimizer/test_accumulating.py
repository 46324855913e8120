"""Accumulated gradients and their schedules in sources."""

import pytest

from tests.scripts.reading.found import kinds

INNER = """
for step in range(100):
    {before}
    for _ in range(accum):
        {inside}
        loss = criterion(model(x), y){scale}
        loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
"""
OUTER = """
for epoch in range(3):
    for i, (x, y) in {over}:
        loss = criterion(model(x), y){scale}
        {backward}.backward()
        if {test}:
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize("zero", ["optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=True)"])
def test_gradients_that_are_erased_in_the_inner_loop(zero: str) -> None:
    text = INNER.format(before="pass", inside=zero, scale=" / accum")
    assert "erased accumulation" in kinds(text)
    assert "erased accumulation" not in kinds(
        INNER.format(before=zero, inside="pass", scale=" / accum")
    )


def outer(
    over: str = "enumerate(loader)",
    test: str = "(i + 1) % accum == 0",
    scale: str = " / accum",
    backward: str = "loss",
) -> set[str]:
    return kinds(OUTER.format(over=over, test=test, scale=scale, backward=backward))


@pytest.mark.parametrize("test", ["(i + 1) % accum == 0", "(i + 1) % args.accum_steps == 0",
                                  "(i + 1) % accum == 0 or i + 1 == len(loader)"])  # fmt: skip
def test_accumulated_losses_that_are_not_divided(test: str) -> None:
    assert "undivided accumulation" in outer(test=test, scale="")
    assert "undivided accumulation" in kinds(INNER.format(before="pass", inside="pass", scale=""))


@pytest.mark.parametrize(
    ("scale", "backward"),
    [(" / accum", "loss"), ("", "(loss / accum)"), (" * (1 / accum)", "loss"),
     ("", "scaler.scale(loss / accum)"), ("; loss /= accum", "loss")],
)  # fmt: skip
def test_accumulated_losses_that_are_divided(scale: str, backward: str) -> None:
    assert "undivided accumulation" not in outer(scale=scale, backward=backward)


@pytest.mark.parametrize(
    ("over", "test"),
    [("enumerate(loader)", "i % accum == 0"), ("enumerate(tqdm(loader))", "i % 4 == 0"),
     ("tqdm(enumerate(loader))", "not i % accum")],
)  # fmt: skip
def test_steps_after_the_first_batch(over: str, test: str) -> None:
    assert "step after the first batch" in outer(over, test)


@pytest.mark.parametrize(
    ("over", "test"),
    [("enumerate(loader, 1)", "i % accum == 0"), ("enumerate(loader, start=1)", "i % 4 == 0"),
     ("enumerate(loader)", "(i + 1) % accum == 0"), ("enumerate(loader)", "i % 4 == 3"),
     ("enumerate(loader)", "i % 1 == 0")],
)  # fmt: skip
def test_steps_after_several_batches(over: str, test: str) -> None:
    assert "step after the first batch" not in outer(over, test)


SCHEDULE = """
steps = {steps}
total = steps * epochs
scheduler = get_linear_schedule_with_warmup(optimizer, {given})
for epoch in range(epochs):
    for i, batch in enumerate(loader):
        loss = model(**batch).loss / accum
        loss.backward()
        if (i + 1) % accum == 0:
            optimizer.step()
            {inside}
            optimizer.zero_grad()
        {after}
"""


@pytest.mark.parametrize("given", ["int(0.1 * total), total", "10, num_training_steps=total",
                                   "10, epochs * len(loader)"])  # fmt: skip
def test_schedules_of_micro_batches(given: str) -> None:
    kind = "schedule of micro-batches"
    text = SCHEDULE.format(
        steps="len(loader)", given=given, inside="scheduler.step()", after="pass"
    )
    assert kind in kinds(text)
    text = SCHEDULE.format(
        steps="len(loader)", given=given, inside="pass", after="scheduler.step()"
    )
    assert kind not in kinds(text)


@pytest.mark.parametrize("steps", ["len(loader) // accum", "math.ceil(len(loader) / accum)",
                                   "(len(loader) + accum - 1) // accum"])  # fmt: skip
def test_schedules_of_updates(steps: str) -> None:
    given = "int(0.1 * total), total"
    text = SCHEDULE.format(steps=steps, given=given, inside="scheduler.step()", after="pass")
    assert not kinds(text) & {"schedule of micro-batches", "schedule by micro-batch"}
    text = SCHEDULE.format(steps=steps, given=given, inside="pass", after="scheduler.step()")
    assert "schedule by micro-batch" in kinds(text)


SCALED = """
scaler = torch.amp.GradScaler("cuda")
for x, y in loader:
    optimizer.zero_grad()
    scaler.scale(criterion(model(x), y)).backward()
    {step}
"""


@pytest.mark.parametrize(
    "step",
    [
        "optimizer.step()",
        "scaler.unscale_(optimizer); optimizer.step()",
        "optimizer.step(); scaler.update()",
    ],
)
def test_steps_beside_the_scaler(step: str) -> None:
    assert "bypassed scaler" in kinds(SCALED.format(step=step))


@pytest.mark.parametrize(
    "step",
    [
        "scaler.step(optimizer)",
        "out = scaler.step(optimizer)",
        "scaler.unscale_(optimizer); scaler.step(optimizer)",
    ],
)
def test_scalers_that_are_never_updated(step: str) -> None:
    assert "scaler never updated" in kinds(SCALED.format(step=step))
    found = kinds(SCALED.format(step=f"{step}; scaler.update()"))
    assert not found & {"scaler never updated", "bypassed scaler"}


def test_sums_of_gradients_without_clipping() -> None:
    text = INNER.format(before="pass", inside="pass", scale="")
    text = text.replace("clip_grad_norm_(model.parameters(), 1.0)", "pass")
    assert "undivided accumulation" not in kinds(text)
