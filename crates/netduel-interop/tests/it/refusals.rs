//! What testpmd cannot do is told with its own words.
