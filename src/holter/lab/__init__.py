"""The lab: a training run again on purpose, to find out what it cannot show by itself.

What belongs here needs torch, works on a copy of the training's state, and writes ordinary runs. It
measures; rules conclude. Module by module, from the base up:

- `setup`: `Setup`, what a training step needs; `setup_functions`: a setup from `module:function`.
- `randomness`, `state`: snapshots of all that a step may change, restored and proven by a hash.
- `batches`, `calls`: batches taken apart; the calls that a step makes to the model and the loss.
- `changes/`: the library of interventions, one file a family; a new one goes there.
- `experiments/`: the active tests, one experiment a file; packages with an underscore are their
  parts.
- `birth/`: which operation gave the first value that is not finite.
- `replay/`: a captured failure, reproduced, traced, and run again under changes.
- `writing`, `running`, `first_steps`: the run that experiments write to, how they are run, and the
  recording of a setup's first steps.
- `schedules`: learning-rate schedules that are ready to use.
"""
