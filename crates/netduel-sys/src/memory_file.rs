//! Memory with a descriptor (memfd_create(2)), the source of sends without a copy.
