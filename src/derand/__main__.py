"""`python -m derand`: the command line."""

from derand.cli import main

main()
