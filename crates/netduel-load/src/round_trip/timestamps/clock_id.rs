//! An identifier of the host's monotonic clock, to detect that two processes share one.

/// Identifies the monotonic clock by the boot of this machine and its time namespace; 0 when unknown. Virtual machines restored
/// from one snapshot have the same number, so the caller must check that the times agree, too.
pub(super) fn own() -> u64 {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id");
    let time = std::fs::read_link("/proc/self/ns/time");
    match (boot, time) {
        (Ok(boot), Ok(time)) => mix(&[&boot, time.as_os_str().as_encoded_bytes()].concat()),
        // A kernel before 5.6 has no time namespaces.
        (Ok(boot), Err(_)) => mix(&boot),
        (Err(_), _) => 0,
    }
}

/// FNV-1a, 64 bits (draft-eastlake-fnv). A collision among a handful of texts is negligible.
fn mix(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_identifier_differs_by_boot() {
        assert_eq!(own(), own());
        assert_ne!(own(), 0);
        assert_ne!(mix(b"6f2d"), mix(b"6f2e"));
    }
}
