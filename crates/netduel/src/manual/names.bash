
# Names of runs and of paired hosts, which the definition of the options cannot hold.
_netduel_names() {
    local command="${COMP_WORDS[1]}" subcommand="${COMP_WORDS[2]}" previous="${COMP_WORDS[COMP_CWORD-1]}" what=""
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
            run) [[ "$previous" == --resume ]] && what=runs ;;
            runs) [[ ( "$subcommand" == rm && $COMP_CWORD -gt 2 ) || "$previous" == baseline ]] && what=runs ;;
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
        [[ "$name" == "$prefix$current"* ]] && COMPREPLY+=("${name#"$prefix"}")
    done < <("${COMP_WORDS[0]}" complete "$what" 2>/dev/null)
}
complete -F _netduel_names -o nosort -o bashdefault -o default netduel
