//! The checksum of a line: its last member `crc32`, the CRC-32 of IEEE 802.3 over the bytes before that member. A CRC-32 finds every
//! change of a single bit, and every burst of at most 32 bits; it is no protection against a change on purpose.

/// Start of the member, after the last member of the record.
const START: &[u8] = b",\"crc32\":\"";
/// Hexadecimal digits of the sum.
const DIGITS: usize = 8;
/// End of the member and of the line's object.
const END: &[u8] = b"\"}";

/// What a line says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The line is as it was written.
    Right,
    /// The line was changed.
    Wrong,
    /// It has none: formats before 3, or a line that was changed.
    Absent,
}

/// Adds the checksum to a line, which is a JSON object with at least one member and without a line end.
pub fn add(line: &mut Vec<u8>) {
    line.pop();
    let sum = crc32fast::hash(line);
    line.extend_from_slice(START);
    line.extend_from_slice(format!("{sum:08x}").as_bytes());
    line.extend_from_slice(END);
}

/// Removes the checksum from a line without its line end.
pub fn take(line: &mut Vec<u8>) -> Checksum {
    let Some(start) = line.len().checked_sub(START.len() + DIGITS + END.len()) else {
        return Checksum::Absent;
    };
    let (record, member) = line.split_at(start);
    let Some(digits) = member.strip_prefix(START).and_then(|rest| rest.strip_suffix(END)) else {
        return Checksum::Absent;
    };
    let is_right = format!("{:08x}", crc32fast::hash(record)).as_bytes() == digits;
    line.truncate(start);
    line.push(b'}');
    if is_right { Checksum::Right } else { Checksum::Wrong }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_the_same_after_a_round() {
        let mut line = b"{\"end\":{\"reason\":\"interrupted\"}}".to_vec();
        add(&mut line);
        // The value of other programs, such as Python's zlib.crc32.
        assert_eq!(line, b"{\"end\":{\"reason\":\"interrupted\"},\"crc32\":\"3a1874de\"}");
        assert_eq!(take(&mut line), Checksum::Right);
        assert_eq!(line, b"{\"end\":{\"reason\":\"interrupted\"}}");
        assert_eq!(take(&mut line), Checksum::Absent);
    }

    #[test]
    fn every_changed_bit_is_found() {
        let mut whole = b"{\"trial\":{\"n\":1.5}}".to_vec();
        add(&mut whole);
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(take(&mut changed), Checksum::Right, "bit {bit}");
        }
    }
}
