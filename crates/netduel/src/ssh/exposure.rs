//! Whether another user of a host can replace the program there, as a part of the scripts for the host. It runs nothing.

/// Sets `w` to the first folder of the path `$d`, or the program in it, that another user can replace or write to; to nothing without one. It runs
/// nothing that is there, and follows no link of the path.
///
/// - A path through the home is judged from there: a user who can change the home, or a folder above it, runs programs as the login user anyway.
/// - A folder that only its owner may search protects all that is below it. A sticky one protects its entries, but a copy would follow a link
///   that another user put into `$d`.
/// - A group that has the name of the login user has no other member, as distributions with a umask of 002 have it.
///
/// It is one line without exclamation marks, as the command of a copy needs it. Not every host has stat(1); ls(1) prints the same form everywhere.
pub const JUDGE: &str = "u=$(id -u); h=$(cd \"$HOME\" 2>/dev/null && pwd -P); w=; p=; r=$d/netduel; \
     case $d in \"$h\"/*) p=$h; r=${r#\"$h\"}; case $(ls -ldn \"$h\" 2>/dev/null) in d???------*) r=;; esac;; esac; \
     while [ -n \"$r\" ]; do r=${r#/}; p=$p/${r%%/*}; l=-ldn; \
     case $r in */*) r=/${r#*/};; *) r=; l=-ldnL; [ -f \"$p\" ] || break;; esac; \
     set -- $(ls $l \"$p\" 2>/dev/null); case $3 in 0|\"$u\") ;; *) w=$p; break;; esac; \
     case $1 in d???------*) break;; [d-]????-??-*) continue;; d????????[tT]*) [ \"$p\" = \"$d\" ] || continue;; \
     [d-]????w??-*+) ;; [d-]????w??-*) [ \"$4\" = 0 ] && continue; n=$(id -un 2>/dev/null) && \
     [ \"$n\" = \"$(id -gn 2>/dev/null)\" ] && [ \"$4\" = \"$(id -g)\" ] && continue;; esac; w=$p; break; done";

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::path::PathBuf;
    use std::process::{Command, Output, Stdio};

    use netduel_test_support::skip;

    use crate::ssh::binary::Binary;
    use crate::ssh::obstacle::Obstacle;
    use crate::ssh::scripts::{EXPOSED, Probe, copy, probe};

    /// A host with the program of [`Binary::without_bytes`] in the folder `it's` of its home.
    struct Host {
        home: tempfile::TempDir,
        /// The folder, that of the build, and the program.
        places: [PathBuf; 3],
    }

    impl Host {
        fn new() -> Self {
            let home = tempfile::tempdir().expect("a home");
            // A home that others may not search protects what is in it.
            fs::set_permissions(home.path(), Permissions::from_mode(0o755)).expect("the mode of the home");
            let folder = home.path().canonicalize().expect("a path").join("it's");
            let build = folder.join(Binary::without_bytes().folder_name());
            let program = build.join("netduel");
            fs::create_dir_all(&build).expect("the folders");
            fs::write(&program, "").expect("the program");
            Self { home, places: [folder, build, program] }
        }

        fn set_modes(&self, modes: [u32; 3]) {
            for (place, mode) in self.places.iter().zip(modes) {
                fs::set_permissions(place, Permissions::from_mode(mode)).expect("a mode");
            }
        }

        /// Gives the place with this number to another user or group.
        fn give(&self, place: usize, user: u32, group: u32) {
            chown(&self.places[place], Some(user), Some(group)).expect("another owner");
        }

        fn run(&self, script: &str) -> Output {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", script]).env("HOME", self.home.path()).stdin(Stdio::null());
            shell.output().expect("sh starts")
        }

        fn probe(&self, folder: &str) -> Result<Probe, Obstacle> {
            let output = self.run(&probe(folder, &Binary::without_bytes()));
            assert!(output.stderr.is_empty(), "{output:?}");
            Probe::parse(&String::from_utf8_lossy(&output.stdout))
        }

        fn copy(&self) -> Output {
            let [.., program] = &self.places;
            let file = program.display().to_string();
            let missing = Probe { file, checksum: None, has_gzip: false };
            self.run(&copy(&missing, &Binary::without_bytes().checksum))
        }

        /// The probe and the copy refuse the place with this number, or nothing.
        #[track_caller]
        fn assert_exposed(&self, place: Option<usize>) {
            let place = place.map(|place| self.places[place].display().to_string());
            match self.probe("~/it's") {
                Ok(probe) => assert!(place.is_none() && probe.checksum.is_some(), "{probe:?}, not {place:?}"),
                Err(Obstacle::Exposed { path }) => assert_eq!(Some(path), place),
                Err(other) => panic!("{other}"),
            }
            let [.., program] = &self.places;
            fs::write(program, "old").expect("the program");
            let copied = self.copy();
            let code = if place.is_some() { EXPOSED } else { 0 };
            assert_eq!(copied.status.code(), Some(code), "{copied:?}");
            let named = place.map(|place| place + "\n").unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&copied.stderr), named);
            assert_eq!(fs::read(program).expect("the program").is_empty(), code == 0);
        }
    }

    #[test]
    fn program_in_a_folder_that_others_can_write_to_is_neither_read_nor_replaced() {
        for (modes, exposed) in [
            ([0o755, 0o755, 0o755], None),
            ([0o777, 0o700, 0o700], Some(0)),
            ([0o755, 0o757, 0o700], Some(1)),
            ([0o755, 0o755, 0o757], Some(2)),
            ([0o700, 0o777, 0o777], None),
            // Others can add links to the second, which is that of the build.
            ([0o1777, 0o755, 0o755], None),
            ([0o1777, 0o1777, 0o700], Some(1)),
        ] {
            let host = Host::new();
            host.set_modes(modes);
            host.assert_exposed(exposed);
        }
    }

    #[test]
    fn program_that_another_user_or_group_owns_is_neither_read_nor_replaced() {
        if !rustix::process::geteuid().is_root() {
            return skip("only root gives files to other users");
        }
        let other = 65_534;
        for (modes, (place, user, group), exposed) in [
            ([0o755, 0o700, 0o700], (0, other, 0), Some(0)),
            ([0o700, 0o700, 0o700], (0, other, 0), Some(0)),
            ([0o1777, 0o700, 0o700], (1, other, 0), Some(1)),
            ([0o755, 0o755, 0o755], (2, other, 0), Some(2)),
            ([0o775, 0o700, 0o700], (0, 0, other), Some(0)),
            ([0o1775, 0o700, 0o700], (0, 0, other), None),
            ([0o775, 0o775, 0o775], (0, 0, 0), None),
        ] {
            let host = Host::new();
            host.give(place, user, group);
            host.set_modes(modes);
            host.assert_exposed(exposed);
        }
    }

    #[test]
    fn copy_removes_nothing_through_links_that_others_can_add() {
        let host = Host::new();
        host.set_modes([0o1777, 0o700, 0o700]);
        let [folder, ..] = &host.places;
        let other = host.home.path().join("other");
        fs::create_dir(&other).expect("a folder");
        fs::write(other.join("netduel"), "").expect("a file");
        for digit in ["a", "b", "c"] {
            symlink(&other, folder.join(format!("0.0.1-{}", digit.repeat(16)))).expect("a link");
        }
        assert!(host.copy().status.success());
        assert!(fs::exists(other.join("netduel")).expect("a folder"));
    }

    #[test]
    fn folder_is_judged_and_named_by_its_path_without_links() {
        let host = Host::new();
        let [folder, _, program] = &host.places;
        symlink(folder, host.home.path().join("link")).expect("a link");
        assert_eq!(host.probe("~/link").expect("a probe").file, program.display().to_string());
        host.set_modes([0o777, 0o700, 0o700]);
        let refused = host.probe("~/link").expect_err("an exposed folder").to_string();
        assert!(refused.contains(&format!("owner or mode of {};", folder.display())), "{refused}");
        // A home that only its user may search.
        fs::set_permissions(host.home.path(), Permissions::from_mode(0o700)).expect("the mode of the home");
        host.probe("~/link").expect("a probe");
    }
}
