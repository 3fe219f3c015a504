#!/usr/bin/env bash
# The ablations of Devlin et al. 2018 (tables 5, 6 and 8, appendix C.1): models of 2 x 128,
# 4,000 steps on your text, a slice of each benchmark. With 3,000 steps, a tenth of them of 128 tokens,
# ROWS=8000, QUESTIONS=1500 and JOBS=1 it took 61 minutes of two cores on JAX. The defaults should
# take less (some 50 by the times of their parts, one at a time), which was not measured whole.
#
#     recipes/runs/ablations_bert.sh --data 'text/*.txt' --glue glue/ --ner wnut17/ --squad squad/ \
#         --output runs/ablations
#
# --data: files, folders or globs of plain text, blank lines between documents, such as a few novels
# or a sample of Wikipedia (5 MB are enough). --glue holds MNLI, QNLI, MRPC and SST-2 with their
# official files, --ner WNUT-17's, --squad train-v1.1.json and dev-v1.1.json. All of a development file
# is scored after each epoch: for an hour it should have a thousand rows, SQuAD's some hundred
# questions. What is left out, its columns stay empty. What follows -- goes to every fine-tuning, such
# as `-- --quoted`.
#
# Two runs at a time; what each prints goes to a file beside its folder, such as base/mrpc.log. JOBS (2;
# 1 on a GPU), STEPS (4000), ROWS (4000), QUESTIONS (500), EPOCHS (3) and RATE (3e-4) are read from
# the environment. Given again, the command goes on where it was stopped. In the end tables.md has
# the paper's tables with a column of ours.
set -euo pipefail
cd "$(dirname "$0")/../.."
data= glue= ner= squad= output=runs/ablations more=()
while [ $# -gt 0 ]; do
    case $1 in
        --data) data=$2 ;; --glue) glue=$2 ;; --ner) ner=$2 ;; --squad) squad=$2 ;;
        --output) output=$2 ;;
        --) shift; more=("$@"); break ;;
        *) echo "Expected --data, --glue, --ner, --squad, --output or --. Received: $1" >&2; exit 2 ;;
    esac
    shift 2
done
[ -n "$data" ] || { echo "Expected --data with text to pretrain on. Received: none" >&2; exit 2; }
steps=${STEPS:-4000} rows=${ROWS:-4000} questions=${QUESTIONS:-500}
half=$((steps / 2)) base=$output/base/pretrain/preset

# The functions below print commands; side_by_side reads and runs them.
side_by_side() { xargs -0 -r -n 1 -P "${JOBS:-2}" bash -euc; }

run() { # name, command: what it prints goes to $output/name.log
    local log=$output/$1.log name=$1
    shift
    mkdir -p "${log%/*}"
    printf '%q ' "$@"
    printf '> %q 2>&1 || { tail -n 20 %q >&2; exit 1; }; echo %q\0' "$log" "$log" "$name: finished"
}

pretrain() { # name, flags: a model in $output/name/pretrain
    local name=$1 known=() vocabulary=$base/vocab.txt
    shift
    [ -e "$output/$name/pretrain/finished.json" ] && return
    [ -e "$vocabulary" ] && known=(--vocabulary "$vocabulary")
    run "$name/pretrain" python recipes/pretrain.py micro --data "$data" --steps "$steps" \
        --warmup-steps $((steps / 10)) --long-fraction 0.02 --num-duplicates 3 --log-every "$half" \
        --output "$output/$name/pretrain" ${known[@]+"${known[@]}"} "$@"
}

finetune() { # name, task, benchmark, preset, folder of the data, flags: scores in $output/name/task
    local name=$1/$2 benchmark=$3 preset=$4 folder=$5
    shift 5
    [ -e "$output/$name/finished.json" ] && return
    run "$name" python recipes/finetune.py "$benchmark" --preset "$preset" --data "$folder" \
        --output "$output/$name" --most "$rows" --epochs "${EPOCHS:-3}" \
        --learning-rates "${RATE:-3e-4}" --batch-size 32 --sequence-length 64 --by-length \
        ${more[@]+"${more[@]}"} "$@"
}

glue() { # name, preset, tasks
    local name=$1 preset=$2 task
    shift 2
    [ -n "$glue" ] || return 0
    for task in "$@"; do
        case $task in mnli) folder=MNLI ;; qnli) folder=QNLI ;; mrpc) folder=MRPC ;; sst2) folder=SST-2 ;; esac
        finetune "$name" "$task" "$task" "$preset" "$glue/$folder"
    done
}

bilstm() { # name, preset, flags: a BiLSTM on top of it, in $output/name
    [ -e "$output/$1" ] ||
        run "$1" python recipes/add_bilstm.py --output "$output/$1" --preset "$2" "${@:3}"
}

entities() { # name, preset: the model trained, and its layers as features
    [ -n "$ner" ] || return 0
    finetune "$1" ner wnut17 "$2" "$ner"
    finetune "$1" ner-features wnut17 "$output/$1/features" "$ner" --learning-rates 1e-3
}

sizes=(1x64 2x64 4x128 4x192) mixes=(100-0-0 80-0-20 80-20-0 0-20-80 0-0-100)

pretrain base --presets-every "$half" | side_by_side # first, for its vocabulary
{
    pretrain no-nsp --objective mlm
    pretrain ltr --objective ltr
    # At a rate of 1e-3 the largest learns no more than how often a token occurs.
    for size in "${sizes[@]}"; do
        case $size in 4x192) rate=5e-4 ;; *) rate=1e-3 ;; esac
        pretrain "size-$size" --size "$size" --learning-rate "$rate"
    done
    for mix in "${mixes[@]}"; do
        # shellcheck disable=SC2046
        pretrain "mix-$mix" --mask-mix $(echo "$mix" | awk -F- '{ print $1 / 100, $2 / 100, $3 / 100 }')
    done
} | side_by_side
{
    bilstm ltr-bilstm/start "$output/ltr/pretrain/preset"
    for name in base "${mixes[@]/#/mix-}"; do
        [ -z "$ner" ] || bilstm "$name/features" "$output/$name/pretrain/preset" \
            --layers 0 1 2 --num-lstm-layers 2
    done
} | side_by_side
{
    for name in base no-nsp ltr ltr-bilstm; do # table 5
        preset=$output/$name/pretrain/preset
        [ "$name" = ltr-bilstm ] && preset=$output/$name/start
        glue "$name" "$preset" mnli qnli mrpc sst2
        [ -z "$squad" ] || finetune "$name" squad1 squad1 "$preset" "$squad" --most "$questions" \
            --sequence-length 128
    done
    for size in "${sizes[@]}"; do # table 6: size
        glue "size-$size" "$output/size-$size/pretrain/preset" mnli mrpc sst2
    done
    entities base "$base" # table 8: what hidden tokens look like
    for mix in "${mixes[@]}"; do
        glue "mix-$mix" "$output/mix-$mix/pretrain/preset" mnli
        entities "mix-$mix" "$output/mix-$mix/pretrain/preset"
    done
    glue steps-0 "${base}s/step-00000000" mnli # appendix C.1: steps
    glue steps-half "${base}s/step-$(printf %08d "$half")" mnli
} | side_by_side
# What the tables are made of stays, the models that were fine-tuned do not.
find "$output" -mindepth 3 -maxdepth 3 -name preset ! -path '*/pretrain/preset' -exec rm -r {} +

python recipes/ablation_tables.py "$output"
