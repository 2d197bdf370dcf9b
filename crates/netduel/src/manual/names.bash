
# Names of runs, of paired hosts, and of hosts and arms of plans, which the definition of the options cannot hold.
_netduel_names() {
    local command="${COMP_WORDS[1]}" subcommand="${COMP_WORDS[2]}" previous="${COMP_WORDS[COMP_CWORD-1]}" what="" plan=""
    # Bash takes the colon of HOST:PORT for a word of its own.
    local current="${COMP_WORDS[COMP_CWORD]}" prefix=""
    if [[ "$current" == : ]]; then
        prefix="$previous:" current=""
    elif [[ "$previous" == : && $COMP_CWORD -ge 2 ]]; then
        prefix="${COMP_WORDS[COMP_CWORD-2]}:"
    fi
    if [[ "$current" != -* ]]; then
        case "$command" in
            report|history) [[ "$previous" == "$command" ]] && what=runs ;;
            compare) [[ "$previous" != --out && "$previous" != --format && "$previous" != --store ]] && what=runs ;;
            run)
                [[ "$previous" == --resume ]] && what=runs
                [[ "$previous" == --fail-if ]] && what=conditions plan=$(_netduel_plan)
                ;;
            runs)
                case "$subcommand" in
                    rm|verify|tag|export) [[ $COMP_CWORD -gt 2 && "$previous" != --* ]] && what=runs ;;
                    rename|baseline) [[ "$previous" == "$subcommand" ]] && what=runs ;;
                esac
                ;;
            inspect) [[ "$previous" != --* ]] && plan=$(_netduel_plan) && what=${plan:+plan-hosts} ;;
            tcp|udp|rr|crr|pps) [[ "$previous" == "$command" || -n "$prefix" ]] && what=hosts ;;
            pair) [[ "$previous" == --forget || -n "$prefix" ]] && what=hosts ;;
        esac
    fi
    if [[ -z "$what" ]]; then
        _netduel "$@"
        return
    fi
    local name
    COMPREPLY=()
    while IFS= read -r name; do
        [[ "$what" == conditions ]] && name="'$name'"
        [[ "$name" == "$prefix$current"* ]] && COMPREPLY+=("${name#"$prefix"}")
    done < <("${COMP_WORDS[0]}" complete "$what" ${plan:+"$plan"} 2>/dev/null)
}
# The plan on the command line.
_netduel_plan() {
    local word
    for word in "${COMP_WORDS[@]:2}"; do
        [[ "$word" == *.toml ]] && printf '%s' "$word" && return
    done
}
complete -F _netduel_names -o nosort -o bashdefault -o default netduel
