//! The machine beneath a host: processors, caches, memory nodes, huge pages, and how its kernel treats them.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processors, from `/proc/cpuinfo`, `/sys/devices/system/cpu` and the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Processor {
    /// What tells processors of one model name apart, of the first one: family, model, stepping and microcode of `/proc/cpuinfo` (x86).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Sockets, by the distinct `physical_package_id` of the cores online.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<u32>,
    /// Threads of the host that share a physical core, by the number of the first: `thread_siblings_list`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub physical_cores: Vec<Vec<u16>>,
    /// Highest clock rate, kHz (`cpuinfo_max_freq`); absent in most guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
    /// Governor of the clock rate, for example `performance`; absent where the host leaves it to its hypervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Caches of the first core online, smallest level first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<Cache>,
    /// Cores that this process may run on (`sched_getaffinity(2)`), when they are not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<u16>>,
    /// Cores that are kept from the scheduler (`isolated`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolated: Vec<u16>,
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// Level, 1 to 4.
    pub level: u8,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Bytes.
    pub bytes: u64,
    /// Cores that share it.
    pub cores: Vec<u16>,
}

/// A NUMA node: memory and the cores next to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NumaNode {
    /// As the kernel numbers it.
    pub number: u32,
    /// Its cores.
    pub cores: Vec<u16>,
    /// Its memory, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Distance to each node in the order of their numbers; 10 is the node itself (ACPI SLIT).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<u32>,
    /// Its huge pages, one entry for each size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub huge_pages: Vec<HugePages>,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HugePages {
    /// Size of a page, KiB.
    pub size_kib: u64,
    /// Pages set aside.
    pub total: u64,
    /// Pages that are free.
    pub free: u64,
}

/// Settings of the kernel beside sysctls, from its command line and `/sys`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct KernelSettings {
    /// Boot parameters that affect results, in their order: cores, huge pages, power, mitigations, DMA (`/proc/cmdline`). Others are not
    /// recorded: they can hold secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boot_options: Vec<String>,
    /// Huge pages that programs get without asking: `always`, `madvise` or `never` (`/sys/kernel/mm/transparent_hugepage/enabled`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transparent_huge_pages: Option<String>,
    /// Threads of a core: `on`, `off`, `forceoff`, `notsupported` or `notimplemented` (`/sys/devices/system/cpu/smt/control`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<String>,
    /// Vulnerabilities of the CPU that affect it, each with what the kernel does against it (`/sys/devices/system/cpu/vulnerabilities`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vulnerabilities: BTreeMap<String, String>,
}
