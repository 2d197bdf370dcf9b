//! Path events while traffic runs: removal and return of a VF, and addition and removal of a second interface.
use netduel_model::failover::PathEventKind;
use netduel_model::plan::spec::LabPath;
use netduel_sys::clock;

use super::wiring::{FUNCTION, NIC_FUNCTION, SECOND, SECOND_PORT, SIDES, SWITCH, SYNTHETIC};
use super::{FLOODS, Half, MACHINE_MTU, PORTS_PATIENCE_NS, Topology, new_link, plug, wait_for_port};
use crate::error::LabError;
use crate::netlink::link;

/// Time for packets in flight to leave a VF before it is deleted, after its traffic was moved, nanoseconds: a queue of 1,000 full
/// packets at 10 Gbit/s.
const DRAIN_NS: u64 = 2_000_000;

/// Times of an event, nanoseconds of the monotonic clock: before the first and after the last call to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Performed {
    pub began_ns: u64,
    pub ended_ns: u64,
}

impl Topology {
    /// Performs an event on the path of a guest.
    pub(crate) fn perform(&mut self, kind: PathEventKind, guest: &str) -> Result<Performed, LabError> {
        let mtu = self.spec.mtu;
        let Some(index) = self.halves.iter().position(|half| half.side.guest == guest) else {
            return Err(LabError::NoSuchHost { host: guest.to_owned() });
        };
        let far_mac = SIDES[1 - index].mac;
        let half = &mut self.halves[index];
        let began_ns = clock::monotonic_ns();
        match kind {
            PathEventKind::Remove => half.unplug_function()?,
            PathEventKind::Graceful => {
                half.steer_inbound(LabPath::Synthetic)?;
                half.steer_outbound(LabPath::Synthetic, far_mac)?;
                clock::sleep_until(clock::monotonic_ns() + DRAIN_NS);
                half.unplug_function()?;
            }
            PathEventKind::Carrier => {
                let object = half.machine.object(NIC_FUNCTION.name);
                link::set_down(&mut half.machine.route, NIC_FUNCTION.index, &object)?;
            }
            PathEventKind::Down => {
                let object = half.guest.object(FUNCTION.name);
                link::set_down(&mut half.guest.route, FUNCTION.index, &object)?;
            }
            PathEventKind::Return => half.restore_function(mtu, far_mac)?,
            PathEventKind::AddNic => half.plug_second(mtu)?,
            PathEventKind::RemoveNic => half.unplug_second()?,
            PathEventKind::Command => return Err(LabError::CommandEvent { host: guest.to_owned() }),
        }
        Ok(Performed { began_ns, ended_ns: clock::monotonic_ns() })
    }

    /// Undoes all events of [`Self::perform`], and sets the path that was set last.
    pub(crate) fn restore(&mut self) -> Result<(), LabError> {
        for half in &mut self.halves {
            half.unplug_second()?;
            half.plug_function(self.spec.mtu)?;
        }
        self.wait_for_ports()?;
        self.set_path(self.path)
    }
}

impl Half {
    /// Deletes the VF; both of its ends disappear at once, with the forwarding entries to them.
    fn unplug_function(&mut self) -> Result<(), LabError> {
        let object = self.machine.object(NIC_FUNCTION.name);
        link::delete(&mut self.machine.route, NIC_FUNCTION.index, &object)
    }

    /// Adds the VF, and moves the traffic to it once it forwards. Entries that were deleted with a VF are first set to the
    /// synthetic path; otherwise packets would be flooded to both paths meanwhile.
    fn restore_function(&mut self, mtu: u32, far_mac: [u8; 6]) -> Result<(), LabError> {
        let object = self.machine.object(NIC_FUNCTION.name);
        if link::state(&mut self.machine.route, NIC_FUNCTION.index, &object)?.is_none() {
            self.steer_inbound(LabPath::Synthetic)?;
            self.steer_outbound(LabPath::Synthetic, far_mac)?;
        }
        self.plug_function(mtu)?;
        let deadline = clock::monotonic_ns() + PORTS_PATIENCE_NS;
        wait_for_port(&mut self.machine, NIC_FUNCTION, deadline)?;
        wait_for_port(&mut self.guest, FUNCTION, deadline)?;
        wait_for_port(&mut self.guest, SYNTHETIC, deadline)?;
        self.steer_inbound(LabPath::Accelerated)?;
        self.steer_outbound(LabPath::Accelerated, far_mac)
    }

    /// Hot-adds a second interface to the guest, on the synthetic path, without an address.
    fn plug_second(&mut self, mtu: u32) -> Result<(), LabError> {
        let (guest, machine) = (&mut self.guest, &mut self.machine);
        let object = machine.object(SECOND_PORT.name);
        let (near, far) = (new_link(SECOND_PORT, MACHINE_MTU), new_link(SECOND, mtu));
        link::create_veth(&mut machine.route, near, far, std::os::fd::AsFd::as_fd(&guest.network), &object)?;
        plug(machine, SECOND_PORT, SWITCH, FLOODS)?;
        let object = guest.object(SECOND.name);
        link::no_link_local(&mut guest.route, SECOND.index, &object)?;
        link::set_up(&mut guest.route, SECOND.index, &object)
    }

    /// Removes the second interface, if it exists.
    fn unplug_second(&mut self) -> Result<(), LabError> {
        let machine = &mut self.machine;
        let object = machine.object(SECOND_PORT.name);
        match link::state(&mut machine.route, SECOND_PORT.index, &object)? {
            Some(_) => link::delete(&mut machine.route, SECOND_PORT.index, &object),
            None => Ok(()),
        }
    }
}
