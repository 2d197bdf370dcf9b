
# Names of runs, of paired hosts, and of hosts and arms of plans, which the definition of the options cannot hold.
_netduel() {
    local command="$words[2]" subcommand="$words[3]" previous="$words[CURRENT-1]" what="" plan="${words[(r)*.toml]}"
    if [[ "$words[CURRENT]" != -* ]]; then
        case "$command" in
            report|history) [[ "$previous" == "$command" ]] && what=runs ;;
            compare) [[ "$previous" != (--out|--format|--store) ]] && what=runs ;;
            run)
                [[ "$previous" == --resume ]] && what=runs
                [[ "$previous" == --fail-if ]] && what=conditions
                ;;
            runs)
                case "$subcommand" in
                    rm|verify|tag|export) (( CURRENT > 3 )) && [[ "$previous" != --* ]] && what=runs ;;
                    rename|baseline) [[ "$previous" == "$subcommand" ]] && what=runs ;;
                esac
                ;;
            inspect) [[ "$previous" != --* && -n "$plan" ]] && what=plan-hosts ;;
            tcp|udp|rr|crr|pps) [[ "$previous" == "$command" ]] && what=hosts ;;
            pair) [[ "$previous" == --forget ]] && what=hosts ;;
        esac
    fi
    if [[ -z "$what" ]]; then
        _netduel_options "$@"
        return
    fi
    local -a names
    names=("${(@f)$("$words[1]" complete "$what" ${plan:+"$plan"} 2>/dev/null)}")
    compadd -V names -- "${(@)names:#}"
    # Files of runs, and destinations.
    [[ "$what" == runs ]] && _files -g '*.netduel'
    return 0
}
if [ "$funcstack[1]" = "_netduel" ]; then
    _netduel "$@"
else
    compdef _netduel netduel
fi
