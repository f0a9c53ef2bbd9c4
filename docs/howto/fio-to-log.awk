# awk -v directory=/where/it/ran -f fio-to-log.awk FILE.iolog > LOG
function escaped(path) {
    gsub(/\\/, "\\134", path); gsub(/ /, "\\040", path); gsub(/\t/, "\\011", path)
    return path
}
function need(path, up) {
    if (path in there) return
    up = path
    if (sub("/[^/]+/?$", "", up)) need(up "/")
    there[path]
    print (path ~ "/$" ? "mkdir " escaped(substr(path, 1, length(path) - 1)) : "create " escaped(path))
}
BEGIN { print "agelab-operations 1" }
/^fio version/ { timed = $3 == 3; next }
timed { sub(/^[0-9]+ /, "") }
index($0, directory "/") != 1 || !match($0, / (add|open|read|write|sync|datasync)( [0-9]+)*$/) { next }
{
    file = substr($0, length(directory) + 2, RSTART - length(directory) - 2)
    split(substr($0, RSTART + 1), word, " ")
    need(file)
}
word[1] == "write" { print "write", escaped(file), word[2], word[3] }
word[1] ~ /sync/ { print "fsync", escaped(file) }
