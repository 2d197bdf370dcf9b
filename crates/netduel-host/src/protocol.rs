//! Protocol counters from `/proc/net/snmp`, `snmp6` and `netstat` (proc(5)). Pure: text in, differences out.
use std::collections::{BTreeMap, HashMap};

/// The texts of one reading; a missing file is empty.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Texts<'a> {
    pub snmp: &'a str,
    pub snmp6: &'a str,
    pub netstat: &'a str,
}

/// `Tcp: RtoMin ...` over `Tcp: 200 ...`: a line of names, then one of values.
fn tables(text: &str) -> impl Iterator<Item = (&str, &str, i64)> {
    let mut lines = text.lines();
    std::iter::from_fn(move || Some((lines.next()?, lines.next()?)))
        .filter_map(|(names, values)| {
            let (group, names) = names.split_once(':')?;
            let (same, values) = values.split_once(':')?;
            (group == same).then_some((group, names, values))
        })
        .flat_map(|(group, names, values)| {
            let values = values.split_ascii_whitespace().map(number);
            names.split_ascii_whitespace().zip(values).map(move |(name, value)| (group, name, value))
        })
        .filter_map(|(group, name, value)| Some((group, name, value?)))
}

/// `Ip6InReceives 5`: the group ends with its 6.
fn list(text: &str) -> impl Iterator<Item = (&str, &str, i64)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (name, value) = (fields.next()?, number(fields.next()?)?);
        let (group, name) = name.split_at_checked(name.find('6')? + 1)?;
        Some((group, name, value))
    })
}

/// Counters are unsigned in the kernel and a few settings among them (`Tcp.MaxConn`) are signed; a difference is right
/// for both when it wraps.
fn number(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(u64::cast_signed))
}

fn all(texts: Texts<'_>) -> impl Iterator<Item = (&str, &str, i64)> {
    tables(texts.snmp).chain(tables(texts.netstat)).chain(list(texts.snmp6))
}

/// Changed counters, as `Tcp.RetransSegs`. Some are gauges (`Tcp.CurrEstab`) and may decrease.
pub(crate) fn differences(before: Texts<'_>, after: Texts<'_>) -> BTreeMap<String, i64> {
    let first: HashMap<(&str, &str), i64> =
        all(before).map(|(group, name, value)| ((group, name), value)).collect();
    all(after)
        .filter_map(|(group, name, value)| {
            // Some lines (`IcmpMsg`) come with their first event, so a missing one stood at 0, provided that the
            // reading as a whole is there.
            let missing = if first.is_empty() { value } else { 0 };
            let change = value.wrapping_sub(first.get(&(group, name)).copied().unwrap_or(missing));
            (change != 0).then(|| (format!("{group}.{name}"), change))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_by_group_and_unchanged_ones_omitted() {
        let before = Texts {
            snmp: "Tcp: MaxConn CurrEstab RetransSegs\nTcp: -1 4 7\n",
            snmp6: "Ip6InReceives  \t10\nUdp6InErrors 1\n",
            netstat: "TcpExt: TCPTimeouts TW\nTcpExt: 18446744073709551615 3\n",
        };
        let after = Texts {
            snmp: "Tcp: MaxConn CurrEstab RetransSegs\nTcp: -1 1 9\nIcmpMsg: InType3\nIcmpMsg: 2\n",
            snmp6: "Ip6InReceives 12\nUdp6InErrors 1\n",
            netstat: "TcpExt: TCPTimeouts TW\nTcpExt: 1 3\n",
        };
        let changed = differences(before, after);
        let seen: Vec<(&str, i64)> = changed.iter().map(|(name, change)| (name.as_str(), *change)).collect();
        assert_eq!(
            seen,
            [
                ("IcmpMsg.InType3", 2),
                ("Ip6.InReceives", 2),
                ("Tcp.CurrEstab", -3),
                ("Tcp.RetransSegs", 2),
                ("TcpExt.TCPTimeouts", 2)
            ]
        );
    }

    #[test]
    fn reading_without_its_files_has_no_differences() {
        let after = Texts { snmp: "Tcp: RetransSegs\nTcp: 9\n", ..Texts::default() };
        assert!(differences(Texts::default(), after).is_empty());
        assert!(differences(after, Texts::default()).is_empty());
    }

    #[test]
    fn lines_that_do_not_belong_together_are_skipped() {
        let torn = Texts { snmp: "Tcp: A B\nUdp: 1 2\n", snmp6: "nonsense\n", netstat: "half" };
        assert!(differences(torn, torn).is_empty());
    }
}
