//! Notifications about settings of the network devices of a namespace: the group `monitor` of the generic netlink family `ethtool`
//! (Linux 5.6, include/uapi/linux/ethtool_netlink.h). They come however short a change lasts; must not read counters.
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use netduel_model::link_event::{DeviceSetting, LinkChange};
use netduel_sys::ethtool::Ethtool;
use netduel_sys::netlink::{
    Message, NetlinkSocket, Request, attribute, generic_notifications, messages, u32_at,
};

use crate::link::text;
use crate::netlink::{Family, GENERIC_BODY_LEN, GENERIC_VERSION};

const FAMILY: &str = "ethtool";
/// `ETHTOOL_MCGRP_MONITOR_NAME`.
const GROUP: &str = "monitor";
/// `ETHTOOL_MSG_FEATURES_GET`, `ETHTOOL_MSG_FEATURES_GET_REPLY`, `ETHTOOL_MSG_FEATURES_NTF`.
const GET_FEATURES: u8 = 11;
const FEATURES: u8 = 11;
const FEATURES_CHANGED: u8 = 13;
/// The notifications about other settings.
const SETTINGS: [(u8, DeviceSetting); 7] = [
    (5, DeviceSetting::LinkModes),
    (15, DeviceSetting::PrivateFlags),
    (17, DeviceSetting::Rings),
    (19, DeviceSetting::Channels),
    (21, DeviceSetting::Coalescing),
    (23, DeviceSetting::PauseFrames),
    (31, DeviceSetting::ForwardErrorCorrection),
];

/// Attributes of these messages.
mod part {
    /// `ETHTOOL_A_*_HEADER`, the first one of every message.
    pub const HEADER: u16 = 1;
    /// Within it.
    pub const DEVICE_INDEX: u16 = 1;
    pub const DEVICE_NAME: u16 = 2;
    pub const FLAGS: u16 = 3;
    /// `ETHTOOL_A_FEATURES_ACTIVE`.
    pub const ACTIVE: u16 = 4;
    /// Within it, `ETHTOOL_A_BITSET_VALUE`: words of 32 bits.
    pub const BITS: u16 = 4;
}
/// `ETHTOOL_FLAG_COMPACT_BITSETS`.
const COMPACT: u32 = 1;

/// The listener's end.
#[derive(Debug)]
pub(crate) struct DeviceSettings {
    /// Receives the notifications; does not block.
    pub notices: OwnedFd,
    family: u16,
    known: Active,
}

/// The active features of each device, by its index.
type Active = BTreeMap<u32, Vec<u32>>;

/// What a notification says.
#[derive(Debug, PartialEq, Eq)]
enum Notice {
    /// Numbers of the features that are active now, and of those that are no longer.
    Features {
        on: Vec<usize>,
        off: Vec<usize>,
    },
    Setting(DeviceSetting),
}

impl DeviceSettings {
    /// Starts to listen in the calling thread's network namespace.
    ///
    /// # Errors
    /// `ENOENT` on a kernel without this family.
    pub fn listen() -> io::Result<Self> {
        let mut socket = NetlinkSocket::generic()?;
        let family = Family::find(&mut socket, FAMILY)?;
        let notices = generic_notifications(family.group(GROUP).ok_or(io::ErrorKind::NotFound)?)?;
        let mut listener = Self { notices, family: family.id, known: Active::new() };
        // After joining the group: a change during the listing is notified again and is then already known.
        listener.read_features(&mut socket)?;
        Ok(listener)
    }

    /// Reads the features of all devices again, after notifications were lost.
    pub fn relist(&mut self) -> io::Result<()> {
        self.read_features(&mut NetlinkSocket::generic()?)
    }

    fn read_features(&mut self, socket: &mut NetlinkSocket) -> io::Result<()> {
        let request = Request::new(self.family, 0, &[GET_FEATURES, GENERIC_VERSION, 0, 0])
            .nested(part::HEADER, |header| header.u32(part::FLAGS, COMPACT));
        let mut list = Vec::new();
        socket.dump(&request, &mut list)?;
        self.known = messages(&list).filter_map(|message| active(&message, FEATURES)).collect();
        Ok(())
    }

    /// The changes that received bytes report: each with the name of its device.
    pub fn changes(&mut self, received: &[u8]) -> Vec<(String, LinkChange)> {
        let ours = messages(received).filter(|message| message.kind == self.family);
        ours.filter_map(|message| notice(&mut self.known, &message)).map(named).collect()
    }
}

