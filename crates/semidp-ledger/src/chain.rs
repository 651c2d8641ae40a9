//! The chain of digests: each entry's covers itself and, through the one before, all entries before it.

use rusqlite::types::Value;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// Before the first entry.
pub fn start(format: &str) -> Digest {
    Sha256::digest(format).into()
}

/// Of an entry of a table, after the entry with digest `previous`.
pub fn entry(previous: &Digest, table: &str, values: &[Value]) -> Digest {
    let mut state = Sha256::new_with_prefix(previous);
    put(&mut state, b'N', table.as_bytes());
    for value in values {
        match value {
            Value::Null => put(&mut state, b'0', &[]),
            Value::Integer(number) => put(&mut state, b'I', &number.to_le_bytes()),
            Value::Real(number) => put(&mut state, b'R', &number.to_bits().to_le_bytes()),
            Value::Text(text) => put(&mut state, b'T', text.as_bytes()),
            Value::Blob(bytes) => put(&mut state, b'B', bytes),
        }
    }
    state.finalize().into()
}

/// Of the whole ledger. It differs from every entry's, so that an entry cut off at the end cannot be hidden by
/// copying the digest before it.
pub fn head(last: &Digest, entries: u64) -> Digest {
    let mut state = Sha256::new_with_prefix(last);
    put(&mut state, b'H', &entries.to_le_bytes());
    state.finalize().into()
}

/// Kind and length come first: two lists of values never look alike.
fn put(state: &mut Sha256, kind: u8, bytes: &[u8]) {
    state.update([kind]);
    state.update((bytes.len() as u64).to_le_bytes());
    state.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_differs_has_another_digest() {
        let text = |text: &str| Value::Text(text.into());
        let start = start("a format");
        let lists = [
            vec![text("ab"), text("c")],
            vec![text("a"), text("bc")],
            vec![text("abc")],
            vec![text("abc"), Value::Null],
            vec![Value::Null, text("abc")],
            vec![Value::Integer(1)],
            vec![Value::Real(f64::from_bits(1))],
            vec![Value::Blob(1i64.to_le_bytes().into())],
            vec![],
        ];
        let mut digests: Vec<Digest> = lists.iter().map(|values| entry(&start, "debits", values)).collect();
        digests.push(entry(&start, "budgets", &lists[0]));
        digests.push(entry(&digests[0], "debits", &lists[0]));
        digests.extend([head(&start, 0), head(&start, 1), start]);
        for (position, digest) in digests.iter().enumerate() {
            assert!(!digests[..position].contains(digest), "{position}");
        }
    }
}
