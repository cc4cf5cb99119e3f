"""`python -m sherlorch` is the same as `sherlorch`."""

import sys

from sherlorch.cli import main

if __name__ == "__main__":
    sys.exit(main())
