//! Tests of kernel concepts that need two network namespaces with a veth between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
mod frames;
