//! Nothing: the benches and tests beside it are what this package is for.
