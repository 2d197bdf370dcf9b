//! Processors, caches and memory nodes from `/proc/cpuinfo` and `/sys/devices/system`.
use std::collections::BTreeSet;
use std::path::Path;

use netduel_model::snapshot::{Cache, HugePages, NumaNode, Processor};

use crate::file::{cores_in, field, line, number, numbers_in, whole};

/// Implementer, part and name of arm64 processors of servers, as `arch/arm64/include/asm/cputype.h` of the kernel lists them.
const ARM_PARTS: [(u32, u32, &str); 9] = [
    (0x41, 0xd0c, "Arm Neoverse N1"),
    (0x41, 0xd40, "Arm Neoverse V1"),
    (0x41, 0xd49, "Arm Neoverse N2"),
    (0x41, 0xd4f, "Arm Neoverse V2"),
    (0x41, 0xd8e, "Arm Neoverse N3"),
    (0x41, 0xd84, "Arm Neoverse V3"),
    (0x41, 0xd08, "Arm Cortex-A72"),
    (0xc0, 0xac3, "AmpereOne"),
    (0xc0, 0xac4, "AmpereOne A"),
];

/// The model of the first processor in the text of `/proc/cpuinfo`. The kernel has its name on x86, and two numbers on arm64.
pub(crate) fn cpu_model(cpuinfo: &str) -> Option<String> {
    if let Some(name) = field(cpuinfo, "model name") {
        return Some(name.to_owned());
    }
    let hexadecimal = |name| u32::from_str_radix(field(cpuinfo, name)?.strip_prefix("0x")?, 16).ok();
    let (implementer, part) = (hexadecimal("CPU implementer")?, hexadecimal("CPU part")?);
    let known = ARM_PARTS.into_iter().find(|known| (known.0, known.1) == (implementer, part));
    Some(known.map_or_else(
        || format!("arm64 implementer {implementer:#x} part {part:#x}"),
        |(_, _, name)| name.to_owned(),
    ))
}

/// `family 25, model 1, stepping 1, microcode 0xa0011d1` of the first processor in the text of `/proc/cpuinfo`: a guest's model name may not
/// tell the generation. Absent on arm64.
fn cpu_identity(cpuinfo: &str) -> Option<String> {
    field(cpuinfo, "cpu family")?;
    let names =
        [("cpu family", "family"), ("model", "model"), ("stepping", "stepping"), ("microcode", "microcode")];
    let parts =
        names.into_iter().filter_map(|(name, word)| Some(format!("{word} {}", field(cpuinfo, name)?)));
    Some(parts.collect::<Vec<_>>().join(", "))
}

/// The processors. `allowed`: the cores that this process may run on, if they are known.
pub(crate) fn processor(root: &Path, cpuinfo: &str, allowed: Option<&[u16]>) -> Option<Processor> {
    let folder = root.join("sys/devices/system/cpu");
    let online = cores_in(&folder.join("online"))?;
    let of = |core: u16, below: &str| folder.join(format!("cpu{core}")).join(below);
    let packages: BTreeSet<i32> =
        online.iter().filter_map(|core| number(&of(*core, "topology/physical_package_id"))).collect();
    // -1: the hypervisor does not expose the sockets.
    let sockets = packages.iter().filter(|package| **package >= 0).count() as u32;
    let governors: BTreeSet<String> =
        online.iter().filter_map(|core| line(&of(*core, "cpufreq/scaling_governor"))).collect();
    let governors: Vec<String> = governors.into_iter().collect();
    Some(Processor {
        identity: cpu_identity(cpuinfo),
        sockets: (sockets > 0).then_some(sockets),
        physical_cores: grouped(root, &online.iter().copied().collect()),
        max_khz: online.iter().filter_map(|core| number(&of(*core, "cpufreq/cpuinfo_max_freq"))).max(),
        governor: (!governors.is_empty()).then(|| governors.join(", ")),
        caches: caches(&of(*online.first()?, "cache")),
        allowed: allowed.filter(|allowed| *allowed != online).map(<[u16]>::to_vec),
        isolated: cores_in(&folder.join("isolated")).unwrap_or_default(),
    })
}

/// The threads of each physical core that are online and usable, by the number of its first one.
pub(crate) fn physical_cores(root: &Path, usable: &[u16]) -> Vec<Vec<u16>> {
    let online = cores_in(&root.join("sys/devices/system/cpu/online"));
    let is_online = |core: &u16| online.as_ref().is_none_or(|online| online.contains(core));
    grouped(root, &usable.iter().copied().filter(is_online).collect())
}

/// These cores as the threads of each physical core.
fn grouped(root: &Path, usable: &BTreeSet<u16>) -> Vec<Vec<u16>> {
    let folder = root.join("sys/devices/system/cpu");
    let mut grouped: BTreeSet<u16> = BTreeSet::new();
    let mut physical = Vec::new();
    for core in usable {
        if grouped.contains(core) {
            continue;
        }
        let siblings = cores_in(&folder.join(format!("cpu{core}/topology/thread_siblings_list")));
        let mut group: BTreeSet<u16> =
            siblings.unwrap_or_default().into_iter().filter(|sibling| usable.contains(sibling)).collect();
        group.insert(*core);
        grouped.extend(&group);
        physical.push(group.into_iter().collect());
    }
    physical
}

