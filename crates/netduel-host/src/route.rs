//! Default routes from the kernel's netlink list (rtnetlink(7), `RTM_NEWROUTE`). Pure: bytes in, links out.
use std::collections::BTreeSet;

use netduel_sys::netlink::{RTM_NEWROUTE, messages, u16_at, u32_at};

/// Bytes of `struct rtmsg`.
const HEAD_LEN: usize = 12;
/// Offsets of the prefix length of the destination, the table and the type.
const PREFIX: usize = 1;
const TABLE: usize = 4;
const TYPE: usize = 7;
/// `RT_TABLE_MAIN`.
const TABLE_MAIN: u8 = 254;
/// `RTN_UNICAST`: neither a local nor a reject route.
const TYPE_UNICAST: u8 = 1;
/// `RTA_OIF`: the link that packets leave by.
const LINK: u16 = 4;
/// `RTA_MULTIPATH`: several of them, as a list of `struct rtnexthop`.
const SEVERAL: u16 = 9;

/// The indexes of the links that the main table's default routes leave by, ascending.
pub(crate) fn links_of_default(list: &[u8]) -> BTreeSet<u32> {
    links_of(list, |table| table == TABLE_MAIN)
}

/// The same for the default routes of every table, which policy rules may select.
pub(crate) fn links_of_any_default(list: &[u8]) -> BTreeSet<u32> {
    links_of(list, |_| true)
}

fn links_of(list: &[u8], is_meant: impl Fn(u8) -> bool) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for message in messages(list).filter(|message| message.kind == RTM_NEWROUTE) {
        let [Some(0), Some(table), Some(TYPE_UNICAST)] =
            [PREFIX, TABLE, TYPE].map(|at| message.payload.get(at).copied())
        else {
            continue;
        };
        if !is_meant(table) {
            continue;
        }
        for (kind, value) in message.attributes(HEAD_LEN) {
            match kind {
                LINK => found.extend(u32_at(value, 0)),
                SEVERAL => found.extend(hops(value)),
                _ => {}
            }
        }
    }
    found
}

/// `struct rtnexthop`: its length, two bytes of flags and hops, the index of the link.
fn hops(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?).max(8);
        let index = u32_at(rest, 4)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(index)
    })
}

#[cfg(test)]
mod tests {
    use netduel_sys::netlink::Request;

    use super::*;

    fn message(prefix: u8, table: u8, kind: u8, attribute: (u16, &[u8])) -> Vec<u8> {
        let body = [2, prefix, 0, 0, table, 3, 0, kind, 0, 0, 0, 0];
        Request::new(RTM_NEWROUTE, 0, &body).bytes(attribute.0, attribute.1).finish(0)
    }

    #[test]
    fn only_unicast_default_routes_of_the_main_table_count() {
        let link = |index: u32| index.to_ne_bytes();
        let mut several = Vec::new();
        for index in [7u32, 8] {
            several.extend([8, 0, 0, 0]);
            several.extend(index.to_ne_bytes());
        }
        let list = [
            message(0, TABLE_MAIN, TYPE_UNICAST, (LINK, &link(2))),
            message(24, TABLE_MAIN, TYPE_UNICAST, (LINK, &link(3))),
            message(0, 100, TYPE_UNICAST, (LINK, &link(4))),
            message(0, TABLE_MAIN, 7, (LINK, &link(5))),
            message(0, TABLE_MAIN, TYPE_UNICAST, (SEVERAL, &several)),
        ]
        .concat();
        assert_eq!(links_of_default(&list).into_iter().collect::<Vec<_>>(), [2, 7, 8]);
        assert_eq!(links_of_any_default(&list).into_iter().collect::<Vec<_>>(), [2, 4, 7, 8]);
        for cut in 0..list.len() {
            let _ = links_of_default(&list[..cut]);
        }
    }
}
