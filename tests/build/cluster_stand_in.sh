#!/bin/sh
cd "$AGELAB_TREE" && exec "$AGELAB_PYTHON" -m tests.build.cluster_worker "$@"
