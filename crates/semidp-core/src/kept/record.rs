//! Runs of one program that record themselves: what a session does between its check of a program and the first ticket.

use super::{Identity, Kept, KeyFile};
use crate::Result;
use std::sync::Arc;

/// A record of one run, on disk beside its key.
///
/// [`Session::authorise`](crate::Session::authorise) has a new run written down before it debits the ledger, and goes on with an
/// interrupted one under its old name and key: the same rows and program draw what they drew before, and cost nothing more.
/// Anything else is refused, as [`Prepared::resume`](crate::Prepared::resume) does.
pub trait Record: Send + Sync {
    /// The key of the run.
    fn key_file(&self) -> Arc<KeyFile>;

    /// What else must not change, as text. It must hold nothing private.
    fn text(&self) -> &str;

    /// What was written when the run began; `None` if it begins now.
    fn kept(&self) -> Option<Kept<'_>>;

    /// Writes identity, text and seal durably. Nothing was spent yet.
    fn write(&self, identity: &Identity, seal: &str) -> Result<()>;

    /// From now on the run may have been paid for.
    fn begun(&self);

    /// The ledger refused it.
    fn refused(&self);
}
