//! Random bytes from the kernel (getrandom(2)).
use std::io;

/// 16 unpredictable bytes.
///
/// # Errors
/// When the kernel refuses; on Linux 3.17 and later this does not happen after boot.
pub fn bytes16() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_random_values_differ() {
        assert_ne!(super::bytes16().unwrap(), super::bytes16().unwrap());
    }
}
