//! Queueing disciplines with their drops and overlimits, from the kernel's netlink list (rtnetlink(7), `RTM_NEWQDISC`). Pure: bytes in,
//! counts out.
//!
//! A discipline counts what those below it dropped, too, so only the drops of the outermost of each direction are read.
use std::collections::BTreeMap;

use netduel_sys::netlink::{RTM_NEWQDISC, TC_H_ROOT, TCA_KIND, TCMSG_LEN, attribute, messages, u32_at};

/// `TC_H_INGRESS`: the ingress discipline.
const PARENT_INGRESS: u32 = 0xffff_fff1;
/// `TCA_STATS2` (include/uapi/linux/rtnetlink.h).
const STATISTICS: u16 = 7;
/// `TCA_STATS_QUEUE` within it: `struct gnet_stats_queue`.
const STATISTICS_QUEUE: u16 = 3;
/// Offset of the packets that wait in it.
const QUEUED: usize = 0;
/// Offset of the drops in it.
const DROPS: usize = 8;
/// Offset of the overlimits in it: times that it delayed a packet because of a rate.
const OVERLIMITS: usize = 16;

/// Packets that the outermost disciplines of an interface have dropped; 32-bit counters that wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Dropped {
    pub sending: Option<u32>,
    pub receiving: Option<u32>,
    /// Overlimits of the egress discipline.
    pub overlimits: Option<u32>,
}

/// The counts of a list by the index of the interface.
pub(crate) fn dropped(list: &[u8]) -> BTreeMap<u32, Dropped> {
    let mut found: BTreeMap<u32, Dropped> = BTreeMap::new();
    for message in messages(list).filter(|message| message.kind == RTM_NEWQDISC) {
        let (Some(index), Some(parent)) = (u32_at(message.payload, 4), u32_at(message.payload, 12)) else {
            continue;
        };
        let counts = message.payload.get(TCMSG_LEN..).and_then(counts);
        let drops = counts.and_then(|counts| u32_at(counts, DROPS));
        let of = found.entry(index).or_default();
        match parent {
            TC_H_ROOT => {
                of.sending = drops;
                of.overlimits = counts.and_then(|counts| u32_at(counts, OVERLIMITS));
            }
            PARENT_INGRESS => of.receiving = drops,
            _ => {}
        }
    }
    found
}

/// Kinds of the egress disciplines of an interface, by its index: the root first, then those below it in
/// the kernel's order, each kind once.
pub(crate) fn disciplines(list: &[u8]) -> BTreeMap<u32, Vec<String>> {
    let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for message in messages(list).filter(|message| message.kind == RTM_NEWQDISC) {
        let (Some(index), Some(parent)) = (u32_at(message.payload, 4), u32_at(message.payload, 12)) else {
            continue;
        };
        let kind = message.payload.get(TCMSG_LEN..).and_then(|bytes| {
            let name = attribute(bytes, TCA_KIND)?;
            Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
        });
        let Some(kind) = kind.filter(|_| parent != PARENT_INGRESS) else { continue };
        let of = found.entry(index).or_default();
        of.retain(|other| *other != kind || parent != TC_H_ROOT);
        match parent {
            TC_H_ROOT => of.insert(0, kind),
            _ if of.contains(&kind) => {}
            _ => of.push(kind),
        }
    }
    found
}

/// Packets that wait to be sent, by the index of the interface; only interfaces with such packets. A discipline may or may not count those
/// below it, so this is the largest count of one.
pub(crate) fn queued(list: &[u8]) -> BTreeMap<u32, u32> {
    let mut found: BTreeMap<u32, u32> = BTreeMap::new();
    for message in messages(list).filter(|message| message.kind == RTM_NEWQDISC) {
        let (Some(index), Some(parent)) = (u32_at(message.payload, 4), u32_at(message.payload, 12)) else {
            continue;
        };
        let counts = message.payload.get(TCMSG_LEN..).and_then(counts);
        let packets = counts.and_then(|counts| u32_at(counts, QUEUED)).unwrap_or(0);
        if packets > 0 && parent != PARENT_INGRESS {
            let of = found.entry(index).or_default();
            *of = packets.max(*of);
        }
    }
    found
}

/// `struct gnet_stats_queue` of a discipline.
fn counts(bytes: &[u8]) -> Option<&[u8]> {
    attribute(attribute(bytes, STATISTICS)?, STATISTICS_QUEUE)
}

/// Drops between two readings; absent when one of them has no such discipline. A replaced discipline counts from 0, which looks like a
/// wrapped counter, so an impossibly large difference is absent.
pub(crate) fn difference(before: Option<u32>, after: Option<u32>) -> Option<u64> {
    let difference = after?.wrapping_sub(before?);
    (difference < u32::MAX / 2).then(|| u64::from(difference))
}

#[cfg(test)]
mod tests {
    use netduel_sys::netlink::Request;

    use super::*;

    fn message(index: u32, parent: u32, drops: u32) -> Vec<u8> {
        let queue: Vec<u8> = [1, 2, drops, 3, 4].into_iter().flat_map(u32::to_ne_bytes).collect();
        let body: Vec<u8> = [0, index, 0, parent, 1].into_iter().flat_map(u32::to_ne_bytes).collect();
        Request::new(RTM_NEWQDISC, 0, &body)
            .bytes(TCA_KIND, b"fq\0\0")
            .nested(STATISTICS, |statistics| statistics.bytes(STATISTICS_QUEUE, &queue))
            .finish(0)
    }

    #[test]
    fn only_the_outermost_disciplines_are_read() {
        let list: Vec<u8> = [(3, TC_H_ROOT, 7), (3, 0x10001, 6), (3, PARENT_INGRESS, 5), (4, TC_H_ROOT, 0)]
            .into_iter()
            .flat_map(|(index, parent, drops)| message(index, parent, drops))
            .collect();
        let found = dropped(&list);
        assert_eq!(found[&3], Dropped { sending: Some(7), receiving: Some(5), overlimits: Some(4) });
        assert_eq!(found[&4], Dropped { sending: Some(0), receiving: None, overlimits: Some(4) });
        assert_eq!(queued(&list), BTreeMap::from([(3, 1), (4, 1)]));
        for cut in 0..list.len() {
            let _ = dropped(&list[..cut]);
        }
    }

    #[test]
    fn root_qdisc_is_listed_first_and_each_kind_once() {
        let named = |index, parent, name: &[u8]| {
            let mut bytes = message(index, parent, 0);
            let place = bytes.windows(4).position(|window| window == b"fq\0\0").unwrap();
            bytes[place..place + name.len()].copy_from_slice(name);
            bytes
        };
        let list = [
            named(3, 0x10001, b"fq\0\0"),
            named(3, 0x10002, b"fq\0\0"),
            named(3, TC_H_ROOT, b"mq\0\0"),
            named(3, PARENT_INGRESS, b"cls\0"),
            named(4, TC_H_ROOT, b"tbf\0"),
        ]
        .concat();
        let found = disciplines(&list);
        assert_eq!(
            (&found[&3][..], &found[&4][..]),
            (&["mq".to_owned(), "fq".into()][..], &["tbf".to_owned()][..])
        );
    }

    #[test]
    fn counters_wrap_and_new_disciplines_are_none() {
        assert_eq!(difference(Some(3), Some(10)), Some(7));
        assert_eq!(difference(Some(u32::MAX), Some(1)), Some(2));
        assert_eq!(difference(Some(10), Some(3)), None);
        assert_eq!((difference(None, Some(3)), difference(Some(3), None)), (None, None));
    }
}
