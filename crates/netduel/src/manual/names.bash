
# Names of runs, paired hosts and beds, and names in plans and runs, which the definition of the options cannot hold.
_netduel_names() {
    # The words before the one that is completed, without the store, which can stand anywhere.
    local -a line=()
    local place store=""
    for ((place = 0; place < COMP_CWORD; place++)); do
        if [[ "${COMP_WORDS[place]}" == --store && $((place + 1)) -lt $COMP_CWORD ]]; then
            store="${COMP_WORDS[++place]}"
            # Bash takes the sign of --store=DIR for a word of its own.
            [[ "$store" == = && $((place + 1)) -lt $COMP_CWORD ]] && store="${COMP_WORDS[++place]}"
        else
            line+=("${COMP_WORDS[place]}")
        fi
    done
    store="${store/#\~/$HOME}"
    local command="${line[1]}" subcommand="${line[2]}" previous="${line[${#line[@]}-1]}" what="" of=""
    # Bash takes the colon of HOST:PORT for a word of its own.
    local current="${COMP_WORDS[COMP_CWORD]}" prefix=""
    if [[ "$current" == : ]]; then
        prefix="$previous:" current=""
    elif [[ "$previous" == : && $COMP_CWORD -ge 2 ]]; then
        prefix="${COMP_WORDS[COMP_CWORD-2]}:"
    fi
    if [[ "$current" != -* ]]; then
        case "$command" in
            report)
                [[ "$previous" == "$command" ]] && what=runs
                [[ "$previous" == --fail-if ]] && what=arm-conditions
                ;;
            history)
                case "$previous" in
                    history) what=runs ;;
                    --metric) what=metrics ;;
                    --workload) what=workloads ;;
                    --arm) what=arms ;;
                    --note|--tag) what=notes ;;
                esac
                # Bash takes the sign of KEY=VALUE for a word of its own.
                if [[ "$current" == = && "${line[${#line[@]}-2]}" =~ ^--(note|tag)$ ]]; then
                    what=notes prefix="$previous=" current=""
                elif [[ "$previous" == = && "${line[${#line[@]}-3]}" =~ ^--(note|tag)$ ]]; then
                    what=notes prefix="${line[${#line[@]}-2]}="
                fi
                ;;
            compare)
                case "$previous" in
                    --fail-if) what=run-conditions ;;
                    --strict|--redact|--json) what=compared ;;
                    --*) ;;
                    *) what=compared ;;
                esac
                ;;
            run)
                [[ "$previous" == --resume ]] && what=runs
                [[ "$previous" == --fail-if ]] && what=conditions of=$(_netduel_plan)
                ;;
            runs)
                case "$subcommand" in
                    rm|verify|tag|export) [[ ${#line[@]} -gt 2 && "$previous" != --* ]] && what=runs ;;
                    rename|baseline) [[ "$previous" == "$subcommand" ]] && what=runs ;;
                esac
                ;;
            azure)
                case "$subcommand" in
                    run)
                        [[ "$previous" == --fail-if ]] && what=conditions of=$(_netduel_plan)
                        [[ "$previous" == --bed ]] && what=beds
                        ;;
                    down) [[ "$previous" != --subscription ]] && what=beds ;;
                esac
                ;;
            plan) [[ "$subcommand" == check && "$previous" == --bed ]] && what=beds ;;
            lab)
                if [[ "$previous" == --lab ]]; then
                    what=labs
                elif [[ "$subcommand" == exec && ( "$previous" == exec || "${line[${#line[@]}-2]}" == --lab ) ]]; then
                    what=lab-hosts
                fi
                ;;
            inspect) [[ "$previous" != --* ]] && of=$(_netduel_plan) && what=${of:+plan-hosts} ;;
            tcp|udp|rr|crr|pps) [[ "$previous" == "$command" || -n "$prefix" ]] && what=hosts ;;
            pair) [[ "$previous" == --forget || -n "$prefix" ]] && what=hosts ;;
        esac
    fi
    if [[ -z "$what" ]]; then
        _netduel "$@"
        return
    fi
    # Names in a run are those of the first run on the command line, or of the last run.
    [[ "$what" =~ ^(workloads|arms|run-conditions|arm-conditions)$ && "${line[2]}" != -* ]] && of="${line[2]}"
    # No file is a note.
    [[ "$what" == notes ]] && compopt +o bashdefault +o default
    local name
    COMPREPLY=()
    while IFS= read -r name; do
        [[ "$what" == *conditions ]] && name="'$name'"
        [[ "$name" == "$prefix$current"* ]] && COMPREPLY+=("${name#"$prefix"}")
    done < <("${COMP_WORDS[0]}" complete "$what" ${of:+"$of"} ${store:+--store "$store"} 2>/dev/null)
}
# The plan on the command line.
_netduel_plan() {
    local word
    for word in "${COMP_WORDS[@]:2}"; do
        [[ "$word" == *.toml ]] && printf '%s' "$word" && return
    done
}
complete -F _netduel_names -o nosort -o bashdefault -o default netduel
