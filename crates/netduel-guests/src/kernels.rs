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

/// The kernels that `prepare` fetches. The others are fetched when a scene with one is booted for the first time.
pub const PREPARED: [Kernel; 2] = [Kernel::Backports, Kernel::Bookworm];

impl Kernel {
    /// The suite, and the name of the kernel's folder.
    pub fn suite(self) -> &'static str {
        match self {
            Self::Backports => "bookworm-backports",
            Self::Bookworm => "bookworm",
            Self::Bullseye => "bullseye",
        }
    }
}
