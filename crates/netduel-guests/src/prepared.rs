//! The folder of everything that guests need, which `cargo xtask guests prepare` fills. It starts no guest.
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, file};
use crate::kernels::Kernel;
use crate::scene::SCENES;
use crate::{dpdk, initramfs, packages};

/// Names the prepared folder for tests; `cargo xtask test` sets it.
pub const FOLDER_VARIABLE: &str = "NETDUEL_GUESTS";
/// Tells tests why there is no prepared folder; `cargo xtask test` sets it in place of [`FOLDER_VARIABLE`].
pub const OBSTACLE_VARIABLE: &str = "NETDUEL_GUESTS_OBSTACLE";

/// The folder and the places of things in it.
#[derive(Debug, Clone)]
pub struct Prepared {
    folder: PathBuf,
}

impl Prepared {
    /// Fetches what is missing and makes the file system of guests, with this netduel, which needs no library, in it.
    pub fn prepare(folder: &Path, netduel: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(file("make the folder", folder))?;
        let folder = folder.canonicalize().map_err(file("resolve", folder))?;
        let lock = File::create(folder.join("lock")).map_err(file("open the lock of", &folder))?;
        lock.lock().map_err(file("lock", &folder))?;
        let prepared = Self { folder };
        packages::fetch(&prepared)?;
        // Under another name first: a run may have the old one open.
        let (partial, program) = (prepared.folder().join("netduel.partial"), prepared.netduel());
        fs::copy(netduel, &partial).map_err(file("copy", netduel))?;
        fs::rename(&partial, &program).map_err(file("rename", &partial))?;
        for kernel in Kernel::PREPARED {
            prepared.add_kernel(kernel)?;
        }
        Ok(prepared)
    }

    /// Fetches what is missing of a kernel, and makes the file system of its guests.
    pub fn add_kernel(&self, kernel: Kernel) -> Result<()> {
        packages::fetch_kernel(self, kernel)?;
        initramfs::make(self, kernel)?;
        let has_dpdk = SCENES.iter().any(|scene| scene.has_dpdk && scene.kernel == kernel);
        if !has_dpdk {
            return Ok(());
        }
        dpdk::make(&self.dpdk_initramfs(kernel), &self.initramfs(kernel), &self.library_path())
    }

    /// Whether guests with this kernel can be booted.
    pub fn has_kernel(&self, kernel: Kernel) -> bool {
        self.vmlinux(kernel).exists() && self.initramfs(kernel).exists()
    }

    /// Whether guests with this kernel can have DPDK's testpmd.
    pub fn has_dpdk(&self, kernel: Kernel) -> bool {
        self.dpdk_initramfs(kernel).exists()
    }

    /// The folder, when it is complete.
    pub fn open(folder: &Path) -> Result<Self> {
        let prepared = Self { folder: folder.canonicalize().map_err(file("resolve", folder))? };
        let of_kernels = Kernel::PREPARED
            .into_iter()
            .flat_map(|kernel| [prepared.vmlinux(kernel), prepared.initramfs(kernel)]);
        for needed in [prepared.qemu(), prepared.netduel()].into_iter().chain(of_kernels) {
            if !needed.exists() {
                let what = format!("{}, which guests need", needed.display());
                return Err(Error::Missing { what, remedy: "run `cargo xtask guests prepare`".to_owned() });
            }
        }
        Ok(prepared)
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The netduel of the guests, for runs that begin outside of them.
    pub fn netduel(&self) -> PathBuf {
        self.folder.join("netduel")
    }

    /// Packages but for kernels; does not exist before all of them are unpacked.
    pub(crate) fn packages(&self) -> PathBuf {
        self.folder.join("packages")
    }

    /// A kernel with its package; does not exist before it is complete.
    pub(crate) fn kernel_folder(&self, kernel: Kernel) -> PathBuf {
        self.folder.join("kernels").join(kernel.suite())
    }

    pub(crate) fn vmlinux(&self, kernel: Kernel) -> PathBuf {
        self.kernel_folder(kernel).join(packages::VMLINUX)
    }

    pub(crate) fn initramfs(&self, kernel: Kernel) -> PathBuf {
        self.folder.join(format!("initramfs-{}.cpio", kernel.suite()))
    }

    /// The same with DPDK's testpmd; only where this machine has that.
    pub(crate) fn dpdk_initramfs(&self, kernel: Kernel) -> PathBuf {
        self.folder.join(format!("initramfs-{}-dpdk.cpio", kernel.suite()))
    }

    pub(crate) fn qemu(&self) -> PathBuf {
        self.unpacked("usr/bin/qemu-system-x86_64")
    }

    /// A file of the unpacked programs.
    pub(crate) fn unpacked(&self, path: &str) -> PathBuf {
        self.packages().join(packages::PROGRAMS).join(path)
    }

    pub(crate) fn library_path(&self) -> String {
        packages::library_path(&self.packages())
    }
}
