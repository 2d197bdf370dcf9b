//! Namespaces: unshare(2), setns(2), user namespace maps.
