//! What is kept of a run: what it is, how far it came, and the released iterates to go on from.
//!
//! A checkpoint is a text of two lines. The second is the content: facts that must not change, and the state. The first
//! says which run it is of, after how many steps, and carries the kernel's seal on all of that. Numbers of the state
//! are written bit by bit, so that a run goes on exactly where it was.

use super::{PublicRows, Sgd};
use crate::Result;
use crate::loss::Door;
use semidp_core::{Identity, Kept};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const FORMAT: &str = "semidp-checkpoint/1";

/// Something that must not change while a run is interrupted, and its name. Nothing of it is private.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is, as a user would call it.
    pub name: String,
    /// What it was when the run began.
    pub value: Value,
}

impl Fact {
    /// A fact.
    pub fn new(name: &str, value: impl Into<Value>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    /// The value, or its beginning.
    fn short(&self) -> String {
        let text = self.value.to_string();
        match text.char_indices().nth(120) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    }
}

/// The first difference between the facts of a run when it began and now, in words.
pub fn difference(begun: &[Fact], now: &[Fact]) -> Option<String> {
    for fact in begun {
        match now.iter().find(|other| other.name == fact.name) {
            Some(other) if other.value == fact.value => {}
            Some(other) => return Some(format!("{} was {} and is {}", fact.name, fact.value, other.value)),
            None => return Some(format!("{} was {} and is not there now", fact.name, fact.value)),
        }
    }
    let added = now.iter().find(|other| begun.iter().all(|fact| fact.name != other.name))?;
    Some(format!("{} was not there and is {}", added.name, added.short()))
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    identity: Identity,
    done: u64,
    seal: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    facts: Vec<Fact>,
    state: State,
}

/// Where a run stands. Everything in it is released.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    #[serde(with = "bits")]
    pub(super) update: Vec<Vec<f64>>,
    #[serde(with = "bits")]
    pub(super) average: Vec<Vec<f64>>,
    /// The weight of the private gradient in the last step.
    #[serde(with = "bits")]
    pub(super) alpha: Vec<Vec<f64>>,
}

/// A checkpoint as it was read: well-formed, but not yet known to be genuine.
pub(super) struct Checkpoint {
    header: Header,
    text: String,
    content: Content,
}

/// Whether these bytes may be the beginning of a checkpoint, of whichever version.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{\"format\":\"semidp-checkpoint/")
}

/// The text that is sealed.
pub(super) fn content(facts: &[Fact], state: State) -> String {
    let content = Content { facts: facts.to_vec(), state };
    serde_json::to_string(&content).expect("facts and digits can be written")
}

/// The whole text of a checkpoint.
pub(super) fn encode(identity: &Identity, done: u64, content: &str, seal: String) -> String {
    let header = Header { format: FORMAT.into(), identity: identity.clone(), done, seal };
    format!("{}\n{content}\n", serde_json::to_string(&header).expect("a header can be written"))
}

impl Checkpoint {
    /// Reads one; the error says what is wrong with it.
    pub(super) fn decode(text: &str) -> std::result::Result<Self, String> {
        let mut lines = text.lines();
        let (Some(header), Some(text), None) = (lines.next(), lines.next(), lines.next()) else {
            return Err("is no checkpoint, or damaged".into());
        };
        let format = serde_json::from_str::<Value>(header).ok();
        let format = format.as_ref().and_then(|header| header["format"].as_str());
        if let Some(format) = format
            && format != FORMAT
        {
            return Err(format!("has the format {format}; this version reads {FORMAT}"));
        }
        let header = serde_json::from_str(header).map_err(|_| "is no checkpoint, or damaged")?;
        let content = serde_json::from_str(text).map_err(|_| "is no checkpoint, or damaged")?;
        Ok(Self { header, text: text.into(), content })
    }

    /// Refuses to go on with anything that differs, and names the first difference.
    pub(super) fn check(&self, facts: &[Fact]) -> Result<()> {
        match difference(&self.content.facts, facts) {
            Some(difference) => Err(semidp_core::Error::AnotherRun { difference }.into()),
            None => Ok(()),
        }
    }

    /// For the kernel to check.
    pub(super) fn kept(&self) -> Kept<'_> {
        let Header { identity, done, seal, .. } = &self.header;
        Kept { identity, done: *done, text: &self.text, seal }
    }

    /// Steps that were done.
    pub(super) fn done(&self) -> u64 {
        self.header.done
    }

    /// Where the run stood, if it is of the shape that is expected; the kernel must have checked the seal before.
    pub(super) fn state(&self, like: &State) -> Result<&State> {
        let shape = |state: &State| -> Vec<Vec<usize>> {
            let parts = [&state.update, &state.average, &state.alpha];
            parts.map(|part| part.iter().map(Vec::len).collect()).to_vec()
        };
        let state = &self.content.state;
        if shape(state) == shape(like) { Ok(state) } else { Err(semidp_core::Error::Tampered.into()) }
    }
}

