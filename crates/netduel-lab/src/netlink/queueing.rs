//! The emulated rate cap: a token bucket over rtnetlink (include/uapi/linux/pkt_sched.h).
use netduel_model::units::BitRate;
use netduel_sys::netlink::{
    CREATE, EXCL, RTM_GETQDISC, RTM_NEWQDISC, Request, TC_H_ROOT, TCA_KIND, TCMSG_LEN, attribute, u32_at,
    u64_at,
};

use super::socket::{Netlink, Step};
use crate::error::LabError;

const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// Offset of the rate in `struct tc_tbf_qopt`, bytes per second; the largest value when it has an attribute of its own.
const RATE: usize = 8;

/// The link header of a frame, with a VLAN tag, bytes.
const LINK_HEADER: u64 = 18;
/// The bucket is large enough for the kernel's largest segment and the next one, bytes, unless that is much of the traffic.
const SEGMENTS: u64 = 128 * 1024;
/// Frames that the queue holds at every rate: TCP begins with ten.
const QUEUE_FRAMES: u64 = 32;

/// A token bucket for a rate and the MTU of the guests.
#[derive(Debug, PartialEq, Eq)]
struct Bucket {
    bytes_per_s: u64,
    /// What passes at once, bytes.
    burst: u32,
    /// What the queue holds, bytes.
    limit: u32,
}

impl Bucket {
    /// The bucket holds the bytes of 400 us, the longest wait of the kernel's timer, so that the rate is reached. It has room for whole
    /// segments where these pass in 10 ms; the kernel cuts larger ones into frames. The queue holds 2 ms more.
    fn new(rate: BitRate, mtu: u32) -> Self {
        let bytes_per_s = rate.0 / 8;
        let frame = u64::from(mtu) + LINK_HEADER;
        let burst = (bytes_per_s / 100).min(SEGMENTS).max(bytes_per_s / 2_500).max(2 * frame);
        let limit = burst + (bytes_per_s / 500).max(QUEUE_FRAMES * frame);
        let saturated = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { bytes_per_s, burst: saturated(burst), limit: saturated(limit) }
    }
}

/// Limits the sending rate of an interface, and reads it back.
pub(crate) fn cap(
    netlink: &mut Netlink,
    index: u32,
    (rate, mtu): (BitRate, u32),
    object: &str,
) -> Result<(), LabError> {
    let Bucket { bytes_per_s, burst, limit } = Bucket::new(rate, mtu);
    let mut body = [0; TCMSG_LEN];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    let mut parameters = [0; 36];
    parameters[1] = TC_LINKLAYER_ETHERNET;
    let rate32 = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    parameters[RATE..RATE + 4].copy_from_slice(&rate32.to_ne_bytes());
    parameters[24..28].copy_from_slice(&limit.to_ne_bytes());
    let message = Request::new(RTM_NEWQDISC, CREATE | EXCL, &body).text(TCA_KIND, "tbf").nested(
        TCA_OPTIONS,
        |options| {
            options
                .bytes(TCA_TBF_PARMS, &parameters)
                .bytes(TCA_TBF_RATE64, &bytes_per_s.to_ne_bytes())
                .u32(TCA_TBF_BURST, burst)
        },
    );
    let feature =
        Some("the token bucket (CONFIG_NET_SCH_TBF, `modprobe sch_tbf`); remove `cap` from the plan");
    netlink.request(message, Step { operation: "cap the rate of", object, feature })?;
    let step = Step { operation: "read the rate cap of", object, feature: None };
    let list = netlink.dump(&Request::new(RTM_GETQDISC, 0, &[0; TCMSG_LEN]), step)?;
    let kernel = list.iter().find_map(|row| rate_of(row, index));
    if kernel == Some(rate) {
        return Ok(());
    }
    Err(LabError::CapNotTaken { object: object.to_owned(), rate, kernel })
}

/// The rate of the outermost discipline of an interface, from a row of the kernel's list; none when this is another row or kind.
fn rate_of(row: &[u8], index: u32) -> Option<BitRate> {
    if u32_at(row, 4)? != index || u32_at(row, 12)? != TC_H_ROOT {
        return None;
    }
    let attributes = row.get(TCMSG_LEN..)?;
    if attribute(attributes, TCA_KIND)? != b"tbf\0" {
        return None;
    }
    let options = attribute(attributes, TCA_OPTIONS)?;
    let rate32 = u32_at(attribute(options, TCA_TBF_PARMS)?, RATE)?;
    let rate64 = attribute(options, TCA_TBF_RATE64).and_then(|rate| u64_at(rate, 0));
    Some(BitRate(rate64.unwrap_or(u64::from(rate32)).checked_mul(8)?))
}

#[cfg(test)]
mod tests {
    use netduel_model::workload::LAB;
    use netduel_sys::netlink::messages;

    use super::*;

    /// A row of the kernel's list.
    fn row(index: u32, kind: &str, rate32: u32, rate64: Option<u64>) -> Vec<u8> {
        let body: Vec<u8> = [0, index, 0, TC_H_ROOT, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
        let mut parameters = [0; 36];
        parameters[RATE..RATE + 4].copy_from_slice(&rate32.to_ne_bytes());
        let message =
            Request::new(RTM_NEWQDISC, 0, &body).text(TCA_KIND, kind).nested(TCA_OPTIONS, |options| {
                let options = options.bytes(TCA_TBF_PARMS, &parameters);
                match rate64 {
                    Some(rate) => options.bytes(TCA_TBF_RATE64, &rate.to_ne_bytes()),
                    None => options,
                }
            });
        messages(&message.finish(0)).next().unwrap().payload.to_vec()
    }

    #[test]
    fn rate_is_that_of_the_kernel_s_token_bucket_of_the_interface() {
        assert_eq!(rate_of(&row(3, "tbf", 1000, None), 3), Some(BitRate(8_000)));
        assert_eq!(rate_of(&row(3, "tbf", 0, None), 3), Some(BitRate(0)));
        let large = row(3, "tbf", u32::MAX, Some(12_500_000_000));
        assert_eq!(rate_of(&large, 3), Some(BitRate(100_000_000_000)));
        assert_eq!(rate_of(&row(4, "tbf", 1000, None), 3), None);
        assert_eq!(rate_of(&row(3, "fq", 1000, None), 3), None);
        for cut in 0..large.len() {
            let _ = rate_of(&large[..cut], 3);
        }
    }

    #[test]
    fn token_bucket_holds_a_frame_and_little_of_a_trial_at_every_rate() {
        let range =
            LAB.iter().find(|setting| setting.key == "cap").and_then(|setting| setting.range).unwrap();
        for (rate, mtu) in [range.least, 1_000_000, 1_000_000_000, 34_359_738_360, range.most]
            .into_iter()
            .flat_map(|rate| [1280, 1500, 9000].map(|mtu| (rate, mtu)))
        {
            let bucket = Bucket::new(BitRate(rate), mtu);
            let frames = u64::from(bucket.burst) / (u64::from(mtu) + LINK_HEADER);
            assert!(frames >= 2 && bucket.limit > bucket.burst, "{rate} bit/s: {bucket:?}");
            // Ten milliseconds of the rate, unless that is less than two frames.
            assert!(u64::from(bucket.burst) <= bucket.bytes_per_s / 100 || frames == 2, "{rate}: {bucket:?}");
            assert!(u64::from(bucket.burst) >= bucket.bytes_per_s / 2_500, "{rate} bit/s: {bucket:?}");
        }
    }
}
