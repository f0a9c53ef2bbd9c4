"""Layout of files on a disk: extent maps, measures, free space, pictures."""
