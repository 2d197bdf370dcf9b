//! Hosts that are named network namespaces (`ip netns`). It makes no namespace.
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::thread::Builder;

use netduel_model::shell;
use netduel_sys::namespace::{Kind, enter};

/// The folder of named namespaces, of iproute2.
const FOLDER: &str = "/var/run/netns";

/// The start of an argv that runs its rest in the namespace.
pub fn prefix(name: &str) -> Vec<String> {
    ["ip", "netns", "exec", name].map(str::to_owned).to_vec()
}

/// Whether this process may enter the namespace; otherwise the reason with its remedy.
pub fn check(name: &str) -> Result<(), String> {
    let entered = File::open(format!("{FOLDER}/{name}")).and_then(|namespace| {
        // A thread cannot leave the namespace again without a descriptor of the old one.
        let entering = Builder::new().spawn(move || enter(Kind::Net, namespace.as_fd()))?;
        entering.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    });
    entered.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let word = shell::word(name);
            format!("there is no network namespace {name}; make it with `ip netns add {word}`, or name another one")
        }
        io::ErrorKind::PermissionDenied => format!(
            "no permission to enter the network namespace {name} ({error}), which needs CAP_SYS_ADMIN; run netduel as root"
        ),
        _ => format!("it cannot enter the network namespace {name}: {error}; create it again with `ip netns`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_missing_namespace_is_one_word_of_a_command() {
        let missing = check("x; reboot").unwrap_err();
        assert!(missing.contains("`ip netns add 'x; reboot'`"), "{missing}");
    }
}
