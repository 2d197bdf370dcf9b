//! When runs were begun, as far as their files show it: the maker of a run file chooses the start in its header, and a clock may have been set
//! back since. Nothing here knows names.
use std::fs::File;
use std::time::{Duration, SystemTime};

/// A start may be later than now by this: machines that share a store have clocks of their own.
const AHEAD_MAX: Duration = Duration::from_secs(60);

/// Whether a start, milliseconds since the Unix epoch, lies in the future.
pub(crate) fn is_in_future(started_unix_ms: u64) -> bool {
    let started = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(started_unix_ms));
    started.is_none_or(|started| started.elapsed().is_err_and(|ahead| ahead.duration() > AHEAD_MAX))
}

/// When a run was begun at the latest, milliseconds since the Unix epoch: no run is begun after its file was last written. So an imported run
/// with a start in the future does not become the newest when that time has come.
pub(crate) fn begun_unix_ms(file: &File, started_unix_ms: u64) -> u64 {
    let written = file.metadata().and_then(|metadata| metadata.modified()).ok();
    written.and_then(unix_ms).map_or(started_unix_ms, |written_ms| written_ms.min(started_unix_ms))
}

/// A time in milliseconds since the Unix epoch; absent for one before it.
pub(crate) fn unix_ms(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}
