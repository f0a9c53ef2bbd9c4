cp -r ../in copy
tar xf ../in.tar
mv "in/sub/c d" "in/ä"
mv in/sub moved
echo more >> copy/a
echo other > copy/a
truncate -s 5000 moved/b
dd if=/dev/zero of=moved/b bs=1000 seek=2 count=1 conv=notrunc,fsync 2>/dev/null
(cd copy; mkdir deep; echo x > deep/y; rm -r sub)
echo temporary > t; rm t
rmdir none 2>/dev/null
true
