
# Names of runs, paired hosts and beds, and names in plans and runs, which the definition of the options cannot hold.
# The words before the one that is completed, without the store, which can stand anywhere.
function __netduel_words
    set -l words (commandline -opc)
    set -l place (contains -i -- --store $words)
    if test -n "$place"; and test $place -lt (count $words)
        set -e words[(math $place + 1)]
        set -e words[$place]
    end
    printf '%s\n' $words
end
function __netduel_store
    set -l words (commandline -opc)
    set -l place (contains -i -- --store $words)
    if test -n "$place"; and test $place -lt (count $words)
        printf '%s\n' --store (string replace -r '^~' $HOME -- $words[(math $place + 1)])
    end
end
function __netduel_names
    set -l words (__netduel_words)
    set -l of (string match -- '*.toml' $words)[1]
    if contains -- $argv[1] workloads arms run-conditions arm-conditions
        # Names in a run are those of the first run on the command line, or of the last run.
        set of (string match -v -r -- '^(-.*)?$' "$words[3]")
    end
    command $words[1] complete $argv[1] $of (__netduel_store) 2>/dev/null
end
function __netduel_previous
    set -l words (__netduel_words)
    contains -- $words[-1] $argv
end
function __netduel_command
    set -l words (__netduel_words)
    test "$words[2]" = "$argv[1]"
    or return 1
    if set -q argv[2]
        contains -- "$words[3]" $argv[2..]
    end
end
# Whether the word before is an option of compare that takes a value.
function __netduel_previous_has_value
    set -l words (__netduel_words)
    string match -q -- '--*' $words[-1]; and not contains -- $words[-1] --strict --redact --json
end
# Whether the next word is the host of `lab exec`.
function __netduel_expects_lab_host
    set -l words (__netduel_words)
    contains -- "$words[-1]" exec; or test "$words[-2]" = --lab
end
function __netduel_has_plan
    string match -q -- '*.toml' (commandline -opc)
end
for command in report history
    complete -c netduel -n "__netduel_command $command; and __netduel_previous $command" -k -a '(__netduel_names runs)'
end
for what in metric workload arm
    complete -c netduel -n '__netduel_command history' -l $what -x -k -a '(__netduel_names '$what's)'
end
for what in note tag
    complete -c netduel -n '__netduel_command history' -l $what -x -k -a '(__netduel_names notes)'
end
complete -c netduel -n '__netduel_command compare; and not __netduel_previous_has_value' -k -a '(__netduel_names compared)'
complete -c netduel -n '__netduel_command compare' -l fail-if -x -k -a '(__netduel_names run-conditions)'
complete -c netduel -n '__netduel_command report' -l fail-if -x -k -a '(__netduel_names arm-conditions)'
complete -c netduel -n '__netduel_command azure run; and __netduel_has_plan' -l fail-if -x -k -a '(__netduel_names conditions)'
for command in 'azure run' 'plan check'
    complete -c netduel -n "__netduel_command $command" -l bed -r -k -a '(__netduel_names beds)'
end
complete -c netduel -n '__netduel_command azure down; and not __netduel_previous --subscription' -k -a '(__netduel_names beds)'
complete -c netduel -n '__netduel_command lab' -l lab -x -k -a '(__netduel_names labs)'
complete -c netduel -n '__netduel_command lab exec; and __netduel_expects_lab_host' -f -k -a '(__netduel_names lab-hosts)'
complete -c netduel -n '__netduel_command runs rm verify tag export rename baseline; and not __netduel_previous --title --note --unset --out --store' -k -a '(__netduel_names runs)'
complete -c netduel -n '__netduel_command run' -l resume -x -k -a '(__netduel_names runs)'
complete -c netduel -n '__netduel_command run; and __netduel_has_plan' -l fail-if -x -k -a '(__netduel_names conditions)'
complete -c netduel -n '__netduel_command inspect; and __netduel_has_plan; and not __netduel_previous --plan --fail-on' -f -k -a '(__netduel_names plan-hosts)'
for test in tcp udp rr crr pps
    complete -c netduel -n "__netduel_command $test; and __netduel_previous $test" -f -k -a '(__netduel_names hosts)'
end
complete -c netduel -n '__netduel_command pair' -l forget -x -k -a '(__netduel_names hosts)'
