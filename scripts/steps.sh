# SPDX-License-Identifier: Apache-2.0
# Steps that run in parallel lanes, such as steps that compute and steps that wait. Sourced after lib.sh.
# shellcheck shell=bash
#
#   steps_begin DIRECTORY            empties a directory for logs and results
#   lane FUNCTION                    runs a function that calls `step`, in parallel to the caller
#   step NAME COMMAND [ARGUMENT...]  runs it; its output goes to DIRECTORY/NAME.log and is printed
#                                    when it ends; "N passed, M failed" in it is added up
#   steps_end                        waits for every lane, prints the end of each failed step's log once more,
#                                    times and counts; fails if any step failed

steps_dir=
lanes=()
running= # the process group of the main lane's step

steps_begin() {
  steps_dir=$1
  rm -rf "$steps_dir"
  mkdir -p "$steps_dir"
  trap steps_abort EXIT
}

# Ends the steps of an interrupted run.
steps_abort() {
  local pid
  for pid in "${lanes[@]}" $running; do kill -- "-$pid" 2>/dev/null || true; done
}

# In its own process group, so that steps_abort can end it with its children.
lane() {
  set -m
  "$1" &
  lanes+=($!)
  set +m
}

# A failed step does not end its lane: one run reports all failures.
step() {
  local step_name=$1 start=$SECONDS status=0 passed=0 failed=0 log count cpu TIMEFORMAT='%U %S'
  shift
  log="$steps_dir/$step_name.log"
  say "$step_name begins: $*"
  if [[ $BASHPID == "$$" ]]; then
    # A shell that waits for a background job dies of a signal at once, and steps_abort ends the job.
    set -m
    { time "$@" >"$log" 2>&1 </dev/null; } 2>"$log.cpu" &
    running=$!
    set +m
    wait "$running" || status=$?
    running=
  else
    { time "$@" >"$log" 2>&1 </dev/null; } 2>"$log.cpu" || status=$?
  fi
  cpu=$(awk 'END { printf "%d", $1 + $2 + 0.5 }' "$log.cpu")
  count=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -1 || true)
  if [[ -n $count ]]; then
    read -r passed _ failed _ <<<"$count"
  elif ((status == 0)); then
    passed=1
  fi
  if ((status != 0 && failed == 0)); then failed=1; fi
  # One lane at a time shows its log.
  (
    flock 9
    echo "=== $step_name"
    cat "$log"
    echo "=== $step_name: $((SECONDS - start)) s$( ((failed)) && echo ', FAILED')"
  ) 9>>"$steps_dir/.output"
  echo "$((SECONDS - start)) ${cpu:-0} $passed $failed $step_name" >>"$steps_dir/results"
}

steps_end() {
  local pid seconds cpu step_passed step_failed step_name passed=0 failed=0
  for pid in "${lanes[@]}"; do wait "$pid" || failed=$((failed + 1)); done
  lanes=()
  while read -r _ _ _ step_failed step_name; do
    ((step_failed)) || continue
    echo "=== $step_name failed; the end of its log:"
    tail -60 "$steps_dir/$step_name.log" | cut -c1-400
  done <"$steps_dir/results"
  echo "=== times"
  while read -r seconds cpu step_passed step_failed step_name; do
    printf '%5d s  %5d s of CPU  %s%s\n' "$seconds" "$cpu" "$step_name" "$( ((step_failed)) && echo '  FAILED')"
    passed=$((passed + step_passed))
    failed=$((failed + step_failed))
  done <"$steps_dir/results"
  printf '%5d s                 in total\n' "$SECONDS"
  echo "$passed passed, $failed failed"
  ((failed == 0 && passed > 0))
}
