//! Finds an installed browser of the Chromium family.
use std::env;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::exit::{Failure, Kind};

/// Names of the programs, in the order in which they are looked for.
const NAMES: [&str; 8] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chrome-headless-shell",
    "microsoft-edge",
    "microsoft-edge-stable",
];
/// Where distributions install it outside of the search path.
const PLACES: [&str; 6] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/snap/bin/chromium",
];

/// A browser that can print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Browser(PathBuf);

impl Browser {
    /// The browser that the user names, else the first that is installed.
    ///
    /// # Errors
    /// When none is installed, or the named one cannot be run.
    pub fn find(named: Option<&Path>) -> Result<Self, Failure> {
        Self::find_in(named, &folders(env::var_os("PATH").as_deref()), &PLACES.map(PathBuf::from))
    }

    fn find_in(named: Option<&Path>, folders: &[PathBuf], places: &[PathBuf]) -> Result<Self, Failure> {
        if let Some(path) = named {
            return in_folders(path, folders).map(Self).ok_or_else(|| {
                Failure::message(
                    Kind::Usage,
                    format!("--browser {}: there is no such program", path.display()),
                )
                .remedy("name an installed Chromium, Chrome or Edge, or leave the option out")
            });
        }
        Self::installed(folders, places).ok_or_else(|| {
            Failure::message(
                Kind::Environment,
                "failed to print a PDF: no Chromium, Chrome or Edge was found in PATH and the usual places",
            )
            .remedy(
                "install one (Debian: `apt install chromium`; Fedora: `dnf install chromium`), name it with --browser, or print the page of \
                 `--format html` in another browser",
            )
        })
    }

    fn installed(folders: &[PathBuf], places: &[PathBuf]) -> Option<Self> {
        let by_name = NAMES.iter().find_map(|name| in_folders(Path::new(name), folders));
        by_name.or_else(|| places.iter().find(|place| is_program(place)).cloned()).map(Self)
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// The folders of a search path.
fn folders(path: Option<&std::ffi::OsStr>) -> Vec<PathBuf> {
    path.map(|path| env::split_paths(path).filter(|folder| folder.is_absolute()).collect())
        .unwrap_or_default()
}

/// A program by its name in the first folder that has it, or by its path.
fn in_folders(name: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return Some(name.to_owned()).filter(|path| is_program(path));
    }
    folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// The major version in `Chromium 131.0.6778.85 built on Debian`.
pub(super) fn major(version: &str) -> Option<u32> {
    let number = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    number.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn browser_is_found_by_name_in_the_search_path_and_then_in_the_usual_places() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let program = |name: &str, mode: u32| {
            fs::write(at(name), "").expect("written");
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).expect("a mode");
        };
        let found = |places: &[PathBuf]| Browser::installed(&[folder.path().to_owned()], places);
        assert_eq!(found(&[at("elsewhere")]), None);
        program("elsewhere", 0o755);
        assert_eq!(found(&[at("elsewhere")]), Some(Browser(at("elsewhere"))));
        program("chromium", 0o644);
        assert_eq!(found(&[]), None, "it cannot be executed");
        program("google-chrome", 0o755);
        assert_eq!(found(&[at("elsewhere")]), Some(Browser(at("google-chrome"))));
        let error = Browser::find(Some(&at("none"))).expect_err("there is none");
        let text = error.to_string();
        assert!(error.kind == Kind::Usage && text.contains("--browser") && text.contains("leave"), "{error}");
        assert_eq!(Browser::find(Some(&at("elsewhere"))).expect("named"), Browser(at("elsewhere")));
    }

    #[test]
    fn error_without_a_browser_names_what_to_install() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().to_owned();
        let places = [own.join("chromium")];
        let error = Browser::find_in(None, std::slice::from_ref(&own), &places).expect_err("there is none");
        assert!(error.kind == Kind::Environment, "{error}");
        for words in ["apt install chromium", "dnf install chromium", "--browser", "--format html"] {
            assert!(error.to_string().contains(words), "no `{words}` in {error}");
        }
    }

    #[test]
    fn version_is_read_from_the_words_of_each_browser() {
        for (words, expected) in [
            ("Chromium 131.0.6778.85 built on Debian GNU/Linux 12", Some(131)),
            ("Google Chrome 140.0.7339.80 ", Some(140)),
            ("Microsoft Edge 99.1", Some(99)),
            ("a browser", None),
        ] {
            assert_eq!(major(words), expected);
        }
    }
}
