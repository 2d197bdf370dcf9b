#!/bin/sh
# First process of a guest: mounts, loads the modules of its scene, starts the ssh server on the management interface. The scene's own
# interfaces are set up later, over ssh.
PATH=/bin HOME=/root TERM=dumb
export PATH HOME TERM
# DPDK loads no driver below a folder that everybody may write into.
chmod 755 /
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t proc proc /proc
mount -t sysfs sys /sys
for folder in /dev/shm /tmp /run; do mount -t tmpfs tmpfs "$folder"; done
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf

setting() {
  for word in $(cat /proc/cmdline); do
    case $word in "netduel.$1="*) echo "${word#*=}" ;; esac
  done
}
hostname "$(setting name)"
echo "ssh-ed25519 $(setting key)" > "$HOME/.ssh/authorized_keys"
chmod 600 "$HOME/.ssh/authorized_keys"
ulimit -n 65536

for module in $(setting modules | tr , ' '); do
  while read -r name; do
    grep -q "^$name " /proc/modules || insmod "/modules/$name.ko" || echo "netduel-guest: no module $name"
  done < "/modules/$module.order"
done

ip link set lo up
. /scene.sh
interface=$(find_interface "$(setting mac)" virtio_net)
ip link set "$interface" name mgmt
ip link set mgmt up
ip address add 10.0.2.15/24 dev mgmt
# Its window for each channel is 24 KiB, which copies 34 MB over a delay of 200 ms in five minutes. That of OpenSSH is 2 MiB.
# Without -K: a connection that is silent on a busy machine is not lost, and its packets are other traffic beside a trial with few bytes.
dropbear -R -E -s -j -k -W 2097152 -p 22 2> /run/dropbear.log
echo "netduel-guest ready"
while :; do setsid cttyhack sh; sleep 1; done
