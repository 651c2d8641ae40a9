//! What leaves the kernel.

use semidp_accounting::Certificate;
use std::ops::Deref;

/// The noised result of one step of an authorised program: safe to look at and to process further.
///
/// Only the kernel makes one, so code that takes `Noised` values cannot be handed bare ones:
/// ```compile_fail,E0451
/// let fake = semidp_core::Noised { value: vec![1.0], run: None };
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Noised<T> {
    value: T,
    /// The run it comes from; `None` for values of several runs together.
    run: Option<u64>,
}

impl<T> Noised<T> {
    pub(crate) fn new(value: T, run: u64) -> Self {
        Self { value, run: Some(run) }
    }

    pub(crate) fn run(&self) -> Option<u64> {
        self.run
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Post-processing: a function of released values and public data is released.
    pub fn map<U>(self, function: impl FnOnce(T) -> U) -> Noised<U> {
        Noised { value: function(self.value), run: self.run }
    }

    /// Two released values together.
    pub fn zip<U>(self, other: Noised<U>) -> Noised<(T, U)> {
        let run = self.run.filter(|_| self.run == other.run);
        Noised { value: (self.value, other.value), run }
    }
}

impl<T> Deref for Noised<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
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
