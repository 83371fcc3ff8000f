"""The command line as `python -m ndd_search`, for an environment whose scripts are not on the path."""

import sys

from ndd_search.cli import main

if __name__ == "__main__":
    sys.exit(main())
