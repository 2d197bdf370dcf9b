# Functions that set up the interfaces of a scene in a guest.

driver_of() { basename "$(readlink "/sys/class/net/$1/device/driver" 2>/dev/null)" 2>/dev/null; }

# find_interface MAC DRIVER: the interface of a device. The master of net_failover has the same address and the same device as its standby,
# but has no master itself.
find_interface() {
  for entry in /sys/class/net/*; do
    name=${entry##*/}
    [ -e "$entry/device" ] || continue
    [ "$(cat "$entry/address")" = "$1" ] || continue
    case $2 in
      failover_master) [ ! -e "$entry/master" ] && [ "$(driver_of "$name")" = virtio_net ] || continue ;;
      failover_standby) [ -e "$entry/master" ] && [ "$(driver_of "$name")" = virtio_net ] || continue ;;
      *) [ "$(driver_of "$name")" = "$2" ] || continue ;;
    esac
    echo "$name"
    return
  done
}

# rename MAC DRIVER NAME: waits for the interface, which QEMU may still be plugging, and renames it. The caller limits the wait.
rename() {
  while [ -z "$(find_interface "$1" "$2")" ]; do usleep 50000; done
  found=$(find_interface "$1" "$2")
  [ "$found" = "$3" ] && return
  ip link set "$found" down
  ip link set "$found" name "$3"
}

# virtual_functions PF MAC...: makes a virtual function for each address and sets it before the driver binds, since net_failover takes a
# primary by its address.
virtual_functions() {
  pf=$1
  shift
  device=$(readlink -f "/sys/class/net/$pf/device")
  ip link set "$pf" up
  echo 0 > "$device/sriov_drivers_autoprobe"
  echo $# > "$device/sriov_numvfs"
  number=0
  for mac in "$@"; do
    ip link set "$pf" vf "$number" mac "$mac"
    number=$((number + 1))
  done
  echo 1 > "$device/sriov_drivers_autoprobe"
  for function in "$device"/virtfn*; do
    basename "$(readlink "$function")" > /sys/bus/pci/drivers/igbvf/bind
  done
}

# up NAME: waits until the interface has a carrier.
up() {
  ip link set "$1" up
  until [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ]; do usleep 50000; done
}

# announce NAME ADDRESS: tells the bridge where the address is, whenever the links below net_failover change.
announce() {
  arping -q -U -c 1 -I "$1" "$2"
  (ip -oneline monitor link | while read -r _; do arping -q -U -c 1 -I "$1" "$2"; done) > /dev/null 2>&1 < /dev/null &
}
