
# Names of runs, of paired hosts, and of hosts and arms of plans, which the definition of the options cannot hold.
function __netduel_names
    set -l words (commandline -opc)
    set -l plan (string match -- '*.toml' $words)[1]
    command $words[1] complete $argv[1] $plan 2>/dev/null
end
function __netduel_previous
    set -l words (commandline -opc)
    contains -- $words[-1] $argv
end
function __netduel_command
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"
    or return 1
    if set -q argv[2]
        contains -- "$words[3]" $argv[2..]
    end
end
function __netduel_has_plan
    string match -q -- '*.toml' (commandline -opc)
end
for command in report history
    complete -c netduel -n "__netduel_command $command; and __netduel_previous $command" -k -a '(__netduel_names runs)'
end
complete -c netduel -n '__netduel_command compare; and not __netduel_previous --out --format --store' -k -a '(__netduel_names runs)'
complete -c netduel -n '__netduel_command runs rm verify tag export rename baseline; and not __netduel_previous --title --note --unset --out --store' -k -a '(__netduel_names runs)'
complete -c netduel -n '__netduel_command run' -l resume -x -k -a '(__netduel_names runs)'
complete -c netduel -n '__netduel_command run; and __netduel_has_plan' -l fail-if -x -k -a '(__netduel_names conditions)'
complete -c netduel -n '__netduel_command inspect; and __netduel_has_plan; and not __netduel_previous --plan --fail-on' -f -k -a '(__netduel_names plan-hosts)'
for test in tcp udp rr crr pps
    complete -c netduel -n "__netduel_command $test; and __netduel_previous $test" -f -k -a '(__netduel_names hosts)'
end
complete -c netduel -n '__netduel_command pair' -l forget -x -k -a '(__netduel_names hosts)'
