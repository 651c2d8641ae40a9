//! What the targets that read files have in common.

use std::path::{Path, PathBuf};

/// A folder of this process, in memory where there is such a file system.
pub fn folder() -> PathBuf {
    let base = ["/dev/shm"].into_iter().map(PathBuf::from).find(|path| path.is_dir());
    let path = base.unwrap_or_else(std::env::temp_dir).join(format!("semidp-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a folder for files");
    path
}

/// A file with these bytes.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file can be written");
    path
}

/// Changes a valid file as the input says, so that checks deep inside are reached: each three bytes set one byte, by its place. An odd
/// rest cuts the file off.
pub fn patched(valid: &[u8], patches: &[u8]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    let (sets, rest) = patches.as_chunks::<3>();
    for &[low, high, value] in sets {
        if !bytes.is_empty() {
            let place = usize::from(u16::from_le_bytes([low, high])) % bytes.len();
            bytes[place] = value;
        }
    }
    if let [cut, ..] = rest {
        bytes.truncate(bytes.len().saturating_sub(1 + usize::from(*cut) * bytes.len() / 256));
    }
    bytes
}

/// The words of a command.
pub fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(String::from).collect()
}
