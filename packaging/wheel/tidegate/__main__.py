"""`python -m tidegate …` is the command `tidegate …` of the same environment, for notebooks and jobs whose `PATH` lacks it."""

import os
import sys

from tidegate import command


def main() -> None:
    """Becomes the command, so signals and the exit code are its own."""
    try:
        path = command()
    except FileNotFoundError as error:
        sys.exit(f"tidegate: {error}")
    os.execv(path, [str(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
