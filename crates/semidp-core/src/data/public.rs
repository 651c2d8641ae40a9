//! Public data: open to everyone.

use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// Data that needs no protection. It opens freely; the wrapper only says, where private data is
/// near, that somebody decided so.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Public<T>(pub T);

impl<T> Public<T> {
    /// The data.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Public<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
