#!/usr/bin/env bash
# The feature-based approach to named entities (Devlin et al. 2018, section 5.3, table 7): layers of a
# checkpoint that is not trained, a two-layer BiLSTM on top; and fine-tuning, to compare with.
#
#     recipes/runs/feature_ner.sh --preset bert-base-cased/ --data conll2003/ --benchmark conll2003 \
#         --blocks 12 --output runs/features -- --whole-documents
#
# --data has files in CoNLL's format; --blocks is the number of the checkpoint's blocks, and what
# follows -- goes to every run of recipes/finetune.py. EPOCHS (10), RATE (1e-3) and LSTM (768, units
# of each direction) are read from the environment. In the end tables.md has the paper's table with a
# column of ours. Given again, the command goes on where it was stopped.
set -euo pipefail
cd "$(dirname "$0")/../.."
preset= data= benchmark=wnut17 blocks=12 output=runs/features more=()
while [ $# -gt 0 ]; do
    case $1 in
        --preset) preset=$2 ;; --data) data=$2 ;; --benchmark) benchmark=$2 ;;
        --blocks) blocks=$2 ;; --output) output=$2 ;;
        --) shift; more=("$@"); break ;;
        *) echo "Expected --preset, --data, --benchmark, --blocks, --output or --. Received: $1" >&2
           exit 2 ;;
    esac
    shift 2
done

finetune() { # name, preset, flags
    local run=$output/$1/ner preset=$2
    shift 2
    [ -e "$run/finished.json" ] && return
    python recipes/finetune.py "$benchmark" --preset "$preset" --data "$data" --output "$run" \
        --by-length "$@" ${more[@]+"${more[@]}"}
}

features() { # name, how layers become one, layers
    local name=$1 combine=$2
    shift 2
    [ -e "$output/$name/start" ] || python recipes/add_bilstm.py --preset "$preset" \
        --output "$output/$name/start" --num-lstm-layers 2 --lstm-dim "${LSTM:-768}" \
        --combine "$combine" --layers "$@"
    finetune "$name" "$output/$name/start" --epochs "${EPOCHS:-10}" --learning-rates "${RATE:-1e-3}"
}

features embeddings concatenate 0
features second-to-last concatenate -2
features last concatenate -1
features sum-last-four weighted_sum -4 -3 -2 -1
features concat-last-four concatenate -4 -3 -2 -1
# shellcheck disable=SC2046
features sum-all weighted_sum $(seq 1 "$blocks")
finetune fine-tuned "$preset" --learning-rates 5e-5

python recipes/ablation_tables.py "$output"
