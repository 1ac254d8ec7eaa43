"""`python -m mpplan` is `mpplan`."""

import sys

from mpplan.app import main

if __name__ == "__main__":
    sys.exit(main())
