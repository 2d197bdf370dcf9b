//! The kernel's names of errors (errno(3)), for messages and records.

macro_rules! names {
    ($($name:ident),+ $(,)?) => {
        /// The name of an error number that socket and file calls return, for example `ENOBUFS`; absent for others.
        pub fn of(number: i32) -> Option<&'static str> {
            match number {
                $(libc::$name => Some(stringify!($name)),)+
                _ => None,
            }
        }
    };
}

names! {
    EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EBADF, EBUSY, ECONNABORTED, ECONNREFUSED, ECONNRESET,
    EDESTADDRREQ, EFAULT, EHOSTDOWN, EHOSTUNREACH, EINTR, EINVAL, EIO, EMFILE, EMSGSIZE, ENETDOWN, ENETRESET,
    ENETUNREACH, ENFILE, ENOBUFS, ENODEV, ENOENT, ENOMEM, ENONET, ENOPROTOOPT, ENOSPC, ENOTCONN, ENOTSOCK, ENXIO,
    EOPNOTSUPP, EPERM, EPIPE, EPROTO, ERANGE, ESHUTDOWN, ETIMEDOUT,
}

#[cfg(test)]
mod tests {
    #[test]
    fn known_errors_have_their_names_and_others_none() {
        assert_eq!(super::of(105), Some("ENOBUFS"));
        assert_eq!(super::of(11), Some("EAGAIN"));
        assert_eq!(super::of(9999), None);
    }
}
