//! Folders of the user that variables of the environment name. The caller reads the environment; no folder is looked at here.
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A folder of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserFolder {
    /// The home.
    Home,
    /// Data files.
    Data,
    /// Data that is neither a setting nor worth a copy.
    State,
    /// Sockets and files that go with the login.
    Runtime,
}

impl UserFolder {
    /// The variable that names it.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Home => "HOME",
            Self::Data => "XDG_DATA_HOME",
            Self::State => "XDG_STATE_HOME",
            Self::Runtime => "XDG_RUNTIME_DIR",
        }
    }

    /// The folder, from the value of its variable. A relative path counts as none: it is another folder wherever a command is started, and
    /// the [XDG Base Directory Specification](https://specifications.freedesktop.org/basedir-spec/0.8/#basics) has programs ignore it.
    pub fn path(self, env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        env(self.variable()).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Why there is none.
    fn fault(self, env: impl Fn(&str) -> Option<OsString>) -> String {
        let variable = self.variable();
        match env(variable).filter(|value| !value.is_empty()) {
            Some(value) => format!("{variable} is the relative path `{}`", Path::new(&value).display()),
            None => format!("{variable} is not set"),
        }
    }

    /// Why none of these folders is known, for an error.
    pub fn faults(folders: &[Self], env: impl Fn(&str) -> Option<OsString>) -> String {
        let faults: Vec<String> = folders.iter().map(|folder| folder.fault(&env)).collect();
        faults.join(" and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(value: &str) -> impl Fn(&str) -> Option<OsString> {
        move |name| (name == "HOME").then(|| OsString::from(value))
    }

    #[test]
    fn folder_is_an_absolute_path() {
        assert_eq!(UserFolder::Home.path(env("/users/x")), Some(PathBuf::from("/users/x")));
        for wrong in ["", "x", "./x", "~"] {
            assert_eq!(UserFolder::Home.path(env(wrong)), None, "{wrong}");
        }
        assert_eq!(UserFolder::State.path(env("/users/x")), None);
    }

    #[test]
    fn relative_path_is_named_as_the_reason() {
        let both = [UserFolder::Data, UserFolder::Home];
        assert_eq!(
            UserFolder::faults(&both, env("x")),
            "XDG_DATA_HOME is not set and HOME is the relative path `x`"
        );
        assert_eq!(UserFolder::faults(&both[1..], env("")), "HOME is not set");
    }
}
