
# Names of runs, paired hosts and beds, and names in plans and runs, which the definition of the options cannot hold.
_netduel() {
    # The words before the one that is completed, without the store, which can stand anywhere.
    local -a line
    local place store=""
    for (( place = 1; place < CURRENT; place++ )); do
        if [[ "$words[place]" == --store ]] && (( place + 1 < CURRENT )); then
            (( place += 1 ))
            store="${(Q)words[place]}"
        elif [[ "$words[place]" == --store=* ]]; then
            store="${(Q)${words[place]#--store=}}"
        else
            line+=("$words[place]")
        fi
    done
    store="${store/#\~/$HOME}"
    local command="$line[2]" subcommand="$line[3]" previous="$line[-1]" what="" of="${words[(r)*.toml]}"
    if [[ "$words[CURRENT]" != -* ]]; then
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
                [[ "$previous" == --fail-if ]] && what=conditions
                ;;
            runs)
                case "$subcommand" in
                    rm|verify|tag|export) (( $#line > 2 )) && [[ "$previous" != --* ]] && what=runs ;;
                    rename|baseline) [[ "$previous" == "$subcommand" ]] && what=runs ;;
                esac
                ;;
            azure)
                case "$subcommand" in
                    run)
                        [[ "$previous" == --fail-if ]] && what=conditions
                        [[ "$previous" == --bed ]] && what=beds
                        ;;
                    down) [[ "$previous" != --subscription ]] && what=beds ;;
                esac
                ;;
            plan) [[ "$subcommand" == check && "$previous" == --bed ]] && what=beds ;;
            lab)
                if [[ "$previous" == --lab ]]; then
                    what=labs
                elif [[ "$subcommand" == exec && ( "$previous" == exec || "$line[-2]" == --lab ) ]]; then
                    what=lab-hosts
                fi
                ;;
            inspect) [[ "$previous" != --* && -n "$of" ]] && what=plan-hosts ;;
            tcp|udp|rr|crr|pps) [[ "$previous" == "$command" ]] && what=hosts ;;
            pair) [[ "$previous" == --forget ]] && what=hosts ;;
        esac
    fi
    if [[ -z "$what" ]]; then
        _netduel_options "$@"
        return
    fi
    # Names in a run are those of the first run on the command line, or of the last run.
    if [[ "$what" == (workloads|arms|run-conditions|arm-conditions) ]]; then
        of="$line[3]"
        [[ "$of" == -* ]] && of=""
    fi
    local -a names
    names=("${(@f)$("$words[1]" complete "$what" ${of:+"$of"} ${store:+--store} ${store:+"$store"} 2>/dev/null)}")
    compadd -V names -- "${(@)names:#}"
    # Files of runs, and destinations; a comparison takes baseline files as well.
    [[ "$what" == runs ]] && _files -g '*.netduel'
    [[ "$what" == compared ]] && _files -g '*.(netduel|json)'
    # A bed is named by its file as well.
    [[ "$what" == beds ]] && _files -g '*.toml'
    return 0
}
if [ "$funcstack[1]" = "_netduel" ]; then
    _netduel "$@"
else
    compdef _netduel netduel
fi
