//! The content of payload: a fixed pseudo-random sequence.

/// Fills `bytes` with the sequence (xorshift64, Marsaglia 2003), the same each time, which cannot be compressed
/// and is not the zero page.
pub fn fill(bytes: &mut [u8]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for part in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let length = part.len();
        part.copy_from_slice(&state.to_le_bytes()[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_is_constant_and_has_no_run_of_zeros() {
        let (mut one, mut other) = (vec![0; 100_001], vec![0; 50_000]);
        fill(&mut one);
        fill(&mut other);
        assert_eq!(one[..50_000], other);
        assert!(!one.windows(16).any(|part| part == [0; 16]));
    }
}
