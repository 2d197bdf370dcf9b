//! The emulated rate cap: a token bucket over rtnetlink (include/uapi/linux/pkt_sched.h).
use netduel_model::units::BitRate;
use netduel_sys::netlink::{CREATE, EXCL, RTM_NEWQDISC, Request};

use super::socket::{Netlink, Step};
use crate::error::LabError;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// Minimum bucket, bytes: two of the largest segments that the kernel passes down at once.
const BURST_MIN: u64 = 128 * 1024;
/// Maximum bucket, bytes: the one measured at 10 Gbit/s.
const BURST_MAX: u64 = 512 * 1024;

/// Bucket size, bytes: the bytes of 400 us at the rate, within bounds.
fn burst(bytes_per_s: u64) -> u32 {
    (bytes_per_s / 2_500).clamp(BURST_MIN, BURST_MAX) as u32
}

/// Queue limit, bytes: the bytes of 2 ms at the rate, plus a bucket.
fn limit(bytes_per_s: u64) -> u32 {
    u32::try_from(bytes_per_s / 500 + u64::from(burst(bytes_per_s))).unwrap_or(u32::MAX)
}

/// Limits the sending rate of an interface.
pub(crate) fn cap(netlink: &mut Netlink, index: u32, rate: BitRate, object: &str) -> Result<(), LabError> {
    let bytes_per_s = rate.0 / 8;
    let mut body = [0; 20];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    let mut parameters = [0; 36];
    parameters[1] = TC_LINKLAYER_ETHERNET;
    let rate32 = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    parameters[8..12].copy_from_slice(&rate32.to_ne_bytes());
    parameters[24..28].copy_from_slice(&limit(bytes_per_s).to_ne_bytes());
    let message = Request::new(RTM_NEWQDISC, CREATE | EXCL, &body).text(TCA_KIND, "tbf").nested(
        TCA_OPTIONS,
        |options| {
            options
                .bytes(TCA_TBF_PARMS, &parameters)
                .bytes(TCA_TBF_RATE64, &bytes_per_s.to_ne_bytes())
                .u32(TCA_TBF_BURST, burst(bytes_per_s))
        },
    );
    let feature =
        Some("the token bucket (CONFIG_NET_SCH_TBF, `modprobe sch_tbf`); remove `cap` from the plan");
    netlink.request(message, Step { operation: "cap the rate of", object, feature })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bucket_holds_a_full_segment_at_every_rate() {
        for rate in [1, 1_000_000, 1_250_000_000, 100_000_000_000, u64::from(u32::MAX) * 8] {
            assert!(burst(rate) >= 65_536 && limit(rate) >= burst(rate), "{rate} B/s");
        }
        assert_eq!(burst(1_312_500_000), 512 * 1024);
    }
}
