"""Observation: the recording of a script, with what it prints, shows in its source and leaves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holter.record.notices import tell
from holter.scripts.discovery import Discovery
from holter.scripts.running import Script

if TYPE_CHECKING:
    from holter.watching.collectors import Collector
    from holter.watching.collectors.lane import LightCollector
    from holter.watching.recorder import Recorder


class Observation:
    """Watches what a script trains and listens to what it prints, from the import of torch on.

    With `afterwards`, what the examination at the end needs of the training is kept.
    """

    def __init__(
        self,
        script: Script,
        recorder: "Recorder",
        *,
        afterwards: bool = False,
        collectors: "Sequence[Collector | LightCollector] | None" = None,
        **options: Any,
    ) -> None:
        from holter.scripts.figures import Figures
        from holter.scripts.keepsake import Keepsake
        from holter.scripts.printed import logging_metrics
        from holter.scripts.printing import Printing
        from holter.watching.collectors import all_collectors
        from holter.watching.watch import Watch

        chosen = list(all_collectors() if collectors is None else collectors)
        self._script, self._recorder = script, recorder
        self._keepsake = Keepsake() if afterwards else None
        if self._keepsake is not None:
            chosen += [self._keepsake, *self._keepsake.rows.collectors]
        self.watch = Watch(recorder, collectors=chosen, **options)
        if self._keepsake is not None:
            self.watch.hear_loaders(self._keepsake.loader_begins)
        Discovery(self.watch)
        self._figures = Figures(lambda: recorder.steps)
        self._printing = Printing(
            self._figures.hear, logging_metrics(lambda metrics: self.watch.log(**metrics))
        )

    def conclude(self, *, source: bool = True) -> None:
        """Record the numbers that the script has printed, and what its source shows."""
        from holter.scripts.reading import events

        self._printing.stop()
        for series in self._figures.series():
            self._recorder.event(series)
        if not source:
            return
        try:
            for event in events(self._script):
                self._recorder.event(event)
        except Exception as error:  # of no importance to the training
            tell(f"the source was not examined completely ({type(error).__name__}: {error})")

    def examine(self, seconds: float) -> None:
        """Examine what the script has left, after so many seconds; not beside other processes."""
        if self._keepsake is None:
            return
        from holter.scripts.afterwards import examine, is_alone

        if not is_alone():
            return
        try:
            examine(self.watch, self._keepsake, self.watch.path, seconds=seconds)
        except KeyboardInterrupt:  # the report is about what is known
            pass
        except Exception as error:
            tell(
                "model and data could not be examined after the script had ended"
                f" ({type(error).__name__}: {error})"
            )
