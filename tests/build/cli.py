"""The command as a user starts it."""

import sys

AGELAB = [sys.executable, "-c", "import sys; from agelab.cli import main; sys.exit(main())"]
