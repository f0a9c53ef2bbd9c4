#!/bin/sh
cd "$AGELAB_TREE" && exec "$AGELAB_PYTHON" -m tests.unit.cluster_worker "$@"
