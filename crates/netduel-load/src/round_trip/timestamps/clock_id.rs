//! Which clock a host's monotonic times are on, as one number that can be compared.

/// A number of this boot of this machine and its time namespace; 0 when it cannot be known. Copies of a virtual machine that
/// woke from one snapshot share it, so whoever compares has to look whether the times agree, too.
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

/// FNV-1a, 64 bits (draft-eastlake-fnv): two of a handful of texts do not meet by chance.
fn mix(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_has_one_number_and_other_boots_have_others() {
        assert_eq!(own(), own());
        assert_ne!(own(), 0);
        assert_ne!(mix(b"6f2d"), mix(b"6f2e"));
    }
}
