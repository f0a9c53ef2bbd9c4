"""The parts of a scenario that ages a disk and measures it beside a control."""

MEASURES = 'makes = "aged"\nmeasures = ["extents", "free_space"]\n'


HISTORY = """
[[steps]]
repeat = 4

[[steps.cycle]]
name = "copy"
run = 'cp -r "$SOURCE/." "copy-$REPETITION"'
origin = "estimated"

[[steps.cycle]]
name = "delete"
run = 'find "copy-$REPETITION" -type f | sort | awk "NR % 2" | xargs rm -f'
origin = "estimated"
"""


TESTS = """
[[tests]]
name = "read"
run = 'find . -type f -print0 | xargs -0 cat > /dev/null'
origin = "estimated"

[[tests]]
name = "random-read"
run = 'find . -type f -print0 | sort -z | random-read "$CORPUS_SEED" 50'
caches = "remount"
origin = "estimated"

[[tests]]
name = "filefrag"
run = "find . -type f -print0 | xargs -0 filefrag | awk '{ extents += $(NF - 2) } END { print extents }'"
records = "extents"
origin = "estimated"

[control]
run = 'cp -a "$AGED/." .'
"""
