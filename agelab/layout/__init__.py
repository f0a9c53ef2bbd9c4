"""Where the files of a filesystem lie: maps, measures of them, free space, pictures."""
