"""The command `derand`, and `python -m derand`: the command line.

Imports next to nothing before it can tell of Ctrl-C in one line.
"""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is being imported gives one line and exit code 130, too."""
    try:
        from derand.app.commands import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Error: stopped by Ctrl-C.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
