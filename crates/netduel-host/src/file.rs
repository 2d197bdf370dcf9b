//! Small files of procfs and sysfs, and the kernel's formats in them. A missing file is absent.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use netduel_model::plan::tuning::cores;

/// The whole text of a file.
pub(crate) fn whole(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A file of one value; an empty one is absent.
pub(crate) fn line(path: &Path) -> Option<String> {
    let text = whole(path)?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A file of one decimal number.
pub(crate) fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    line(path)?.parse().ok()
}

/// A file of one number as sysfs writes those of PCI: `0x15b3`.
pub(crate) fn hexadecimal(path: &Path) -> Option<u32> {
    u32::from_str_radix(line(path)?.strip_prefix("0x")?, 16).ok()
}

/// The last component of the target of a symbolic link, for example the name of a `driver`.
pub(crate) fn target_name(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_str()?.to_owned())
}

/// `name   : value` in `/proc/cpuinfo` and `/proc/meminfo`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// A file in the kernel's list format (`0-3,8,10-11`) that names at least one core.
pub(crate) fn cores_in(path: &Path) -> Option<Vec<u16>> {
    whole(path).and_then(|list| cores(&list).ok())
}

/// The kernel's mask format, words of 32 bits with the highest first: `3,00000001` has the cores 0, 32 and 33.
pub(crate) fn cores_of_mask(mask: &str) -> Vec<u16> {
    let mut cores = Vec::new();
    for (index, word) in mask.trim().rsplit(',').enumerate() {
        let bits = u32::from_str_radix(word, 16).unwrap_or(0);
        let set = (0..32_usize).filter(|bit| bits & (1 << bit) != 0);
        cores.extend(set.filter_map(|bit| u16::try_from(index * 32 + bit).ok()));
    }
    cores
}

/// A text from outside, made safe for one line: no control characters, at most 256 characters.
pub(crate) fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(256).collect::<String>().trim().to_owned()
}

/// The names in a folder, sorted.
pub(crate) fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The names in a folder that are a prefix and a number (`node3`), or a number alone when the prefix is empty.
pub(crate) fn numbers_in(folder: &Path, prefix: &str) -> BTreeSet<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_contain_the_same_cores() {
        assert_eq!(cores("0-2,8\n"), Ok(vec![0, 1, 2, 8]));
        assert_eq!(cores_of_mask("00000107\n"), [0, 1, 2, 8]);
        assert_eq!(cores_of_mask("3,00000001"), [0, 32, 33]);
        assert_eq!(cores_of_mask("00000000,00000000"), [0; 0]);
        // More cores than a number of a core has room for.
        assert_eq!(cores_of_mask(&("1,".to_owned() + &"0,".repeat(2_047) + "1")), [0]);
        assert_eq!(cores_of_mask(""), [0; 0]);
        let folder = tempfile::tempdir().unwrap();
        for (text, named) in [("1,4-5\n", Some(vec![1, 4, 5])), ("\n", None), ("(null)\n", None)] {
            let file = folder.path().join("list");
            fs::write(&file, text).unwrap();
            assert_eq!(cores_in(&file), named, "{text:?}");
        }
    }
}
