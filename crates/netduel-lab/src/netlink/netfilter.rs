//! nftables of the bridge family over netlink (include/uapi/linux/netfilter/nf_tables.h): tables, chains, sets and rules, in
//! small transactions. Must not know the policy.
use netduel_sys::netlink::{
    APPEND, CREATE, NFT_FIRST, NFT_GET_RULE, NFT_NEW_RULE, NFT_SUBSYSTEM, Request, attributes,
};

use super::socket::{Netlink, Step};
use crate::error::LabError;

const NEWTABLE: u16 = NFT_FIRST;
const NEWCHAIN: u16 = NFT_FIRST + 3;
const NEWSET: u16 = NFT_FIRST + 9;
const NEWSETELEM: u16 = NFT_FIRST + 12;
const GETSETELEM: u16 = NFT_FIRST + 13;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;

const FAMILY_BRIDGE: u8 = 7;
/// `struct nfgenmsg` of every message within a batch.
const BODY: [u8; 4] = [FAMILY_BRIDGE, 0, 0, 0];
/// `struct nfgenmsg` of the start and end of a batch: the subsystem in network order.
const BATCH_BODY: [u8; 4] = [0, 0, 0, NFT_SUBSYSTEM];

/// Maximum number of messages in a transaction. The kernel rejects large ones in a user namespace ("message too long").
const PIECE: usize = 100;

const BRIDGE_FAMILY: &str =
    "nftables for bridges (CONFIG_NF_TABLES, CONFIG_NF_TABLES_BRIDGE, `modprobe nf_tables`)";

const LIST_ELEM: u16 = 1;
const REGISTER: u32 = 1;
const VERDICT_REGISTER: u32 = 0;

/// A field of packet metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meta {
    /// Ether type, network order.
    Protocol,
    /// Name of the input port.
    InputPort,
    /// Name of the output port.
    OutputPort,
    /// Transport protocol.
    Transport,
}

/// Base of a payload offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// The IP header.
    Network,
    /// The TCP or UDP header.
    Transport,
}