impl Sgd<'_> {
    /// What must not change about a run: whatever its iterates depend on, but for the private rows, which the kernel
    /// knows again.
    pub(super) fn facts(&self, public: Option<&PublicRows>) -> Vec<Fact> {
        let loss = match self.loss.door() {
            Door::Scores(loss) => loss.describe(),
            Door::Rows(loss) => loss.describe(),
        };
        let start = self.start.weights.iter().flat_map(|w| w.to_le_bytes());
        vec![
            // What others follow from comes first: it is the difference to be told.
            Fact::new("private rows", self.private_rows),
            Fact::new("steps", self.steps.get()),
            Fact::new("sampling", format!("{:?}", self.sampling)),
            Fact::new("expected-batch", self.batch),
            Fact::new("loss in full", loss),
            Fact::new("clip-norm", self.clip_norm),
            Fact::new("noise-multiplier", self.noise_multiplier.get()),
            Fact::new("public-batch", self.public_batch),
            Fact::new("public-gradient", self.public_gradient.name()),
            Fact::new("alpha", format!("{:?}", self.alpha)),
            Fact::new("update", self.update.describe()),
            Fact::new("average", format!("{:?}", self.average)),
            Fact::new("domain", self.domain.describe()),
            Fact::new("l2", self.l2),
            Fact::new("ridge", self.public_l2),
            Fact::new("order of public rows", self.public_seed),
            Fact::new("public rows", public.map_or(json!(0), |rows| json!(rows.len()))),
            Fact::new("content of the public rows", public.map_or(Value::Null, |rows| json!(rows.digest()))),
            Fact::new("start", digest(start)),
        ]
    }
}

/// SHA-256 of public bytes, as hexadecimal digits.
pub(super) fn digest(bytes: impl IntoIterator<Item = u8>) -> String {
    let mut hasher = Sha256::new();
    let mut buffer = Vec::with_capacity(1 << 12);
    for byte in bytes {
        buffer.push(byte);
        if buffer.len() == buffer.capacity() {
            hasher.update(&buffer);
            buffer.clear();
        }
    }
    hasher.update(&buffer);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl State {
    /// A number by itself.
    pub(super) fn single(value: f64) -> Vec<Vec<f64>> {
        vec![vec![value]]
    }
}

/// Vectors as the digits of their bits: exact, also where numbers are infinite or none.
mod bits {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(vectors: &[Vec<f64>], serializer: S) -> Result<S::Ok, S::Error> {
        let text = |vector: &Vec<f64>| -> String {
            vector.iter().map(|number| format!("{:016x}", number.to_bits())).collect()
        };
        serializer.collect_seq(vectors.iter().map(text))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Vec<Vec<f64>>, D::Error> {
        let number = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).ok()?;
            u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16).map(f64::from_bits)
        };
        Vec::<String>::deserialize(deserializer)?
            .iter()
            .map(|text| text.as_bytes().chunks(16).map(number).collect::<Option<Vec<f64>>>())
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| D::Error::custom("digits of numbers"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_kept_to_the_bit() {
        let state = State {
            update: vec![vec![0.1, -0.0, f64::INFINITY], vec![f64::MIN_POSITIVE / 8.0, 1e300, -1.0 / 3.0]],
            average: Vec::new(),
            alpha: State::single(0.25),
        };
        let text = serde_json::to_string(&state).unwrap();
        let back: State = serde_json::from_str(&text).unwrap();
        let bits =
            |state: &State| -> Vec<u64> { state.update.iter().flatten().map(|x| x.to_bits()).collect() };
        assert_eq!(bits(&back), bits(&state));
        assert_eq!(back, state);
        for wrong in [r#"["0"]"#, r#"["zzzzzzzzzzzzzzzz"]"#, r#"["3ff00000000000000"]"#] {
            let text = format!(r#"{{"update":{wrong},"average":[],"alpha":[]}}"#);
            assert!(serde_json::from_str::<State>(&text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn digests_are_sha_256() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest([]), empty);
        let long = digest((0..10_000u32).map(|x| x as u8));
        assert_ne!(long, digest((0..10_001u32).map(|x| x as u8)));
    }
}
