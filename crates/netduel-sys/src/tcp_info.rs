//! What the kernel knows of a connection (TCP_INFO, tcp(7)).
