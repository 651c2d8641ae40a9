//! Private data: closed outside this crate.

use super::{BlockSource, InMemory, Joined, Streamed};
use crate::Result;
use std::fmt;
use std::sync::Arc;

/// Data that only the kernel opens.
///
/// It cannot be read:
/// ```compile_fail,E0616
/// let rows = semidp_core::Private::new(vec![1.0, 2.0]);
/// let first = rows.0[0];
/// ```
/// ```compile_fail,E0624
/// let rows = semidp_core::Private::new(vec![1.0, 2.0]);
/// let first = rows.open()[0];
/// ```
/// It cannot be copied:
/// ```compile_fail,E0599
/// let rows = semidp_core::Private::new(vec![1.0, 2.0]);
/// let copy = rows.clone();
/// ```
/// It does not print itself, and has no `Display` or `Serialize`:
/// ```
/// let rows = semidp_core::Private::new(vec![1.0, 2.0]);
/// assert_eq!(format!("{rows:?}"), "<private>");
/// ```
/// ```compile_fail,E0277
/// let rows = semidp_core::Private::new(String::from("secret"));
/// println!("{rows}");
/// ```
/// ```compile_fail,E0277
/// fn save<T: serde::Serialize>(_: &T) {}
/// save(&semidp_core::Private::new(vec![1.0]));
/// ```
/// It cannot be compared either, which would read it one question at a time:
/// ```compile_fail,E0369
/// let rows = semidp_core::Private::new(vec![1.0]);
/// let same = rows == semidp_core::Private::new(vec![1.0]);
/// ```
pub struct Private<T>(T);

impl<T> Private<T> {
    /// Closes the door. Drop or forget your own copy of the data: types cannot.
    pub fn new(data: T) -> Self {
        Self(data)
    }

    /// For the kernel alone.
    pub(crate) fn open(&self) -> &T {
        &self.0
    }

    /// For the kernel alone.
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl<S: BlockSource + 'static> Private<S> {
    /// Treats public rows as private too, for algorithms that make no difference between them.
    pub fn joined<P: BlockSource>(self, public: P) -> Result<Private<Joined<S, P>>> {
        Ok(Private(Joined::new(self.0, public)?))
    }

    /// Reads all rows into memory, for programs that look at them many times. They stay closed.
    pub fn in_memory(self) -> Result<Private<InMemory>> {
        Ok(Private(InMemory::read(&self.0)?))
    }

    /// Reads rows when they are asked for, in order and a little ahead, and keeps a few of them at a time: for files
    /// that do not fit into memory. They stay closed.
    pub fn streamed(self) -> Private<Streamed> {
        Private(Streamed::new(Arc::new(self.0)))
    }

    /// Forgets what kind of source it is, so that files and memory have one type. It stays closed.
    pub fn boxed(self) -> Private<Box<dyn BlockSource>> {
        Private(Box::new(self.0))
    }
}

impl<T> fmt::Debug for Private<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<private>")
    }
}
