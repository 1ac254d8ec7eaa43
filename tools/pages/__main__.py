"""`python -m tools.pages` is `make examples`."""

from tools.pages.write import main

main()