/// A notice as a change, with the names of the features.
fn named((device, notice): (String, Notice)) -> (String, LinkChange) {
    let change = match notice {
        Notice::Setting(setting) => LinkChange::Setting { setting },
        Notice::Features { on, off } => {
            // A device that is gone has no names, and its features keep their numbers.
            let known = Ethtool::open().and_then(|mut ethtool| ethtool.feature_names(&device));
            let known = known.unwrap_or_default();
            let name = |bit: usize| known.get(bit).cloned().unwrap_or_else(|| format!("feature {bit}"));
            let names = |bits: Vec<usize>| bits.into_iter().map(name).collect();
            LinkChange::Offloads { on: names(on), off: names(off) }
        }
    };
    (device, change)
}

/// The device's name and what changed; updates what is known of it. Pure.
fn notice(known: &mut Active, message: &Message<'_>) -> Option<(String, Notice)> {
    let kind = *message.payload.first()?;
    let header = header(message)?;
    let name = text(attribute(header, part::DEVICE_NAME)?);
    if let Some((_, setting)) = SETTINGS.iter().find(|(of, _)| *of == kind) {
        return Some((name, Notice::Setting(*setting)));
    }
    let (index, now) = active(message, FEATURES_CHANGED)?;
    // A device that was added since has nothing to compare with.
    let before = known.insert(index, now.clone())?;
    let changed = |earlier: &[u32], later: &[u32]| -> Vec<usize> {
        (0..later.len() * 32).filter(|bit| is_set(later, *bit) && !is_set(earlier, *bit)).collect()
    };
    let (on, off) = (changed(&before, &now), changed(&now, &before));
    (!on.is_empty() || !off.is_empty()).then_some((name, Notice::Features { on, off }))
}

fn is_set(words: &[u32], bit: usize) -> bool {
    words.get(bit / 32).is_some_and(|word| word & (1 << (bit % 32)) != 0)
}

/// Index and active features of the device of a message of this kind.
fn active(message: &Message<'_>, kind: u8) -> Option<(u32, Vec<u32>)> {
    message.payload.first().filter(|found| **found == kind)?;
    let index = u32_at(attribute(header(message)?, part::DEVICE_INDEX)?, 0)?;
    let (_, bits) = message.attributes(GENERIC_BODY_LEN).find(|(kind, _)| *kind == part::ACTIVE)?;
    let words = attribute(bits, part::BITS)?;
    Some((index, words.chunks_exact(4).filter_map(|word| u32_at(word, 0)).collect()))
}

fn header<'a>(message: &Message<'a>) -> Option<&'a [u8]> {
    message.attributes(GENERIC_BODY_LEN).find(|(kind, _)| *kind == part::HEADER).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u16 = 21;

    /// A message about device 7, `vf0`, with these active features.
    fn message(kind: u8, words: &[u32]) -> Vec<u8> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let request = Request::new(ID, 0, &[kind, GENERIC_VERSION, 0, 0])
            .nested(part::HEADER, |header| header.u32(part::DEVICE_INDEX, 7).text(part::DEVICE_NAME, "vf0"))
            .nested(part::ACTIVE, |bits| bits.bytes(part::BITS, &bytes));
        request.finish(0)
    }

    fn of(known: &mut Active, bytes: &[u8]) -> Option<(String, Notice)> {
        notice(known, &messages(bytes).next().unwrap())
    }

    #[test]
    fn features_that_change_and_change_back_are_two_changes() {
        let mut known = Active::from([(7, vec![0b11, 0])]);
        let features = |on: &[usize], off: &[usize]| {
            Some(("vf0".to_owned(), Notice::Features { on: on.to_vec(), off: off.to_vec() }))
        };
        assert_eq!(of(&mut known, &message(FEATURES_CHANGED, &[0b01, 1 << 3])), features(&[35], &[1]));
        assert_eq!(of(&mut known, &message(FEATURES_CHANGED, &[0b01, 1 << 3])), None);
        assert_eq!(of(&mut known, &message(FEATURES_CHANGED, &[0b11, 0])), features(&[1], &[35]));
        // The first notification about a device, and one with fewer words.
        assert_eq!(of(&mut Active::new(), &message(FEATURES_CHANGED, &[1])), None);
        assert_eq!(of(&mut known, &message(FEATURES_CHANGED, &[])), features(&[], &[0, 1]));
    }

    #[test]
    fn other_settings_are_named_and_other_messages_ignored() {
        let mut known = Active::new();
        for (kind, setting) in SETTINGS {
            assert_eq!(
                of(&mut known, &message(kind, &[])),
                Some(("vf0".to_owned(), Notice::Setting(setting)))
            );
        }
        assert_eq!(of(&mut known, &message(FEATURES, &[1])), None);
        let headless = Request::new(ID, 0, &[17, GENERIC_VERSION, 0, 0]).finish(0);
        assert_eq!(of(&mut known, &headless), None);
        assert_eq!(of(&mut known, &Request::new(ID, 0, &[]).finish(0)), None);
    }
}
