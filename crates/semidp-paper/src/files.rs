//! Files of published data, in the folder that the user names.

use crate::{Error, Result, Settings};
use flate2::read::GzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Looked at if no folder was named.
const USUAL_FOLDER: &str = "data";

/// The folder of data files.
pub struct Folder(PathBuf);

impl Folder {
    /// The one that was named, or `data` in the working directory, which need not be there: what is missing is told
    /// file by file.
    pub fn of(settings: &Settings) -> Self {
        Self(settings.data.clone().unwrap_or_else(|| USUAL_FOLDER.into()))
    }

    /// The bytes of the first of some files that is there, and without compression if its name ends in `.gz`. `origin`
    /// says where else they can be had.
    pub fn read(&self, names: &[&str], origin: &str) -> Result<Vec<u8>> {
        let Some(path) = names.iter().map(|name| self.0.join(name)).find(|path| path.is_file()) else {
            return Err(self.missing(names, origin));
        };
        let damaged =
            |error: std::io::Error| Error::Data(format!("{} cannot be read: {error}", path.display()));
        let bytes = std::fs::read(&path).map_err(damaged)?;
        if path.extension().is_none_or(|ending| ending != "gz") {
            return Ok(bytes);
        }
        let mut plain = Vec::new();
        GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).map_err(damaged)?;
        Ok(plain)
    }

    fn missing(&self, names: &[&str], origin: &str) -> Error {
        let expected: Vec<String> =
            names.iter().map(|name| self.0.join(name).display().to_string()).collect();
        Error::Data(format!("{} is missing: {origin}", expected.join(" or ")))
    }
}

/// A folder for files that are needed for a moment, removed with what is in it.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one that nobody else has.
    pub fn new() -> Result<Self> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("semidp-paper-{}-{number}", std::process::id()));
        std::fs::create_dir(&path)
            .map_err(|error| Error::Data(format!("{} cannot be made: {error}", path.display())))?;
        Ok(Self(path))
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        std::fs::write(&path, text)
            .map_err(|error| Error::Data(format!("{} cannot be written: {error}", path.display())))?;
        Ok(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn files_are_found_packed_or_not_and_missed_by_name() {
        let scratch = Scratch::new().unwrap();
        scratch.write("plain.csv", "a,b\n").unwrap();
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(b"c,d\n").unwrap();
        std::fs::write(scratch.path().join("packed.csv.gz"), packer.finish().unwrap()).unwrap();
        scratch.write("damaged.csv.gz", "no gzip").unwrap();

        let folder = Folder(scratch.path().to_path_buf());
        assert_eq!(folder.read(&["plain.csv.gz", "plain.csv"], "").unwrap(), b"a,b\n");
        assert_eq!(folder.read(&["packed.csv.gz", "packed.csv"], "").unwrap(), b"c,d\n");
        let refused = folder.read(&["damaged.csv.gz"], "").unwrap_err();
        assert!(matches!(&refused, Error::Data(message) if message.contains("damaged.csv.gz")), "{refused}");
        let missing = folder.read(&["x/none.csv", "none.csv"], "from the archive").unwrap_err().to_string();
        assert!(missing.contains("x/none.csv") && missing.ends_with("from the archive"), "{missing}");
        let path = scratch.path().to_path_buf();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn without_a_name_it_is_the_usual_folder() {
        let mut settings = Settings::new(true, 0, 1);
        assert_eq!(Folder::of(&settings).0, PathBuf::from("data"));
        settings.data = Some("elsewhere".into());
        assert_eq!(Folder::of(&settings).0, PathBuf::from("elsewhere"));
    }
}
