//! Netlink messages as bytes (include/uapi/linux/netlink.h): a header, a fixed body, nested attributes. Pure.

/// Length of the header of every message, bytes.
pub(crate) const HEADER: usize = 16;
/// The message asks for something.
pub(crate) const REQUEST: u16 = 0x001;
/// An acknowledgement is wanted.
pub(crate) const ACK: u16 = 0x004;
/// A whole table is wanted.
pub(crate) const DUMP: u16 = 0x300;
/// Replace what exists.
pub(crate) const REPLACE: u16 = 0x100;
/// Fail when it exists.
pub(crate) const EXCL: u16 = 0x200;
/// Create it when it does not exist.
pub(crate) const CREATE: u16 = 0x400;
/// Add at the end of the list.
pub(crate) const APPEND: u16 = 0x800;
/// Message type of acknowledgements and errors.
pub(crate) const ERROR: u16 = 2;
/// Message type of the end of a dump.
pub(crate) const DONE: u16 = 3;

const NESTED: u16 = 0x8000;
const TYPE_MASK: u16 = 0x3fff;

/// A message that is being written.
#[derive(Debug, Clone)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// A request of a type, with its fixed body. Length and sequence number are filled in when it is sent.
    pub(crate) fn new(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | REQUEST).to_ne_bytes());
        bytes.extend_from_slice(body);
        Self(bytes).padded()
    }

    fn padded(mut self) -> Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an attribute.
    pub(crate) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len() + 4).expect("the attributes written here are short");
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.padded()
    }

    /// Appends a byte.
    pub(crate) fn u8(self, kind: u16, value: u8) -> Self {
        self.bytes(kind, &[value])
    }

    /// Appends a 32-bit number in the machine's order (rtnetlink).
    pub(crate) fn u32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Appends a 32-bit number in network order (netfilter).
    pub(crate) fn be32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Appends a text that ends with a zero byte.
    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// Appends an attribute that holds what `fill` appends.
    pub(crate) fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        let mut filled = fill(self);
        let length =
            u16::try_from(filled.0.len() - start).expect("nests are kept below 64 KiB by their writers");
        filled.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        filled.0[start + 2..start + 4].copy_from_slice(&(kind | NESTED).to_ne_bytes());
        filled
    }

    /// Appends a fixed structure within a nest; its length must be a multiple of 4.
    pub(crate) fn raw(mut self, structure: &[u8]) -> Self {
        assert_eq!(structure.len() % 4, 0, "a structure before attributes keeps their alignment");
        self.0.extend_from_slice(structure);
        self
    }

    /// Asks for an acknowledgement.
    pub(crate) fn acknowledged(mut self) -> Self {
        self.0[6] |= ACK as u8;
        self
    }

    /// The finished bytes.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("messages are kept far below 4 GiB by their writers");
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// A message that has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    /// Its type.
    pub kind: u16,
    /// The number of the request that it answers.
    pub sequence: u32,
    /// What follows the header.
    pub payload: Vec<u8>,
}

/// The messages of one datagram; what is cut short at its end is left out.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<Received> {
    let mut messages = Vec::new();
    while bytes.len() >= HEADER {
        let length = u32_at(bytes, 0).unwrap_or(0) as usize;
        if length < HEADER || length > bytes.len() {
            break;
        }
        messages.push(Received {
            kind: u16::from_ne_bytes([bytes[4], bytes[5]]),
            sequence: u32_at(bytes, 8).unwrap_or(0),
            payload: bytes[HEADER..length].to_vec(),
        });
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    messages
}

/// The attributes of a payload or nest.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]));
        let kind = u16::from_ne_bytes([*bytes.get(2)?, *bytes.get(3)?]) & TYPE_MASK;
        let value = bytes.get(4..length)?;
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
        Some((kind, value))
    })
}

/// The first attribute of a type.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// A 32-bit number in the machine's order at an offset.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..offset + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// A 64-bit number in the machine's order at an offset.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes.get(offset..offset + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let bytes = Message::new(16, ACK, &[1, 2, 3, 4])
            .text(3, "eth0")
            .nested(18, |nest| nest.text(1, "veth").nested(2, |inner| inner.u8(7, 9)))
            .u32(4, 1500)
            .finish(5);
        let messages = parse(&bytes);
        assert_eq!(messages.len(), 1);
        assert_eq!((messages[0].kind, messages[0].sequence), (16, 5));
        let attributes_of = &messages[0].payload[4..];
        assert_eq!(attribute(attributes_of, 3), Some(&b"eth0\0"[..]));
        let nest = attribute(attributes_of, 18).unwrap();
        assert_eq!(attribute(attribute(nest, 2).unwrap(), 7), Some(&[9][..]));
        assert_eq!(u32_at(attribute(attributes_of, 4).unwrap(), 0), Some(1500));
    }

    #[test]
    fn what_is_cut_short_is_left_out() {
        let bytes = Message::new(16, ACK, &[0; 4]).text(3, "eth0").finish(1);
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length]), Vec::new());
        }
        assert_eq!(attributes(&[200, 0, 1, 0, 5]).count(), 0);
        assert_eq!(attributes(&[0, 0, 1, 0, 5]).count(), 0);
    }
}
