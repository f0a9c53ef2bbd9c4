#!/bin/sh
# Install what agelab needs: the host packages that are missing, then the project's own .venv.
# Called by make; sh agelab/setup.sh [run|site|test]. Does nothing, at once, when all is there.
# Exit 3: this host cannot be set up as it is (the message says what to install).
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
unset PYTHONPATH PYTHONHOME
purpose=${1:-run}
case $purpose in
run) lock=requirements.txt ;;
site) lock=requirements-site.txt ;;
test) lock=requirements-test.txt ;;
*) echo "agelab: setup is for 'run', 'site' or 'test', not '$purpose'" >&2 && exit 2 ;;
esac

# The distribution's Python, whatever the user's PATH prefers: python3-libvirt belongs to it.
python=/usr/bin/python3
packages_files=agelab/host-packages.txt
if [ "$purpose" = test ]; then packages_files="$packages_files tests/host-packages.txt"; fi
stamp=.venv/agelab-setup
log=build/setup.log
apt_log=build/packages.log
installing=

say() { echo "agelab: $*" >&2; }
cannot() {
    say "$@"
    if [ -n "$installing" ]; then wait "$installing" || true; fi
    exit 3
}
last_error() { grep -E "^(E:|ERROR:|error:)" "$1" | tail -n 1; }

# --- host packages ---------------------------------------------------------------------------------
present() {
    case $1 in
    -) return 1 ;;
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

# A package is there when dpkg says so, or when its program came another way; one that dpkg was
# interrupted in is not, though its program may be in place.
missing_packages() {
    # shellcheck disable=SC2086
    names=$(sed -n 's/^\([a-z0-9][^ ]*\) .*/\1/p' $packages_files)
    # shellcheck disable=SC2086
    states=" $(dpkg-query -W -f '${Package}=${db:Status-Status} ' $names 2>/dev/null || true)"
    # shellcheck disable=SC2086
    cat $packages_files | while read -r package program; do
        case $package in '' | '#'*) continue ;; esac
        case $states in
        *" $package=installed "*) ;;
        *" $package=not-installed "* | *" $package=config-files "*) present "$program" || echo "$package" ;;
        *" $package="*) echo "$package" ;;
        *) present "$program" || echo "$package" ;;
        esac
    done | tr '\n' ' '
}

# pip needs Python alone, so the others are installed beside it.
install_packages() {
    ask="install these Debian packages, then run make again: ${wanted% }"
    command -v apt-get >/dev/null || cannot "this host has no apt-get; $ask"
    if [ "$(id -u)" = 0 ]; then
        root=env
    elif sudo -n true 2>/dev/null; then
        root="sudo -n env"
    elif command -v sudo >/dev/null && [ -t 0 ]; then
        root="sudo env"
    else
        cannot "not root, and sudo is of no use here; $ask"
    fi
    take_lock
    wanted=$(missing_packages)
    if [ -z "$wanted" ]; then return; fi
    say "installing Debian packages: ${wanted% }"
    # A daemon that a package starts would inherit descriptor 9 and hold the lock for good: closed.
    apt="$root DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3"
    # A list that cannot be refreshed is no reason to stop: the packages may be within reach all the same.
    $apt update >"$apt_log" 2>&1 9>&- </dev/null || true
    case " $wanted" in
    *" python3-venv "*) install python3-venv || not_installed ;;
    esac
    # shellcheck disable=SC2086
    install $wanted &
    installing=$!
}

install() { $apt install --no-install-recommends "$@" >>"$apt_log" 2>&1 9>&- </dev/null; }
not_installed() { cannot "apt-get could not install them: $(last_error "$apt_log") (all of it: $apt_log)"; }

# Two makes at once: the second waits, then finds the work done.
take_lock() {
    mkdir -p build
    exec 9>>build/setup.lock
    flock 9
}

# --- .venv -----------------------------------------------------------------------------------------
# shellcheck disable=SC2046
identity() { echo $(readlink -f $python; sha256sum requirements.txt requirements-site.txt requirements-test.txt); }

# The stamp is written last and says for which purpose, and from what, .venv was made.
venv_made_for() {
    [ -x .venv/bin/agelab ] && [ -r $stamp ] || return 1
    { read -r made_for && read -r made_of; } <$stamp || return 1
    [ "$made_for" = "$1" ] && [ "$made_of" = "$(identity)" ]
}

# The test environment holds all of the others, the site's all of a run's: each serves those purposes, too.
venv_ready() { venv_made_for test || venv_made_for "$purpose" || { [ "$purpose" = run ] && venv_made_for site; }; }

pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@" >>"$log" 2>&1 </dev/null; }

make_venv() {
    take_lock
    if venv_ready; then return; fi
    $python -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        cannot "agelab needs Python 3.11 or newer as $python (Debian 12 has it)"
    say "installing Python packages into .venv"
    : >"$log"
    if venv_made_for run || venv_made_for site; then
        # Adding to it leaves a scenario that runs from it at this moment alone.
        rm -f $stamp
    else
        # What an interrupted install left behind is never built upon.
        rm -rf .venv
        $python -m venv --system-site-packages .venv >"$log" 2>&1 </dev/null ||
            cannot "$python could not make .venv: $(last_error "$log") (all of it: $log)"
    fi
    pip install --no-compile --require-hashes -r $lock && pip install --no-compile --no-build-isolation --no-deps -e . ||
        cannot "pip could not install the Python packages: $(last_error "$log") (all of it: $log)"
    # pip compiles them one after the other; what does not compile is a package's own example of that.
    .venv/bin/python -m compileall -q -j 0 .venv/lib >>"$log" 2>&1 </dev/null || true
    printf '%s\n%s\n' "$purpose" "$(identity)" >$stamp.new
    mv $stamp.new $stamp
}

wanted=$(missing_packages)
if [ -n "$wanted" ]; then install_packages; fi
venv_ready || make_venv
if [ -n "$installing" ] && ! wait "$installing"; then
    installing=
    not_installed
fi
