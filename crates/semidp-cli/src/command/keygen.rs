//! `semidp keygen`: a pair of keys to sign certificates with.

use crate::failure::Failure;
use crate::output::Output;
use crate::{signing, table};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp keygen --out clinic.key";

/// Make a key to sign certificates with, and its public half.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Keygen {
    /// Where to write the secret key, readable by its owner alone; the public key goes to KEY.pub
    #[arg(long, value_name = "KEY")]
    out: PathBuf,
}

impl Keygen {
    /// Makes the keys and says where they are.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let (public_path, public_key) = signing::generate(&self.out)?;
        let (secret, public) = (self.out.display().to_string(), public_path.display().to_string());
        let json = json!({ "key": secret, "public_key_file": public, "public_key": public_key });
        output.answer(&json, || {
            table::facts(vec![
                ("secret key".into(), format!("{secret}: for `--sign`; keep it, and show it to nobody")),
                ("public key".into(), format!("{public}: for `semidp verify --signer`; publish it")),
                ("its digits".into(), public_key.clone()),
            ])
        })
    }
}
