//! Parses netlink messages and their attributes. Pure, and bounded: truncated or invalid bytes end the parsing.
//!
//! It iterates over the bytes and does not parse every attribute: unknown attributes of a newer kernel must not cause an error, and a
//! reading around a trial must be cheap.

/// Bytes of `struct nlmsghdr`.
pub const HEADER_LEN: usize = 16;
/// The bits of an attribute's type without flags (`NLA_TYPE_MASK`).
const TYPE_MASK: u16 = 0x3fff;

/// One received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its type.
    pub kind: u16,
    /// Its flags.
    pub flags: u16,
    /// The sequence number of the request that it answers.
    pub sequence: u32,
    /// The payload after the header.
    pub payload: &'a [u8],
    /// Header and payload, padded.
    pub raw: &'a [u8],
}

impl<'a> Message<'a> {
    /// The attributes behind a fixed body of `body_len` bytes.
    pub fn attributes(&self, body_len: usize) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        attributes(self.payload.get(body_len..).unwrap_or_default())
    }
}

/// Iterates over messages; ends at the first truncated one.
pub fn messages(bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        let payload = rest.get(HEADER_LEN..length)?;
        let (kind, flags, sequence) = (u16_at(rest, 4)?, u16_at(rest, 6)?, u32_at(rest, 8)?);
        let raw = &rest[..length.next_multiple_of(4).min(rest.len())];
        rest = &rest[raw.len()..];
        Some(Message { kind, flags, sequence, payload, raw })
    })
}

/// Iterates over attributes (type without its flags, value); ends at the first truncated one.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & TYPE_MASK;
        let value = rest.get(4..length)?;
        rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        Some((kind, value))
    })
}

/// The value of the first attribute of a type.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// A 16-bit number in native byte order at an offset.
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().map(|chunk| u16::from_ne_bytes(*chunk))
}

/// A 32-bit number in native byte order at an offset.
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|chunk| u32::from_ne_bytes(*chunk))
}

/// A 64-bit number in native byte order at an offset.
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes.get(offset..)?.first_chunk().map(|chunk| u64::from_ne_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::{CREATE, Request};

    /// Attributes as a request writes them: type, and a value or further attributes.
    #[derive(Debug, Clone)]
    enum Tree {
        Value(u16, Vec<u8>),
        Nest(u16, Vec<Tree>),
    }

    impl Tree {
        fn write(&self, request: Request) -> Request {
            match self {
                Self::Value(kind, value) => request.bytes(*kind, value),
                Self::Nest(kind, inner) => {
                    request.nested(*kind, |nest| inner.iter().fold(nest, |nest, tree| tree.write(nest)))
                }
            }
        }

        fn assert_read(trees: &[Self], bytes: &[u8]) {
            let read: Vec<(u16, &[u8])> = attributes(bytes).collect();
            assert_eq!(read.len(), trees.len());
            for (tree, (kind, value)) in trees.iter().zip(read) {
                match tree {
                    Self::Value(wanted, bytes) => assert_eq!((kind, value), (*wanted, &bytes[..])),
                    Self::Nest(wanted, inner) => {
                        assert_eq!(kind, *wanted);
                        Self::assert_read(inner, value);
                    }
                }
            }
        }
    }

    fn trees() -> impl Strategy<Value = Vec<Tree>> {
        let value = (0..=TYPE_MASK, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(kind, value)| Tree::Value(kind, value));
        let tree = value.prop_recursive(3, 24, 4, |inner| {
            (0..=TYPE_MASK, prop::collection::vec(inner, 0..4))
                .prop_map(|(kind, inner)| Tree::Nest(kind, inner))
        });
        prop::collection::vec(tree, 0..5)
    }

    /// Reads all attributes, nested ones too, and returns the total length of their values.
    fn read_all(bytes: &[u8], depth: u32) -> usize {
        let below = |value| if depth == 0 { 0 } else { read_all(value, depth - 1) };
        attributes(bytes).map(|(_, value)| value.len().max(below(value))).sum()
    }

    proptest! {
        #[test]
        fn written_entries_are_read_back(
            batch in prop::collection::vec((any::<u16>(), any::<u32>(), trees()), 1..4),
            body in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let body: Vec<u8> = body.repeat(4);
            let bytes: Vec<u8> = batch
                .iter()
                .flat_map(|(kind, sequence, trees)| {
                    let request = Request::new(*kind, CREATE, &body);
                    trees.iter().fold(request, |request, tree| tree.write(request)).finish(*sequence)
                })
                .collect();
            let read: Vec<Message<'_>> = messages(&bytes).collect();
            prop_assert_eq!(read.len(), batch.len());
            prop_assert_eq!(read.iter().map(|message| message.raw.len()).sum::<usize>(), bytes.len());
            for (message, (kind, sequence, trees)) in read.iter().zip(&batch) {
                prop_assert_eq!((message.kind, message.sequence), (*kind, *sequence));
                prop_assert_eq!(message.flags, CREATE | libc::NLM_F_REQUEST as u16);
                prop_assert_eq!(&message.payload[..body.len()], &body[..]);
                Tree::assert_read(trees, &message.payload[body.len()..]);
            }
        }

        #[test]
        fn garbage_ends_the_walk_within_its_bounds(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(messages(&bytes).map(|message| message.raw.len()).sum::<usize>() <= bytes.len());
            prop_assert!(read_all(&bytes, 4) <= bytes.len());
            for message in messages(&bytes) {
                prop_assert!(message.attributes(16).map(|(_, value)| value.len()).sum::<usize>() <= bytes.len());
            }
        }

        #[test]
        fn damaged_message_is_read_within_its_bounds(
            trees in trees(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes =
                trees.iter().fold(Request::new(16, 0, &[0; 16]), |request, tree| tree.write(request)).finish(1);
            for (at, value) in damage {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
            for message in messages(&bytes) {
                prop_assert!(message.raw.len() <= bytes.len());
                prop_assert!(read_all(message.payload, 4) <= message.payload.len());
            }
        }
    }

    #[test]
    fn truncated_message_or_attribute_ends_the_iteration() {
        let bytes = [Request::new(16, 0, &[7; 4]).finish(1), Request::new(16, 0, &[7; 8]).finish(2)].concat();
        assert_eq!(messages(&bytes).count(), 2);
        for cut in 0..bytes.len() {
            assert!(messages(&bytes[..cut]).count() < 2, "{cut}");
        }
        let attribute = [8, 0, 3, 0x80, 1, 2, 3, 4, 5, 0, 9, 0, 1];
        assert_eq!(attributes(&attribute).collect::<Vec<_>>(), [(3, &[1, 2, 3, 4][..]), (9, &[1][..])]);
        assert_eq!(attributes(&attribute[..12]).count(), 1);
        for without_progress in [&[0, 0, 0, 0][..], &[3, 0, 1, 0, 5], &[200, 0, 1, 0, 5]] {
            assert_eq!(attributes(without_progress).count(), 0, "{without_progress:?}");
        }
        assert_eq!(messages(&[15, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]).count(), 0);
    }

    #[test]
    fn first_attribute_of_a_type_is_used() {
        let bytes = Request::new(0, 0, &[]).u8(7, 1).text(3, "eth0").u8(7, 2).finish(1);
        let attributes = &bytes[HEADER_LEN..];
        assert_eq!(attribute(attributes, 7), Some(&[1][..]));
        assert_eq!(attribute(attributes, 3), Some(&b"eth0\0"[..]));
        assert_eq!(attribute(attributes, 9), None);
    }
}
