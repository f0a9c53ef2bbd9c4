#!/bin/sh
# {{ summary }}
# This runs the last good kernel and the first bad one, and puts them side by side.
{% if step %}
# With PROFILE=1 it also says in which functions of the kernel they differ.
{% endif %}
set -u
agelab=${AGELAB:-{{ agelab|sh }}}
export AGELAB_HOME="${AGELAB_HOME:-{{ home }}}"
cd {{ directory|sh }} || exit
before={{ before|sh }}
after={{ after|sh }}
{% if crash %}
for kernel in "$before" "$after"; do
  "$agelab" crash {{ crash }} --kernel "$kernel"
done
exit
{% elif not real_disks %}
said=$("$agelab" run {{ run }} --kernel "$before" --kernel "$after"{{ " ${PROFILE:+--profile}" if step }})
status=$?
printf '%s\n' "$said"
set -- $(printf '%s\n' "$said" | sed -n "s/.*: .*agelab'* sweep //p")
{% else %}{# real disks serve one run after the other #}
status=0
set --
for kernel in "$before" "$after"; do
  said=$("$agelab" run {{ run }} --kernel "$kernel") || status=$?
  printf '%s\n' "$said"
  set -- "$@" $(printf '%s\n' "$said" | sed -n "s/.*: .*agelab'* show \([^ ]*\).*/\1/p")
done
{% endif %}
test $# -eq 2 || exit "$status"
"$agelab" sweep "$@"{{ " " + metric if metric }}
{% if step %}
test -z "${PROFILE:-}" || "$agelab" profile "$2" {{ step|sh }} --against "$1"
{% endif %}
