#!/bin/sh
# The checksum of standard input, as that of busybox. netduel asks for that of its program at each start of an agent and each inspection over ssh, some
# 95 times in the tests, and an emulated processor takes half a second for it. A file that is the same by device, inode, size and time of change has
# the checksum that was computed first; a copy of a file is another inode.
[ $# = 0 ] && [ -f /proc/self/fd/0 ] || exec busybox sha256sum "$@"
kept=/run/sha256-$(stat -L -c %d-%i-%s-%Z /proc/self/fd/0)
[ -s "$kept" ] || { busybox sha256sum > "$kept.$$" && mv "$kept.$$" "$kept"; }
exec cat "$kept"
