"""What fills a disk: corpora and operation histories."""
