"""`python -m holter.scripts.cures FOLDER TRIAL ...`: one trial of a script, as a worker runs it."""

import sys

from holter.scripts.cures.elsewhere import run_handed_out

if __name__ == "__main__":
    run_handed_out(sys.argv[1:])
