//! The only unsafe code: sockets, namespaces, ethtool, clock.
