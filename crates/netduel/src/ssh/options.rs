//! The options of every ssh process of netduel, and the words that name its host. The rest is the user's configuration. It starts nothing.
use std::iter::once;
use std::path::Path;

use netduel_model::plan::SshHost;

use super::host_keys;

/// Timeout of a connection by ssh itself, seconds.
pub const CONNECT_TIMEOUT: &str = "ConnectTimeout=20";

/// Those of each connection, also of one to a jump host.
const SETTINGS: [&str; 6] = [
    "BatchMode=yes",
    // A host gets no way back to this machine, and no use of its keys.
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
];

/// The options of every ssh process to a host.
pub fn of_host(ssh: &SshHost) -> Vec<String> {
    let settings = SETTINGS.map(str::to_owned).into_iter().chain(key_settings(ssh));
    once("-T".to_owned()).chain(settings.flat_map(option)).collect()
}

/// The options before those of a host to which the run has connected earlier: the key of a VM of a bed is in its file, and another one at this
/// address is refused. ssh takes the first value of a setting.
pub fn of_known_host(ssh: &SshHost) -> Vec<String> {
    let file = host_keys::file_of(ssh);
    file.into_iter().flat_map(|_| option("StrictHostKeyChecking=yes".to_owned())).collect()
}

/// A setting of ssh_config(5) as an option.
pub fn option(setting: String) -> [String; 2] {
    ["-o".to_owned(), setting]
}

/// A VM of a bed is new, and its address may have been that of another one: its key is kept beside the files of its bed, and is accepted at the
/// first connection.
fn key_settings(ssh: &SshHost) -> Vec<String> {
    let Some(file) = host_keys::file_of(ssh) else { return Vec::new() };
    vec![
        format!("UserKnownHostsFile=\"{}\"", escaped(&file)),
        "GlobalKnownHostsFile=/dev/null".to_owned(),
        "StrictHostKeyChecking=accept-new".to_owned(),
    ]
}

/// The host without a user before it: `vm1` of `me@vm1`.
pub fn bare_host(ssh: &SshHost) -> &str {
    ssh.host.rsplit_once('@').map_or(ssh.host.as_str(), |(_, host)| host)
}

/// The last options, and the host.
pub fn destination(ssh: &SshHost) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(user) = &ssh.user {
        words.extend(["-l".to_owned(), user.clone()]);
    }
    if let Some(port) = ssh.port {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    words.extend(["--".to_owned(), ssh.host.clone()]);
    words
}

/// ssh replaces sequences with a percent sign in such a path.
pub fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%%")
}