/// One step of a rule. A rule ends without effect at the first step that does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    /// Loads a metadata field.
    Meta(Meta),
    /// Loads bytes of the packet.
    Payload(Header, u32, u32),
    /// Matches when the loaded value equals this.
    Equals(Vec<u8>),
    /// Matches when the loaded value lies within these bounds.
    Within(Vec<u8>, Vec<u8>),
    /// Matches when the loaded value is in the set.
    InSet(&'static str),
    /// Drops the packet.
    Drop,
    /// Jumps to a chain, and returns if that has no verdict.
    Jump(&'static str),
}

impl Expression {
    /// Matches when the packet's input or output port has this name.
    pub(crate) fn port(which: Meta, name: &str) -> [Self; 2] {
        // Names are compared in full, as the kernel stores them: 16 bytes, padded with zeros.
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(16, 0);
        [Self::Meta(which), Self::Equals(bytes)]
    }

    fn write(&self, element: Request) -> Request {
        let value =
            |message: Request, kind: u16, bytes: &[u8]| message.nested(kind, |data| data.bytes(1, bytes));
        let (name, data): (&str, Box<dyn FnOnce(Request) -> Request + '_>) = match self {
            Self::Meta(meta) => {
                let key = match meta {
                    Meta::Protocol => 1,
                    Meta::InputPort => 6,
                    Meta::OutputPort => 7,
                    Meta::Transport => 16,
                };
                ("meta", Box::new(move |m| m.be32(1, REGISTER).be32(2, key)))
            }
            Self::Payload(header, offset, length) => {
                let base = if *header == Header::Network { 1 } else { 2 };
                (
                    "payload",
                    Box::new(move |m| m.be32(1, REGISTER).be32(2, base).be32(3, *offset).be32(4, *length)),
                )
            }
            Self::Equals(bytes) => {
                ("cmp", Box::new(move |m| value(m.be32(1, REGISTER).be32(2, 0), 3, bytes)))
            }
            Self::Within(from, to) => {
                ("range", Box::new(move |m| value(value(m.be32(1, REGISTER).be32(2, 0), 3, from), 4, to)))
            }
            Self::InSet(set) => ("lookup", Box::new(move |m| m.text(1, set).be32(2, REGISTER))),
            Self::Drop => ("immediate", Box::new(|m| verdict(m, 0, None))),
            Self::Jump(chain) => ("immediate", Box::new(move |m| verdict(m, -3, Some(chain)))),
        };
        element.nested(LIST_ELEM, |expression| expression.text(1, name).nested(2, data))
    }
}

/// The data of an immediate expression that sets the verdict.
fn verdict(message: Request, code: i32, chain: Option<&str>) -> Request {
    message.be32(1, VERDICT_REGISTER).nested(2, |data| {
        data.nested(2, |verdict| {
            let verdict = verdict.be32(1, code as u32);
            match chain {
                Some(chain) => verdict.text(2, chain),
                None => verdict,
            }
        })
    })
}

/// A table of the bridge family.
pub(crate) fn table(name: &str) -> Request {
    Request::new(NEWTABLE, CREATE, &BODY).text(1, name)
}

/// A chain that other rules jump to.
pub(crate) fn chain(table: &str, name: &str) -> Request {
    Request::new(NEWCHAIN, CREATE, &BODY).text(1, table).text(3, name)
}

/// A chain for all packets that a bridge forwards; packets without a verdict at its end are accepted.
pub(crate) fn forward_chain(table: &str, name: &str) -> Request {
    const NF_BR_FORWARD: u32 = 2;
    const NF_ACCEPT: u32 = 1;
    chain(table, name)
        .nested(4, |hook| hook.be32(1, NF_BR_FORWARD).be32(2, 0))
        .be32(5, NF_ACCEPT)
        .text(7, "filter")
}

/// A rule at the end of a chain.
pub(crate) fn rule(table: &str, chain: &str, expressions: &[Expression]) -> Request {
    Request::new(NFT_NEW_RULE, CREATE | APPEND, &BODY)
        .text(1, table)
        .text(2, chain)
        .nested(4, |list| expressions.iter().fold(list, |list, expression| expression.write(list)))
}

/// A hashed set for `entries` keys of `key_bytes` each. `key_type` is the number under which nft shows the keys.
pub(crate) fn set(table: &str, name: &str, key_type: u32, key_bytes: u32, entries: u32) -> Request {
    Request::new(NEWSET, CREATE, &BODY)
        .text(1, table)
        .text(2, name)
        .be32(3, 0)
        .be32(4, key_type)
        .be32(5, key_bytes)
        .nested(9, |description| description.be32(1, entries.max(1)))
        .be32(10, 1)
}

/// Adds keys to an existing set, in messages of at most [`PIECE`] keys.
pub(crate) fn elements(table: &str, set: &str, keys: &[Vec<u8>]) -> Vec<Request> {
    let message = |keys: &[Vec<u8>]| {
        Request::new(NEWSETELEM, CREATE, &BODY).text(1, table).text(2, set).nested(3, |list| {
            keys.iter().fold(list, |list, key| {
                list.nested(LIST_ELEM, |element| element.nested(1, |data| data.bytes(1, key)))
            })
        })
    };
    keys.chunks(PIECE).map(message).collect()
}

/// Sends messages in transactions of at most [`PIECE`].
pub(crate) fn load(
    netlink: &mut Netlink,
    messages: &[Request],
    operation: &str,
    object: &str,
) -> Result<(), LabError> {
    for piece in messages.chunks(PIECE) {
        let mut batch = Vec::with_capacity(piece.len() + 2);
        batch.push(Request::new(BATCH_BEGIN, 0, &BATCH_BODY));
        let (last, others) = piece.split_last().expect("chunks of a slice are never empty");
        batch.extend_from_slice(others);
        // The kernel acknowledges the last message when all are committed, and reports every message that it rejects.
        batch.push(last.clone().acknowledged());
        batch.push(Request::new(BATCH_END, 0, &BATCH_BODY));
        netlink.batch(batch, Step { operation, object, feature: Some(BRIDGE_FAMILY) })?;
    }
    Ok(())
}

/// Number of rules of a chain in the kernel.
pub(crate) fn count_rules(
    netlink: &mut Netlink,
    table: &str,
    chain: &str,
    object: &str,
) -> Result<u32, LabError> {
    let step = Step { operation: "count the rules of", object, feature: None };
    let rows = netlink.dump(&Request::new(NFT_GET_RULE, 0, &BODY).text(1, table).text(2, chain), step)?;
    Ok(rows.len() as u32)
}

/// Number of keys of a set in the kernel.
pub(crate) fn count_elements(
    netlink: &mut Netlink,
    table: &str,
    set: &str,
    object: &str,
) -> Result<u32, LabError> {
    let step = Step { operation: "count the keys of", object, feature: None };
    let rows = netlink.dump(&Request::new(GETSETELEM, 0, &BODY).text(1, table).text(2, set), step)?;
    let keys = rows
        .iter()
        .flat_map(|row| attributes(row.get(4..).unwrap_or_default()))
        .filter(|(kind, _)| *kind == 3)
        .map(|(_, list)| attributes(list).count())
        .sum::<usize>();
    Ok(keys as u32)
}
