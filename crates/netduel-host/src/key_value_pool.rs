//! The key-value exchange of a Hyper-V host with its guest: records that the guest's daemon keeps in a file
//! (`tools/hv/hv_kvp_daemon.c`, pool 3: `KVP_POOL_AUTO_EXTERNAL`). Absent when the daemon does not run.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::file::shown;

/// `HV_KVP_EXCHANGE_MAX_KEY_SIZE` and `HV_KVP_EXCHANGE_MAX_VALUE_SIZE` (include/uapi/linux/hyperv.h).
const KEY_LEN: usize = 512;
const VALUE_LEN: usize = 2048;
/// Maximum number of records; a host writes about twenty.
const RECORDS_MAX: usize = 1024;

/// The pool's values by their keys.
pub(crate) fn read(root: &Path) -> BTreeMap<String, String> {
    let mut bytes = Vec::new();
    let room = (RECORDS_MAX * (KEY_LEN + VALUE_LEN)) as u64;
    if let Ok(file) = File::open(root.join("var/lib/hyperv/.kvp_pool_3")) {
        // An unreadable rest of the file is ignored.
        let _ = file.take(room).read_to_end(&mut bytes);
    }
    values(&bytes)
}

fn values(bytes: &[u8]) -> BTreeMap<String, String> {
    let records = bytes.chunks_exact(KEY_LEN + VALUE_LEN);
    records.map(|record| (text(&record[..KEY_LEN]), text(&record[KEY_LEN..]))).collect()
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    shown(&String::from_utf8_lossy(&bytes[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_record_is_ignored() {
        let mut bytes = Vec::new();
        for (key, value) in [("HostName", "host.example"), ("PhysicalHostName", "AMS21PRD001")] {
            bytes.extend(key.bytes().chain(std::iter::repeat(0)).take(KEY_LEN));
            bytes.extend(value.bytes().chain(std::iter::repeat(0)).take(VALUE_LEN));
        }
        assert_eq!(values(&bytes)["PhysicalHostName"], "AMS21PRD001");
        assert_eq!(values(&bytes[..bytes.len() - 1]).len(), 1);
        assert!(values(b"").is_empty());
    }
}
