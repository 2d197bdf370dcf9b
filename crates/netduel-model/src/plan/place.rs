//! Where a key of a plan or a bed stands, in words: `arm "fast", treatment 1, mtu` of `arms[1].treatments[0].mtu`. For messages only.
use std::collections::BTreeMap;

/// Lists of tables, with the noun of an element.
const ELEMENTS: &[(&str, &str)] =
    &[("arms", "arm"), ("workloads", "workload"), ("treatments", "treatment"), ("events", "event")];

/// The place of a key. `names`: those of elements that have one, by path; the others have a number, from 1.
pub(super) fn in_words(key: &str, names: &BTreeMap<String, String>) -> String {
    let (mut words, mut follows_element) = (String::new(), false);
    for (path, part) in parts(key) {
        let element = element(part);
        let noun = element.and_then(|(list, _)| noun_of(list));
        let separator = match (words.is_empty(), follows_element || noun.is_some()) {
            (true, _) => "",
            (false, true) => ", ",
            (false, false) => ".",
        };
        let text = match (element, noun, names.get(path)) {
            (Some(_), Some(noun), Some(name)) => format!("{noun} \"{name}\""),
            (Some((_, number)), Some(noun), None) => format!("{noun} {number}"),
            (Some((list, number)), None, _) => format!("{list}, element {number}"),
            (None, _, _) => part.to_owned(),
        };
        words.push_str(separator);
        words.push_str(&text);
        follows_element = element.is_some();
    }
    words
}

/// What an element of a list of tables is called.
fn noun_of(list: &str) -> Option<&'static str> {
    ELEMENTS.iter().find(|(known, _)| *known == list).map(|(_, noun)| *noun)
}

/// The parts of a path between its dots, each with the path that ends with it. A dot in quotes is a letter of a key.
fn parts(key: &str) -> Vec<(&str, &str)> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut ends = Vec::new();
    for (offset, letter) in key.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => ends.push(offset),
            _ => {}
        }
    }
    ends.push(key.len());
    let starts = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
    let part = |(start, end): (usize, &usize)| Some((key.get(..*end)?, key.get(start..*end)?));
    starts.zip(&ends).filter_map(part).collect()
}

/// The list of an element and its number from 1; absent for a part that is no element.
fn element(part: &str) -> Option<(&str, usize)> {
    let (list, index) = part.strip_suffix(']')?.rsplit_once('[')?;
    Some((list, index.parse::<usize>().ok()?.checked_add(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_has_its_name_or_its_number_from_1() {
        let names = [("arms[1]", "fast"), ("workloads[0]", "bulk")];
        let names = names.into_iter().map(|(path, name)| (path.to_owned(), name.to_owned())).collect();
        for (key, words) in [
            ("name", "name"),
            ("design.budget", "design.budget"),
            ("arms", "arms"),
            ("arms[0]", "arm 1"),
            ("arms[1].treatments[0].mtu", "arm \"fast\", treatment 1, mtu"),
            ("arms[1].set.streams", "arm \"fast\", set.streams"),
            ("arms[1].set.events[1].do", "arm \"fast\", set, event 2, do"),
            ("workloads[0].metrics[1]", "workload \"bulk\", metrics, element 2"),
            ("workloads[1].dpdk.queues", "workload 2, dpdk.queues"),
            ("hosts.near.addresses[0]", "hosts.near.addresses, element 1"),
            ("hosts.\"so. near[0]\".launch", "hosts.\"so. near[0]\".launch"),
            ("hosts.\"a\\\".arms[0]\".bed", "hosts.\"a\\\".arms[0]\".bed"),
            ("", ""),
        ] {
            assert_eq!(in_words(key, &names), words);
        }
    }
}
