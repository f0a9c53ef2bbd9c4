"""The speed of agelab itself. Each cell runs: none is served what an earlier one has found."""

import os

os.environ["AGELAB_FRESH"] = "1"
