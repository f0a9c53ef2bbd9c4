# awk -v word=WORD -v names="NAME ..." -f nearest.awk: print the name that takes the fewest changes of letters, if any is near.
function distance(a, b,    i, j, cost, best, row, old, before) {
    for (j = 0; j <= length(b); j++) row[j] = j
    for (i = 1; i <= length(a); i++) {
        before = row[0]; row[0] = i
        for (j = 1; j <= length(b); j++) {
            old = row[j]
            cost = before + (substr(a, i, 1) != substr(b, j, 1))
            best = row[j] < row[j - 1] ? row[j] : row[j - 1]
            row[j] = cost < best + 1 ? cost : best + 1
            before = old
        }
    }
    return row[length(b)]
}
BEGIN {
    count = split(names, name, " ")
    least = length(word) / 2
    for (n = 1; n <= count; n++) if ((d = distance(word, name[n])) <= least) { least = d - 0.5; nearest = name[n] }
    print nearest
}
