//! How to run an experiment, and the finished pieces of it, which an interrupted run goes on from.

use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;

/// Where finished pieces are kept.
pub trait Pieces: Send + Sync {
    /// The piece of this name, if it was finished before.
    fn find(&self, name: &str) -> Result<Option<Value>>;

    /// Keeps a finished piece.
    fn keep(&self, name: &str, piece: &Value) -> Result<()>;
}

/// Keeps nothing.
pub struct NoPieces;

impl Pieces for NoPieces {
    fn find(&self, _: &str) -> Result<Option<Value>> {
        Ok(None)
    }

    fn keep(&self, _: &str, _: &Value) -> Result<()> {
        Ok(())
    }
}

/// How to run.
pub struct Settings {
    /// Fewer trials: a minute or so at most.
    pub quick: bool,
    /// The seed of data and noise.
    pub seed: u64,
    /// Threads; it makes no difference to any result.
    pub threads: usize,
    /// The folder of data files, for experiments on real data.
    pub data: Option<PathBuf>,
    /// Where finished pieces are kept.
    pub pieces: Box<dyn Pieces>,
}

impl Settings {
    /// Without files, and without keeping anything.
    pub fn new(quick: bool, seed: u64, threads: usize) -> Self {
        Self { quick, seed, threads, data: None, pieces: Box::new(NoPieces) }
    }

    /// A piece of an experiment: what was kept of an earlier run with the same sizes and seed, or what `work` gives, which
    /// is then kept. The name must say everything else that the piece depends on.
    pub fn piece<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let sizes = if self.quick { "quick" } else { "full" };
        let name = format!("{name}-{sizes}-seed{}", self.seed);
        let failed =
            |error: serde_json::Error| Error::Piece(format!("the kept piece {name} cannot be used: {error}"));
        if let Some(kept) = self.pieces.find(&name)? {
            return serde_json::from_value(kept).map_err(failed);
        }
        let value = serde_json::to_value(work()?).map_err(failed)?;
        self.pieces.keep(&name, &value)?;
        // The same way for new ones, so that a continued run gives the same figures.
        serde_json::from_value(value).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct InMemory(Arc<Mutex<BTreeMap<String, Value>>>);

    impl Pieces for InMemory {
        fn find(&self, name: &str) -> Result<Option<Value>> {
            Ok(self.0.lock().unwrap().get(name).cloned())
        }

        fn keep(&self, name: &str, piece: &Value) -> Result<()> {
            self.0.lock().unwrap().insert(name.into(), piece.clone());
            Ok(())
        }
    }

    #[test]
    fn finished_pieces_are_not_done_again() {
        let shelf = InMemory::default();
        let with =
            |quick, seed| Settings { pieces: Box::new(shelf.clone()), ..Settings::new(quick, seed, 1) };
        let first: f64 = with(true, 1).piece("a", || Ok(0.1 + 0.2)).unwrap();
        assert_eq!(first, 0.1 + 0.2);
        let again: f64 = with(true, 1).piece("a", || Err(Error::Data("done twice".into()))).unwrap();
        assert_eq!(again, first);
        for (settings, name) in [(with(false, 1), "a"), (with(true, 2), "a"), (with(true, 1), "b")] {
            assert!(settings.piece::<f64>(name, || Err(Error::Data("new".into()))).is_err());
        }
        // A failure leaves nothing behind, and a piece of another kind is refused by name.
        assert_eq!(with(true, 1).piece("b", || Ok(2.0)).unwrap(), 2.0);
        let refused = with(true, 1).piece::<String>("a", || Ok(String::new())).unwrap_err();
        assert!(refused.to_string().contains("a-quick-seed1"), "{refused}");
    }
}
