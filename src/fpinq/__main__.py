"""python -m fpinq is the command line."""

import sys

from fpinq.cli.main import main

sys.exit(main())
