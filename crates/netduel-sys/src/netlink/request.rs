//! Writes netlink messages: a header, a fixed body, nested attributes (include/uapi/linux/netlink.h). Pure.
use super::message::HEADER_LEN;

/// `NLM_F_REPLACE`: replace what exists.
pub const REPLACE: u16 = libc::NLM_F_REPLACE as u16;
/// `NLM_F_EXCL`: fail when it exists.
pub const EXCL: u16 = libc::NLM_F_EXCL as u16;
/// `NLM_F_CREATE`: create it when it does not exist.
pub const CREATE: u16 = libc::NLM_F_CREATE as u16;
/// `NLM_F_APPEND`: add at the end of the list.
pub const APPEND: u16 = libc::NLM_F_APPEND as u16;

/// The flag of a nested attribute.
const NESTED: u16 = libc::NLA_F_NESTED as u16;
/// Length of the header of an attribute, bytes.
const ATTRIBUTE_HEADER_LEN: usize = 4;

/// A message under construction.
#[derive(Debug, Clone)]
pub struct Request(Vec<u8>);

impl Request {
    /// A request of a type, with its fixed body. Its length and sequence number are filled in by [`Request::finish`].
    pub fn new(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(body);
        Self(bytes).padded().with_flags(flags | libc::NLM_F_REQUEST as u16)
    }

    /// Requests an acknowledgement.
    #[must_use]
    pub fn acknowledged(self) -> Self {
        self.with_flags(libc::NLM_F_ACK as u16)
    }

    /// Requests a whole table.
    #[must_use]
    pub(super) fn dump(self) -> Self {
        self.with_flags(libc::NLM_F_DUMP as u16)
    }

    fn with_flags(mut self, flags: u16) -> Self {
        let flags = flags | u16::from_ne_bytes([self.0[6], self.0[7]]);
        self.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        self
    }

    fn padded(mut self) -> Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an attribute.
    ///
    /// # Panics
    /// When the value has 64 KiB or more, the limit of an attribute.
    #[must_use]
    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len() + ATTRIBUTE_HEADER_LEN).expect("an attribute is below 64 KiB");
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.padded()
    }

    /// Appends a byte.
    #[must_use]
    pub fn u8(self, kind: u16, value: u8) -> Self {
        self.bytes(kind, &[value])
    }

    /// Appends a 32-bit number in native byte order (rtnetlink).
    #[must_use]
    pub fn u32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Appends a 32-bit number in network byte order (netfilter).
    #[must_use]
    pub fn be32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Appends a string with its final zero byte.
    #[must_use]
    pub fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// Appends a nested attribute; `fill` appends its content.
    ///
    /// # Panics
    /// When the content has 64 KiB or more, the limit of an attribute.
    #[must_use]
    pub fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; ATTRIBUTE_HEADER_LEN]);
        let mut filled = fill(self);
        let length = u16::try_from(filled.0.len() - start).expect("a nest of attributes is below 64 KiB");
        filled.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        filled.0[start + 2..start + 4].copy_from_slice(&(kind | NESTED).to_ne_bytes());
        filled
    }

    /// Appends a fixed structure at the beginning of a nest.
    ///
    /// # Panics
    /// When its length is not a multiple of 4: the attributes after it would not be aligned.
    #[must_use]
    pub fn structure(mut self, bytes: &[u8]) -> Self {
        assert_eq!(bytes.len() % 4, 0, "a structure before attributes keeps their alignment");
        self.0.extend_from_slice(bytes);
        self
    }

    /// The bytes of the message, with its length and sequence number.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        // `nested` and `bytes` bound each part; no request has thousands of parts.
        let length = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}
