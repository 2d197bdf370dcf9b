//! Receive-side scaling (`ethtool -x`, `-X`; `struct ethtool_rxfh`): the receive queue for the hash of a flow.
use std::io;

use super::ioctl::{Ethtool, too_large};

const GET_RECEIVE_RINGS: u32 = 0x2d;
const GET_RSS: u32 = 0x46;
const SET_RSS: u32 = 0x47;
/// Bytes of `struct ethtool_rxfh` before the table.
const HEAD_LEN: usize = 24;
/// Bytes of `struct ethtool_rxnfc`.
const RXNFC_LEN: usize = 192;

/// The hash function of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashFunction {
    /// Toeplitz.
    Toeplitz,
    /// Exclusive or.
    Xor,
    /// CRC-32.
    Crc32,
    /// A newer one, by its bit (`ETH_RSS_HASH_*`).
    Other(u8),
}

/// `ethtool -x`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rss {
    /// The receive queue of each entry; the entry of a flow is its hash modulo the length. Empty when the driver reports no table.
    pub indirection: Vec<u32>,
    /// The key of the hash; empty when the driver reports none.
    pub key: Vec<u8>,
    /// The hash function, when the driver reports one.
    pub function: Option<HashFunction>,
}

impl Ethtool {
    /// The distribution of flows over the receive queues.
    ///
    /// # Errors
    /// `ENODEV` without such an interface, `EOPNOTSUPP` when the driver has no table, `EINVAL` when its size changed in
    /// between.
    pub fn rss(&mut self, interface: &str) -> io::Result<Rss> {
        // The answer to a request without space contains the sizes.
        self.memory.clear(HEAD_LEN);
        self.exchange(interface, GET_RSS)?;
        let (slots, key_len) = (self.memory.word(8), self.memory.word(12));
        let (table_len, key_len) = (slots as usize * 4, key_len as usize);
        if self.memory.bytes().len() < HEAD_LEN + table_len + key_len {
            return Err(too_large());
        }
        self.memory.clear(HEAD_LEN + table_len + key_len);
        self.memory.set_word(8, slots);
        self.memory.set_word(12, key_len as u32);
        self.exchange(interface, GET_RSS)?;
        let bytes = self.memory.bytes();
        let function = match bytes[16] {
            0 => None,
            1 => Some(HashFunction::Toeplitz),
            2 => Some(HashFunction::Xor),
            4 => Some(HashFunction::Crc32),
            bit => Some(HashFunction::Other(bit)),
        };
        let table = &bytes[HEAD_LEN..HEAD_LEN + table_len];
        Ok(Rss {
            indirection: table.as_chunks::<4>().0.iter().map(|slot| u32::from_ne_bytes(*slot)).collect(),
            key: bytes[HEAD_LEN + table_len..HEAD_LEN + table_len + key_len].to_vec(),
            function,
        })
    }

    /// Sets the table; key and function are unchanged. An empty table selects the driver's default, an even
    /// distribution. The settings of the device are read first, because the request contains them all.
    ///
    /// # Errors
    /// `EINVAL` when the table's length is not the device's or a queue does not exist, `EOPNOTSUPP` without a table,
    /// `EPERM` without `CAP_NET_ADMIN`.
    pub fn set_rss_indirection(&mut self, interface: &str, table: &[u32]) -> io::Result<()> {
        if self.memory.bytes().len() < HEAD_LEN + table.len() * 4 {
            return Err(too_large());
        }
        self.memory.clear(HEAD_LEN);
        self.exchange(interface, GET_RSS)?;
        // `hfunc` and `input_xfrm` share a word with two reserved bytes. A function of 0 means "no change", but an `input_xfrm` of 0 means
        // "no symmetric hashing".
        let [_, transform, ..] = self.memory.word(16).to_ne_bytes();
        self.memory.clear(HEAD_LEN + table.len() * 4);
        self.memory.set_word(8, table.len() as u32);
        self.memory.set_word(16, u32::from_ne_bytes([0, transform, 0, 0]));
        for (index, queue) in table.iter().enumerate() {
            self.memory.set_word(HEAD_LEN + index * 4, *queue);
        }
        self.exchange(interface, SET_RSS)
    }

    /// Receive queues that a table may contain.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when the driver does not report it.
    pub fn receive_rings(&mut self, interface: &str) -> io::Result<u64> {
        self.memory.clear(RXNFC_LEN);
        self.exchange(interface, GET_RECEIVE_RINGS)?;
        Ok(self.memory.bytes()[8..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_rss_table_and_rejects_one() {
        let mut ethtool = Ethtool::open().unwrap();
        assert_eq!(ethtool.rss("lo").unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
        let refused = ethtool.set_rss_indirection("lo", &[0]).unwrap_err().raw_os_error();
        assert!(matches!(refused, Some(libc::EOPNOTSUPP | libc::EPERM)), "{refused:?}");
        assert_eq!(ethtool.receive_rings("lo").unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
