//! Network namespaces as hosts and the two paths between them.
