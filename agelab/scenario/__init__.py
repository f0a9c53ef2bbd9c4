"""What a user writes: scenarios, drives, machines, layouts, filesystems, read with all errors at once."""
