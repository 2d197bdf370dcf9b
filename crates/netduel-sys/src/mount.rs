//! Mounts inside a private mount namespace (mount(2)).
