//! XDP features of the drivers of a network namespace, from the kernel's list of devices (generic netlink, family `netdev`,
//! Linux 6.3). Pure: bytes in, facts out.
use std::collections::BTreeMap;

use netduel_model::snapshot::XdpFeature;

use netduel_sys::netlink::{messages, u32_at, u64_at};

use crate::netlink::GENERIC_BODY_LEN;

/// `NETDEV_A_DEV_IFINDEX` and `NETDEV_A_DEV_XDP_FEATURES` (include/uapi/linux/netdev.h).
const INDEX: u16 = 1;
const FEATURES: u16 = 3;

/// The features by the index of the interface; an interface that is not listed is unknown.
pub(crate) fn features(list: &[u8]) -> BTreeMap<u32, Vec<XdpFeature>> {
    messages(list)
        .filter_map(|message| {
            let (mut index, mut bits) = (None, None);
            for (kind, value) in message.attributes(GENERIC_BODY_LEN) {
                match kind {
                    INDEX => index = u32_at(value, 0),
                    FEATURES => bits = u64_at(value, 0),
                    _ => {}
                }
            }
            let (index, bits) = (index?, bits?);
            let has = |(bit, _): &(usize, XdpFeature)| bits & (1 << bit) != 0;
            let named = XdpFeature::ALL.into_iter().enumerate();
            Some((index, named.filter(has).map(|(_, feature)| feature).collect()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use netduel_sys::netlink::Request;

    use super::*;

    fn device(index: u32, bits: u64) -> Vec<u8> {
        let request = Request::new(1, 0, &[1, 1, 0, 0]).u32(INDEX, index);
        request.bytes(FEATURES, &bits.to_ne_bytes()).finish(0)
    }

    #[test]
    fn each_bit_has_its_name_and_unknown_ones_have_none() {
        let list = [device(3, 0b000_0111), device(4, 0), device(5, 1 << 40 | 1 << 6)].concat();
        let by_index = features(&list);
        assert_eq!(by_index[&3], [XdpFeature::Basic, XdpFeature::Redirect, XdpFeature::NdoXmit]);
        assert_eq!((&by_index[&4][..], &by_index[&5][..]), (&[][..], &[XdpFeature::NdoXmitSg][..]));
        for cut in 0..list.len() {
            assert!(features(&list[..cut]).len() < 3, "{cut}");
        }
    }

    #[test]
    fn loopback_has_no_xdp_feature() {
        match crate::netlink::xdp_devices() {
            Ok(list) => assert_eq!(features(&list)[&1], []),
            // ENOENT: no such family.
            Err(error) => assert_eq!(error.raw_os_error(), Some(2), "{error}"),
        }
    }
}
