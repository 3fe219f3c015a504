#!/usr/bin/env bash
# BERT base on all hosts of a TPU pod slice, each of which runs this command with the same disk:
#
#     gcloud compute tpus tpu-vm ssh NAME --worker=all --command='cd keras-bert3 && recipes/runs/tpu_pod.sh'
set -euo pipefail
export KERAS_BACKEND=jax
exec recipes/runs/until_done.sh python recipes/pretrain.py bert-base --processes auto \
    --data "${DATA:-/mnt/books}" --vocabulary "${VOCABULARY:-/mnt/vocab.txt}" \
    --dtype-policy mixed_bfloat16 --output "${OUTPUT:-/mnt/runs/bert-base}"
