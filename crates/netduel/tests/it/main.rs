//! Integration tests of the program.
mod treatment;
