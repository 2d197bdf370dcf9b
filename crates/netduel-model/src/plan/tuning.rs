//! How queues and cores are shared out in a treatment: the words of a plan and what they mean. Pure.
use std::fmt;
use std::str::FromStr;

use crate::word::word;
use crate::workload::setting::{CORES, QUEUES_MOST};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters of interrupt coalescing as `ethtool -C` names them.
pub const COALESCE_PARAMETERS: [&str; 22] = [
    "rx-usecs",
    "rx-frames",
    "rx-usecs-irq",
    "rx-frames-irq",
    "tx-usecs",
    "tx-frames",
    "tx-usecs-irq",
    "tx-frames-irq",
    "stats-block-usecs",
    "adaptive-rx",
    "adaptive-tx",
    "pkt-rate-low",
    "rx-usecs-low",
    "rx-frames-low",
    "tx-usecs-low",
    "tx-frames-low",
    "pkt-rate-high",
    "rx-usecs-high",
    "rx-frames-high",
    "tx-usecs-high",
    "tx-frames-high",
    "sample-interval",
];

/// Which cores work for the queues of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "choice", rename_all = "kebab-case")]
pub enum CoreChoice {
    /// None in particular: the kernel's own way.
    Off,
    /// The cores are dealt out, queue by queue.
    Spread,
    /// These, for every queue.
    Cores {
        /// Their numbers, ascending.
        cores: Vec<u16>,
    },
}

impl FromStr for CoreChoice {
    type Err = String;

    /// `off`, `spread` or a list such as `0-3,6`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "spread" => Ok(Self::Spread),
            list => cores(list).map(|cores| Self::Cores { cores }),
        }
    }
}

impl fmt::Display for CoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Spread => f.write_str("spread"),
            Self::Cores { cores } => f.write_str(&core_list(cores)),
        }
    }
}

/// A list of cores as the kernel writes it: numbers and ranges, parted by commas. The numbers come back ascending and each once.
///
/// # Errors
/// What is wrong with the text, as a fragment.
pub fn cores(list: &str) -> Result<Vec<u16>, String> {
    let mut cores = cores_in_order(list)?;
    cores.sort_unstable();
    cores.dedup();
    Ok(cores)
}

/// The same, in the order of the list: threads use the cores of a workload in turn.
///
/// # Errors
/// What is wrong with the text, as a fragment.
pub fn cores_in_order(list: &str) -> Result<Vec<u16>, String> {
    let wrong = || format!("{list:?} is no list of cores");
    let beyond = |core: u64| format!("{list:?} has core {core}; the range of a core is {}", CORES.words());
    let mut cores = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        let [first, last] = [first, last].map(|number| core_in_range(number).ok_or_else(|| beyond(number)));
        cores.extend(first?..=last?);
    }
    Ok(cores)
}

/// The number of a core that is in its range.
pub(crate) fn core_in_range(number: u64) -> Option<u16> {
    u16::try_from(number).ok().filter(|_| CORES.contains(number))
}

/// The shortest list of these ascending cores, for example `0-3,6`.
pub fn core_list(cores: &[u16]) -> String {
    let mut parts: Vec<(u16, u16)> = Vec::new();
    for core in cores {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*core) => *last = *core,
            _ => parts.push((*core, *core)),
        }
    }
    let part = |(first, last): &(u16, u16)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// The kernel's text of a set of cores, as `rps_cpus` takes it: 32 of them to a group of hexadecimal digits, the highest first.
pub fn core_mask(cores: &[u16]) -> String {
    let mut groups = vec![0_u32; cores.iter().max().map_or(1, |core| usize::from(*core) / 32 + 1)];
    for core in cores {
        groups[usize::from(*core) / 32] |= 1 << (core % 32);
    }
    let mut groups = groups.iter().rev();
    let highest = groups.next().map(|group| format!("{group:x}"));
    highest.into_iter().chain(groups.map(|group| format!("{group:08x}"))).collect::<Vec<_>>().join(",")
}

/// How an RSS table shares its slots out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "spread", rename_all = "kebab-case")]
pub enum RssSpread {
    /// As the driver does by itself.
    Default,
    /// In turn over the first queues.
    Equal {
        /// Number of queues.
        queues: u32,
    },
    /// In proportion; queue `i` has weight `i`.
    Weights {
        /// One for each of the first queues; not all 0.
        weights: Vec<u32>,
    },
}

