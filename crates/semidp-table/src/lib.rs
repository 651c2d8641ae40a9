//! Tables in files as sources of units.
