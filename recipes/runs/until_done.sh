#!/usr/bin/env bash
# Run a command again until it has ended by itself: after a crash, a preemption or a kill, a run of
# recipes/pretrain.py goes on after its latest checkpoint.
#
#     recipes/runs/until_done.sh python recipes/pretrain.py bert-base --data books/ --output runs/base
#
# It gives up after five ends in a row that each came within a minute: that is a mistake, not bad luck.
set -uo pipefail
quick=0
child=
trap 'kill -TERM "$child" 2>/dev/null; wait "$child"; exit 143' TERM INT
while true; do
    started=$SECONDS
    "$@" &
    child=$!
    wait "$child"
    code=$?
    [ "$code" -eq 0 ] && exit 0
    if [ $((SECONDS - started)) -lt 60 ]; then quick=$((quick + 1)); else quick=0; fi
    echo "until_done: exit code $code; $((5 - quick)) quick ends left" >&2
    [ "$quick" -ge 5 ] && exit "$code"
done
