//! The services that the C library asks for the address of a name. It looks up nothing.

/// Limits a static program to `/etc/hosts` and DNS, which are built in. glibc would load every other service of nsswitch.conf(5) as a
/// shared library of the host, with the C library of the host beside its own: where their versions differ, the program ends by a
/// signal. A program with shared libraries follows nsswitch.conf. Call it before the first lookup.
pub fn load_no_service() {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    drop(hosts_from(c"files dns"));
}

/// Sets the services for names of hosts, in the form of nsswitch.conf(5), for this process.
#[cfg(all(target_env = "gnu", any(test, target_feature = "crt-static")))]
fn hosts_from(services: &std::ffi::CStr) -> std::io::Result<()> {
    unsafe extern "C" {
        /// `nss.h` of glibc.
        fn __nss_configure_lookup(
            database: *const libc::c_char,
            services: *const libc::c_char,
        ) -> libc::c_int;
    }
    // SAFETY: both are strings that end with a zero, by their type; glibc keeps a copy of its own.
    match unsafe { __nss_configure_lookup(c"hosts".as_ptr(), services.as_ptr()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use std::net::ToSocketAddrs as _;

    use super::*;

    #[test]
    fn names_come_from_the_services_that_were_set() {
        let finds = || ("localhost", 1).to_socket_addrs().is_ok_and(|mut found| found.next().is_some());
        hosts_from(c"netduel_has_no_such_service").unwrap();
        assert!(!finds());
        hosts_from(c"files dns").unwrap();
        assert!(finds());
    }
}
