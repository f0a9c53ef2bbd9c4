"""Files, processes, confinement, hashes, errors: what every other package stands on."""
