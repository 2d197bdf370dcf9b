//! Agent protocol without IO, launchers, coordinator and agent loops.
