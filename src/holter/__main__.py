"""`python -m holter` is `holter`."""

import sys

from holter._cli import main

sys.exit(main())