impl FromStr for RssSpread {
    type Err = String;

    /// `default`, `equal 4` or `weights 6 2 0 1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no way to spread flows");
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |word: &&str| word.parse::<u32>().map_err(|_| wrong());
        match words.split_first() {
            Some((&"default", [])) => Ok(Self::Default),
            Some((&"equal", [queues])) => match number(queues)? {
                queues if (1..=QUEUES_MOST).contains(&queues.into()) => Ok(Self::Equal { queues }),
                _ => Err(wrong()),
            },
            Some((&"weights", weights)) => {
                let weights = weights.iter().map(number).collect::<Result<Vec<_>, _>>()?;
                let good = weights.len() as u64 <= QUEUES_MOST && weights.iter().any(|weight| *weight > 0);
                if good { Ok(Self::Weights { weights }) } else { Err(wrong()) }
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for RssSpread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Equal { queues } => write!(f, "equal {queues}"),
            Self::Weights { weights } => {
                f.write_str("weights")?;
                weights.iter().try_for_each(|weight| write!(f, " {weight}"))
            }
        }
    }
}

/// Which ring of an interface's queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ring {
    /// For receiving.
    Rx,
    /// For sending.
    Tx,
}

impl Ring {
    /// `rx` or `tx`.
    pub fn word(self) -> &'static str {
        word(&self)
    }
}

/// What is done to a virtual function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VfState {
    /// Its link is set down.
    Down,
}

/// What is done to a PCI function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PciState {
    /// It is removed from the bus.
    Removed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_cores_is_written_in_groups_of_32() {
        let mask = |cores: std::ops::Range<u16>| core_mask(&cores.collect::<Vec<_>>());
        assert_eq!([0..0, 0..2, 0..8, 0..32].map(mask), ["0", "3", "ff", "ffffffff"]);
        assert_eq!([0..33, 0..64, 32..33].map(mask), ["1,ffffffff", "ffffffff,ffffffff", "1,00000000"]);
        assert_eq!(core_mask(&[31, 32, 64]), "1,00000001,80000000");
    }

    #[test]
    fn a_list_of_cores_is_read_and_written_as_the_kernel_does() {
        for (text, list, again) in [
            ("0", vec![0], "0"),
            ("0-3", vec![0, 1, 2, 3], "0-3"),
            ("6,0-2,1", vec![0, 1, 2, 6], "0-2,6"),
            ("1,3,4\n", vec![1, 3, 4], "1,3-4"),
        ] {
            assert_eq!(cores(text).unwrap(), list);
            assert_eq!(core_list(&list), again);
        }
        for bad in ["", "3-1", "a", "1,,2", "-1", "1 2"] {
            assert_eq!(cores(bad).unwrap_err(), format!("{bad:?} is no list of cores"));
        }
    }

    #[test]
    fn core_beyond_the_range_is_refused_with_the_range() {
        for (text, core) in [("8192", 8192), ("0-9000", 9000), ("1,70000", 70_000)] {
            let expected = format!("{text:?} has core {core}; the range of a core is 0 to 8191");
            assert_eq!(cores(text).unwrap_err(), expected);
        }
        assert_eq!(cores("8191"), Ok(vec![8191]));
    }

    #[test]
    fn cores_in_order_keep_the_order_of_the_list() {
        assert_eq!(cores_in_order("6, 0-2,1"), Ok(vec![6, 0, 1, 2, 1]));
    }

    #[test]
    fn written_value_is_read_back_equal() {
        for text in ["off", "spread", "0-3,6"] {
            assert_eq!(text.parse::<CoreChoice>().unwrap().to_string(), text);
        }
        for text in ["default", "equal 4", "weights 6 0 2"] {
            assert_eq!(text.parse::<RssSpread>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "equal",
            "equal 0",
            "equal 4 4",
            "weights",
            "weights 0 0",
            "weights -1",
            "default 1",
            "even 4",
        ] {
            assert!(bad.parse::<RssSpread>().is_err(), "{bad:?}");
        }
    }
}
