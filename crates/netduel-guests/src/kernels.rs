//! The kernels that guests can have, as a table. Fetches nothing.

/// A kernel, by the suite of Debian that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// That of bookworm-backports: 6.12.
    Backports,
    /// That of bookworm: 6.1.
    Bookworm,
    /// That of bullseye: 5.10.
    Bullseye,
}

impl Kernel {
    /// Those that `prepare` fetches.
    pub const PREPARED: [Self; 2] = [Self::Backports, Self::Bookworm];
    /// Those that are fetched when a scene with one is booted for the first time, and before tests of which none may be skipped.
    pub const ON_DEMAND: [Self; 1] = [Self::Bullseye];

    /// The suite, and the name of the kernel's folder.
    pub fn suite(self) -> &'static str {
        match self {
            Self::Backports => "bookworm-backports",
            Self::Bookworm => "bookworm",
            Self::Bullseye => "bullseye",
        }
    }
}