fn caches(folder: &Path) -> Vec<Cache> {
    let cache = |index: u32| {
        let of = folder.join(format!("index{index}"));
        Some(Cache {
            level: number(&of.join("level"))?,
            kind: line(&of.join("type"))?,
            bytes: size(&line(&of.join("size"))?)?,
            cores: cores_in(&of.join("shared_cpu_list")).unwrap_or_default(),
        })
    };
    let mut caches: Vec<Cache> = numbers_in(folder, "index").into_iter().filter_map(cache).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// `32K`, as the kernel writes the sizes of caches; bytes.
fn size(text: &str) -> Option<u64> {
    text.strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The memory nodes in the order of their numbers. A kernel without NUMA lists none; with huge pages it has one node here.
pub(crate) fn nodes(root: &Path) -> Vec<NumaNode> {
    let folder = root.join("sys/devices/system/node");
    let node = |number: u32| {
        let of = folder.join(format!("node{number}"));
        let distances = line(&of.join("distance")).unwrap_or_default();
        NumaNode {
            number,
            cores: cores_in(&of.join("cpulist")).unwrap_or_default(),
            memory_bytes: memory(&of.join("meminfo"), &format!("Node {number} MemTotal")),
            distances: distances.split_whitespace().filter_map(|distance| distance.parse().ok()).collect(),
            huge_pages: huge_pages(&of.join("hugepages")),
        }
    };
    let nodes: Vec<NumaNode> = numbers_in(&folder, "node").into_iter().map(node).collect();
    if nodes.is_empty() { only_node(root).into_iter().collect() } else { nodes }
}

/// The whole machine as node 0, as which a kernel without NUMA counts all cores and memory. Absent without huge pages: other facts of the
/// host have the rest.
fn only_node(root: &Path) -> Option<NumaNode> {
    let huge_pages = huge_pages(&root.join("sys/kernel/mm/hugepages"));
    (!huge_pages.is_empty()).then(|| NumaNode {
        number: 0,
        cores: cores_in(&root.join("sys/devices/system/cpu/online")).unwrap_or_default(),
        memory_bytes: memory(&root.join("proc/meminfo"), "MemTotal"),
        distances: Vec::new(),
        huge_pages,
    })
}

/// A line of `meminfo`, in bytes.
pub(crate) fn memory(file: &Path, name: &str) -> Option<u64> {
    let text = whole(file)?;
    let kib: u64 = field(&text, name)?.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Folders named `hugepages-2048kB`.
fn huge_pages(folder: &Path) -> Vec<HugePages> {
    let mut pages: Vec<HugePages> = crate::file::names_in(folder)
        .iter()
        .filter_map(|name| {
            let size_kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            let of = folder.join(name);
            let total = number(&of.join("nr_hugepages"))?;
            Some(HugePages { size_kib, total, free: number(&of.join("free_hugepages"))? })
        })
        .collect();
    pages.sort_by_key(|pages| pages.size_kib);
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_of_arm64_is_named_by_its_part() {
        let cpuinfo = |part: &str| {
            format!("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: {part}\nCPU revision\t: 1\n")
        };
        assert_eq!(cpu_model(&cpuinfo("0xd0c")).as_deref(), Some("Arm Neoverse N1"));
        assert_eq!(cpu_model(&cpuinfo("0x123")).as_deref(), Some("arm64 implementer 0x41 part 0x123"));
        assert_eq!(cpu_model("model name\t: AMD EPYC\nCPU part\t: 0xd0c\n").as_deref(), Some("AMD EPYC"));
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }

    #[test]
    fn processors_of_one_name_differ_by_family_model_stepping_and_microcode() {
        let cpuinfo = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\nstepping\t: 1\nmicrocode\t: 0xa0011d1\n";
        let identity = "family 25, model 1, stepping 1, microcode 0xa0011d1";
        assert_eq!(cpu_identity(cpuinfo).as_deref(), Some(identity));
        assert_eq!(cpu_identity("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), None);
    }

    #[test]
    fn huge_pages_of_a_kernel_without_numa_are_those_of_node_0() {
        let root = tempfile::tempdir().unwrap();
        let write = |below: &str, text: &str| {
            let file = root.path().join(below);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("sys/devices/system/cpu/online", "0-3\n");
        write("proc/meminfo", "MemTotal:        4194304 kB\n");
        assert!(nodes(root.path()).is_empty());
        write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n");
        write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "510\n");
        let whole = NumaNode {
            number: 0,
            cores: vec![0, 1, 2, 3],
            memory_bytes: Some(4 << 30),
            distances: Vec::new(),
            huge_pages: vec![HugePages { size_kib: 2048, total: 512, free: 510 }],
        };
        assert_eq!(nodes(root.path()), [whole]);
        // With NUMA the machine has the sum of its nodes.
        write("sys/devices/system/node/node1/cpulist", "2-3\n");
        assert!(nodes(root.path()).iter().map(|node| node.number).eq([1]));
    }

    #[test]
    fn size_beyond_the_range_of_a_number_is_unknown() {
        assert_eq!((size("32K"), size("18446744073709551615K")), (Some(32_768), None));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("meminfo");
        std::fs::write(&file, "MemTotal:       18446744073709551615 kB\nMemFree:        4 kB\n").unwrap();
        assert_eq!((memory(&file, "MemTotal"), memory(&file, "MemFree")), (None, Some(4096)));
    }
}
