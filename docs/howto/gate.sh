#!/bin/sh
# Run SCENARIO on the kernels BASE and KERNEL, and end with 1 where KERNEL is slower by more than PERCENT.
# BASE and KERNEL may be two commits of a tree: tree:linux@HEAD^ and tree:linux@HEAD.
# OUTPUT gets summary.md (the tables), gate.xml and cells.xml (JUnit) and report.html.
set -eu
: "${BASE:?the kernel to compare with}" "${KERNEL:?the kernel to judge}" "${OUTPUT:?a directory for what comes out}"
mkdir -p "$OUTPUT"
failed=0

run() {  # prints the run's name
    ended=0
    agelab run "${SCENARIO:-aging-ext4}" --kernel "$1" --seeds "${SEEDS:-1,2,3,4,5}" >&2 || ended=$?
    test "$ended" -le 1 || exit "$ended"    # wrong input, or not on this host: there is no run
    agelab show latest --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])'
    return "$ended"
}

base=$(run "$BASE") || { ended=$?; test "$ended" = 1 || exit "$ended"; failed=1; }
judged=$(run "$KERNEL") || { ended=$?; test "$ended" = 1 || exit "$ended"; failed=1; }
agelab export "$base" "$judged" --format junit -o "$OUTPUT/cells.xml"
agelab report "$base" "$judged" -o "$OUTPUT/report.html"
agelab compare "$base" "$judged" --markdown --gate "${PERCENT:-5}" --junit "$OUTPUT/gate.xml" \
    > "$OUTPUT/summary.md" || failed=$?
exit "$failed"
