"""Scripts: a user's script, run as Python runs it, watched, or turned into a setup.

- `running`: runs a script or module with its own arguments, output and traceback.
- `launching`: `holter run`: finds the models and optimizers of a script and watches them.
- `keepsake`, `afterwards`: what is kept of a script until it has ended, and examined then.
- `terminal_title`: steps, loss and alerts in the title of the terminal while a script runs.
- `recognition/`: extracts the training step of a script as a `Setup`, and verifies it.
- `demo_training`: the broken script of `holter demo`.
"""
