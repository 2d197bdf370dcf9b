//! The program file of this process: two agents that are not the same build may measure differently. Must not interpret it.
use std::fmt::Write as _;
use std::sync::OnceLock;

/// Bytes of the digest that are kept: enough to tell builds apart, short enough to be read.
const KEPT: usize = 8;

/// The first 16 hexadecimal digits of the SHA-256 of the program file, read once; absent when /proc is missing.
pub(crate) fn build() -> Option<String> {
    static BUILD: OnceLock<Option<String>> = OnceLock::new();
    BUILD.get_or_init(|| std::fs::read("/proc/self/exe").ok().map(|program| digest(&program))).clone()
}

fn digest(program: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, program);
    let mut digits = String::with_capacity(2 * KEPT);
    for byte in digest.as_ref().iter().take(KEPT) {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_distinguished_by_the_bytes_of_the_file() {
        // The value of sha256sum(1).
        assert_eq!(digest(b"abc"), "ba7816bf8f01cfea");
        assert_eq!(build().unwrap().len(), 2 * KEPT);
        assert_eq!(build(), build());
    }
}
