//! What leaves the kernel.

use semidp_accounting::Certificate;
use std::ops::Deref;

/// The noised result of one step of an authorised program: safe to look at and to process further.
///
/// Only the kernel makes one, so code that takes `Noised` values cannot be handed bare ones:
/// ```compile_fail,E0423
/// let fake = semidp_core::Noised(vec![1.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Noised<T>(T);

impl<T> Noised<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// Post-processing: a function of released values and public data is released.
    pub fn map<U>(self, function: impl FnOnce(T) -> U) -> Noised<U> {
        Noised(function(self.0))
    }

    /// Two released values together.
    pub fn zip<U>(self, other: Noised<U>) -> Noised<(T, U)> {
        Noised((self.0, other.0))
    }
}

impl<T> Deref for Noised<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A value and the certificate of the whole program that produced it.
#[derive(Debug, Clone, PartialEq)]
pub struct Release<T> {
    /// The value.
    pub value: T,
    /// What is promised about it.
    pub certificate: Certificate,
}
