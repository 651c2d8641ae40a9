//! Signatures of certificates (Ed25519): an institution signs what it issues, and whoever has its public key can tell that
//! certificate from an altered or invented one. Recomputing the guarantee cannot do that.

use crate::failure::Failure;
use clap::Args;
use ed25519_dalek::{SECRET_KEY_LENGTH, Signature, Signer as _, SigningKey, VerifyingKey};
use semidp::files;
use semidp_accounting::Certificate;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const ALGORITHM: &str = "ed25519";
const SECRET: &str = "semidp-signing-key/1";
const PUBLIC: &str = "semidp-public-key/1";
/// More than a key file has.
const LARGEST: u64 = 1024;

/// Who signs the certificate.
#[derive(Args, Clone)]
pub struct SignOptions {
    /// Sign the certificate with this key; `semidp keygen` makes one, and `semidp verify --signer KEY.pub` checks it
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
}

impl SignOptions {
    /// The path, if one was given.
    pub fn path(&self) -> Option<&PathBuf> {
        self.sign.as_ref()
    }

    /// Reads the key, if one was given. A key that cannot be read should be known before anything is spent.
    pub fn open(&self) -> Result<Option<SecretKey>, Failure> {
        self.sign.as_deref().map(SecretKey::open).transpose()
    }
}

/// A key that signs.
pub struct SecretKey(SigningKey);

impl SecretKey {
    fn open(path: &Path) -> Result<Self, Failure> {
        let refused = |reason: String| {
            Failure::input(
                format!("--sign: {}: {reason}", path.display()),
                "give the key that `semidp keygen --out KEY` wrote, readable by its owner alone (chmod 600)",
            )
        };
        let found = fs::metadata(path).map_err(|error| refused(error.to_string()))?;
        if !found.is_file() {
            return Err(refused("it is not a regular file".into()));
        }
        #[cfg(unix)]
        if std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0 {
            return Err(refused("others than its owner may read it".into()));
        }
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(LARGEST).read_to_string(&mut text));
        read.map_err(|error| refused(error.to_string()))?;
        let bytes = key_in(&text, SECRET).ok_or_else(|| refused("it is no signing key".into()))?;
        Ok(Self(SigningKey::from_bytes(&bytes)))
    }

    /// Signs everything that the certificate says; nothing of it may change afterwards.
    pub fn sign(&self, certificate: &mut Certificate) -> Result<(), Failure> {
        let signature = self.0.sign(&certificate.signed_bytes()?);
        certificate.signature = Some(semidp_accounting::Signature {
            algorithm: ALGORITHM.into(),
            public_key: hex(self.0.verifying_key().as_bytes()),
            value: hex(&signature.to_bytes()),
        });
        Ok(())
    }
}

/// A key that verifies.
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads the file that [`generate`] wrote beside the secret key.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let text = files::read("signer", path)?;
        let key = key_in(&text, PUBLIC).and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        key.map(Self).ok_or_else(|| {
            Failure::input(
                format!("--signer: {} is no public key of semidp", path.display()),
                "give the institution's KEY.pub, which `semidp keygen` wrote",
            )
        })
    }
}

/// What is wrong with the signature of a certificate: it must be there if a signer is expected, be this signer's, and fit.
pub fn objection(certificate: &Certificate, signer: Option<&PublicKey>) -> Result<Option<String>, Failure> {
    let Some(signature) = &certificate.signature else {
        return Ok(signer.map(|_| "signature: there is none".into()));
    };
    if signature.algorithm != ALGORITHM {
        return Ok(Some(format!("signature: `{}` is unknown, expected `{ALGORITHM}`", signature.algorithm)));
    }
    let own = unhex(&signature.public_key).and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
    let (Some(own), Some(value)) = (own, unhex(&signature.value)) else {
        return Ok(Some("signature: malformed".into()));
    };
    if signer.is_some_and(|signer| signer.0 != own) {
        return Ok(Some("signature: made with another key than that of --signer".into()));
    }
    let fits = own.verify_strict(&certificate.signed_bytes()?, &Signature::from_bytes(&value));
    Ok(fits.is_err().then(|| "signature: the certificate is not what was signed".into()))
}

/// Makes a pair of keys: the secret one at `path`, for its owner alone, the public one beside it. Returns the public file and
/// the public key.
pub fn generate(path: &Path) -> Result<(PathBuf, String), Failure> {
    let mut bytes = [0; SECRET_KEY_LENGTH];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::other(format!("the operating system gave no random key: {error}")))?;
    let key = SigningKey::from_bytes(&bytes);
    let public = hex(key.verifying_key().as_bytes());
    let mut public_path = path.as_os_str().to_owned();
    public_path.push(".pub");
    let public_path = PathBuf::from(public_path);
    create(path, &format!("{SECRET} {}\n", hex(&bytes)), 0o600)?;
    create(&public_path, &format!("{PUBLIC} {public}\n"), 0o644).inspect_err(|_| {
        // A key without its other half is of no use.
        let _ = fs::remove_file(path);
    })?;
    Ok((public_path, public))
}

/// Writes a file that must not exist yet: a key that was used is never overwritten.
fn create(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::input(
            format!("--out: {} exists, and keys are never overwritten", path.display()),
            "name a file that does not exist",
        ),
        _ => {
            // What this call made, and could not fill.
            let _ = fs::remove_file(path);
            files::cannot_write("out", path, error).into()
        }
    })
}

/// The key in a line of a format and 64 hexadecimal digits.
fn key_in(text: &str, format: &str) -> Option<[u8; 32]> {
    unhex(text.trim().strip_prefix(format)?.strip_prefix(' ')?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    if text.len() != 2 * LENGTH || !text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0; LENGTH];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}
