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
    said=$(agelab run "${SCENARIO:-aging-ext4}" --kernel "$1" --seeds "${SEEDS:-1,2,3,4,5}") || ended=$?
    printf '%s\n' "$said" >&2
    test "$ended" -le 1 || exit "$ended"    # wrong input, or not on this host: there is no run
    # Not "latest", which another job of the same store may have begun.
    printf '%s\n' "$said" | sed -n 's/^a page to read: agelab report \([^ ]*\) -o report.html$/\1/p' | grep . || exit 3
    return "$ended"
}

base=$(run "$BASE") || { ended=$?; test "$ended" = 1 || exit "$ended"; failed=1; }
judged=$(run "$KERNEL") || { ended=$?; test "$ended" = 1 || exit "$ended"; failed=1; }
agelab export "$base" "$judged" --format junit -o "$OUTPUT/cells.xml" --force
agelab report "$base" "$judged" -o "$OUTPUT/report.html"
agelab compare "$base" "$judged" --markdown --gate "${PERCENT:-5}" --junit "$OUTPUT/gate.xml" --force \
    > "$OUTPUT/summary.md" || failed=$?
exit "$failed"
