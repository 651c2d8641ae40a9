//! The seals of a memory of reports, and the key file beside it.

use crate::failure::Failure;
use hmac::{Hmac, KeyInit, Mac};
use semidp_core::{RunId, files};
use sha2::Sha256;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

const FORMAT: &str = "semidp-memory-key/2";
/// Of versions that did not note which entries were delivered; it is read as if all of them were.
const FORMAT_WITHOUT_WAITING: &str = "semidp-memory-key/1";
/// Of a memory without entries.
pub const NO_SEAL: &str = "none";
/// In place of a list of entries that wait.
const NONE_WAIT: &str = "none";
const MAX_BYTES: u64 = 1 << 20;

/// How far a memory was sealed when reports were last released.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// Entries,
    pub entries: u64,
    /// and where the last one ends.
    pub length: u64,
    /// The seal of the last one.
    pub seal: String,
    /// Entries whose reports were not delivered yet, counted from 0.
    pub waiting: Vec<u64>,
}

impl Head {
    /// The head of a memory without entries.
    pub fn empty() -> Self {
        Self { entries: 0, length: 0, seal: NO_SEAL.into(), waiting: Vec::new() }
    }
}

/// The key of the seals, in a file of mode 0600 beside the memory, with the head.
pub struct Key {
    secret: String,
    head: Head,
}

impl Key {
    /// Beside the memory.
    pub fn path(memory: &Path) -> PathBuf {
        let mut name = OsString::from(memory);
        name.push(".key");
        name.into()
    }

    /// A new one. [`Key::advance`] writes it.
    pub fn new(memory: &Path) -> Result<Self, Failure> {
        let random = || RunId::random().map(|id| id.to_string());
        let secret = random()
            .and_then(|first| Ok(first + &random()?))
            .map_err(|error| Failure::from(error).about(&Self::path(memory).display().to_string()))?;
        Ok(Self { secret, head: Head::empty() })
    }

    /// The one beside a memory, if there is one.
    pub fn read(memory: &Path) -> Result<Option<Self>, Failure> {
        let path = Self::path(memory);
        let refused = |reason: &str| {
            Failure::input(
                format!("--memory: the key {} of {} {reason}", path.display(), memory.display()),
                "nothing is reported until what was reported before is known: restore the key file, or both files",
            )
        };
        if std::fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let text = files::read_own(&path, MAX_BYTES)
            .map_err(|error| refused(&format!("cannot be read: {error}")))?;
        Self::decode(&text).map(Some).ok_or_else(|| refused("is none, or damaged"))
    }

    fn decode(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.strip_suffix('\n')?.split('\n').collect();
        let [format, secret, head, _] = lines[..] else { return None };
        let parts: Vec<&str> = head.split(' ').collect();
        let (entries, length, seal, waiting) = match (format, &parts[..]) {
            (FORMAT, [entries, length, seal, waiting]) => (entries, length, seal, *waiting),
            (FORMAT_WITHOUT_WAITING, [entries, length, seal]) => (entries, length, seal, NONE_WAIT),
            _ => return None,
        };
        let waiting = match waiting {
            NONE_WAIT => Vec::new(),
            list => list.split(',').map(str::parse).collect::<Result<_, _>>().ok()?,
        };
        let (entries, length) = (entries.parse().ok()?, length.parse().ok()?);
        let key =
            Self { secret: secret.into(), head: Head { entries, length, seal: (*seal).into(), waiting } };
        (key.encode_as(format) == text).then_some(key)
    }

    fn encode_as(&self, format: &str) -> String {
        let Head { entries, length, seal, waiting } = &self.head;
        let mut head = format!("{entries} {length} {seal}");
        if format == FORMAT {
            let list: Vec<String> = waiting.iter().map(u64::to_string).collect();
            head.push(' ');
            head.push_str(&if list.is_empty() { NONE_WAIT.into() } else { list.join(",") });
        }
        let mut mac = self.mac("head");
        mac.update(head.as_bytes());
        format!("{format}\n{}\n{head}\n{}\n", self.secret, digits(mac))
    }

    /// The head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Writes a new head, durably.
    pub fn advance(&mut self, memory: &Path, head: Head) -> io::Result<()> {
        self.head = head;
        files::replace(&Self::path(memory), 0o600, &self.encode_as(FORMAT))
    }

    /// The digest of an empty memory.
    pub fn running(&self) -> Running {
        Running(self.mac("memory"))
    }

    fn mac(&self, purpose: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::new_from_slice(self.secret.as_bytes()).expect("HMAC takes keys of any length");
        mac.update(purpose.as_bytes());
        mac.update(b"\0");
        mac
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.secret);
    }
}

/// The keyed digest of the bytes so far.
#[derive(Clone)]
pub struct Running(Hmac<Sha256>);

impl Running {
    /// Goes on by these bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The seal at the end of an entry of so many reports and bytes.
    pub fn seal(&self, reports: u64, bytes: u64) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("end {reports} {bytes}").as_bytes());
        digits(mac)
    }
}

fn digits(mac: Hmac<Sha256>) -> String {
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
