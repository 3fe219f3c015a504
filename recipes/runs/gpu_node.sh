#!/usr/bin/env bash
# BERT base on all GPUs of one node, again and again until it is done.
#
#     DATA=books/ VOCABULARY=vocab.txt recipes/runs/gpu_node.sh
#     KERAS_BACKEND=torch recipes/runs/gpu_node.sh
set -euo pipefail
export KERAS_BACKEND="${KERAS_BACKEND:-jax}"
gpus=$(nvidia-smi --list-gpus | wc -l)
launcher=(python)
[ "$KERAS_BACKEND" = torch ] && launcher=(torchrun --nproc-per-node "$gpus")
exec recipes/runs/until_done.sh "${launcher[@]}" recipes/pretrain.py bert-base \
    --data "${DATA:-books/}" --vocabulary "${VOCABULARY:-vocab.txt}" \
    --dtype-policy mixed_bfloat16 --mesh "data=$gpus" --output "${OUTPUT:-runs/bert-base}"
