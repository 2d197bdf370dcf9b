//! Descriptors over a Unix socket (SCM_RIGHTS, unix(7)), and who is at its other end (SO_PEERCRED).
