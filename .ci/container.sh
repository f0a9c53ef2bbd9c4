#!/bin/bash
# One cell outside and in a container without privileges or network: the same key and digest, or it fails.
# usage: .ci/container.sh [BASE]; needs buildah and a user who is not root, and reaches the image BASE (debian:bookworm).
set -euo pipefail
cd "$(dirname "$0")/.."
export AGELAB_HOME=${AGELAB_HOME:-$PWD/.agelab} BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
cell=(tests/vm/small.toml --filesystem ext4)
sh agelab/setup.sh run
.venv/bin/agelab run "${cell[@]}" --fresh
outside=$(.venv/bin/agelab show latest --json | grep -E '"(inputs_key|digest)":')
buildah build --build-arg BASE="${1:-debian:bookworm}" --tag agelab .
container=$(buildah from agelab)
trap 'buildah rm "$container" >/dev/null' EXIT
# Under chroot isolation buildah heeds no --network none: the namespace is made around it.
inside() {
    buildah unshare unshare --net buildah run --volume "$AGELAB_HOME:/store" "$container" -- .venv/bin/agelab "$@"
}
inside run "${cell[@]}" --fresh
within=$(inside show latest --json | grep -E '"(inputs_key|digest)":')
diff <(echo "$outside") <(echo "$within")
echo "the same key and digest outside and in the container"
