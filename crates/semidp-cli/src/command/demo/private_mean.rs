//! The mean of three columns of the Adult data set: most rows treated as private, some as public.
//!
//! Everything that is chosen comes from the public rows: centre, scales, clip norm. The private rows go
//! through the kernel: clipped to a ball about the public mean, summed as integers, noised exactly.

use crate::failure::Failure;
use crate::number::{count, exact, nearest};
use crate::report::bound;
use crate::table;
use semidp_accounting::{Adjacency, CountedEvent, Delta, Epsilon, Event, Steps, calibrate_noise};
use semidp_core::{
    Certificate, ClippedSum, DenseTable, Gaussian, Private, Program, Public, Sampling, Session,
};
use serde_json::{Value, json};

const NAMES: [&str; 3] = ["age", "years of education", "hours a week"];
const WIDTH: usize = NAMES.len();
static NUMBERS: &[u8] = include_bytes!("../../../../../testdata/adult/age_education_hours.u8");

/// Every 64th row is public.
const EVERY: usize = 64;
const EPSILON: f64 = 1.0;
const DELTA: f64 = 1e-6;
/// The clip norm is this quantile of the public rows' distances from their mean.
const KEPT: f64 = 0.99;

type Row = [f64; WIDTH];

/// The release, and what to compare it with.
pub struct Mean {
    public_rows: usize,
    private_rows: usize,
    clip_norm: f64,
    noise_multiplier: f64,
    public: Row,
    released: Row,
    /// Exact, because this data is public in truth.
    exact: Row,
    certificate: Certificate,
}

/// Runs the release.
pub fn release() -> Result<Mean, Failure> {
    let rows: Vec<Row> =
        NUMBERS.chunks_exact(WIDTH).map(|bytes| std::array::from_fn(|j| f64::from(bytes[j]))).collect();
    let chosen = |public: bool| {
        let rows = rows.iter().enumerate().filter(move |(i, _)| i.is_multiple_of(EVERY) == public);
        rows.map(|(_, row)| *row).collect::<Vec<Row>>()
    };
    let (public, private) = (chosen(true), chosen(false));

    // What the public rows teach.
    let centre = mean_of(&public);
    let spread: Row = std::array::from_fn(|j| {
        (public.iter().map(|row| (row[j] - centre[j]).powi(2)).sum::<f64>() / public.len() as f64).sqrt()
    });
    let scaled = |row: &Row| -> Row { std::array::from_fn(|j| (row[j] - centre[j]) / spread[j]) };
    let mut lengths: Vec<f64> =
        public.iter().map(|row| scaled(row).iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
    lengths.sort_by(f64::total_cmp);
    let clip_norm = lengths[(KEPT * lengths.len() as f64) as usize];

    // The noise that the budget asks for.
    let delta = Delta::new(DELTA)?;
    let noise = calibrate_noise(Epsilon::new(EPSILON)?, delta, Adjacency::ReplaceOne, |noise_multiplier| {
        vec![CountedEvent::new(Event::Gaussian { noise_multiplier }, Steps::ONE)]
    })?;

    // The private rows, behind the wall.
    let exact = mean_of(&private);
    let private_rows = private.len();
    let values = private.iter().flat_map(|row| scaled(row).map(|x| x as f32)).collect();
    drop(private);
    let session = Session::new(Private::new(DenseTable::new(values, WIDTH)?), Adjacency::ReplaceOne)?;
    let query = ClippedSum::l2(Public(vec![0.0; WIDTH]), clip_norm)?;
    let program = Program::new(Gaussian::new(noise.value), Sampling::Everyone, Steps::ONE);
    let (run, mut tickets) = session.authorise(program, delta)?;
    let ticket = tickets.next().expect("one step was authorised");
    let mean = run
        .noise(run.sum(&query, ticket)?)?
        .map(|sum| -> Row { std::array::from_fn(|j| centre[j] + spread[j] * sum[j] / private_rows as f64) });
    let release = run.finish(tickets, mean)?;
    Ok(Mean {
        public_rows: public.len(),
        private_rows,
        clip_norm,
        noise_multiplier: noise.value.get(),
        public: centre,
        released: release.value,
        exact,
        certificate: release.certificate,
    })
}

fn mean_of(rows: &[Row]) -> Row {
    std::array::from_fn(|j| rows.iter().map(|row| row[j]).sum::<f64>() / rows.len() as f64)
}

impl Mean {
    pub fn as_json(&self) -> Value {
        json!({
            "data": "UCI Adult",
            "columns": NAMES,
            "public_rows": self.public_rows,
            "private_rows": self.private_rows,
            "clip_norm": self.clip_norm,
            "noise_multiplier": self.noise_multiplier,
            "public_mean": self.public,
            "released_mean": self.released,
            "exact_mean_for_comparison": self.exact,
            "certificate": self.certificate,
        })
    }

    pub fn as_text(&self) -> String {
        let question = format!(
            "UCI Adult, {} rows. Say {} of them are public and {} private. What is the mean of the private \
             rows, with epsilon {EPSILON} at delta {} for each of them?",
            count((self.public_rows + self.private_rows) as u64),
            count(self.public_rows as u64),
            count(self.private_rows as u64),
            exact(DELTA),
        );
        let headings = ["", "public mean", "released\n(private)", "exact, for\ncomparison"];
        let cells = (0..WIDTH)
            .map(|j| {
                let numbers = [self.public[j], self.released[j], self.exact[j]];
                let numbers = numbers.map(|x| format!("{x:.3}"));
                [vec![NAMES[j].to_string()], numbers.to_vec()].concat()
            })
            .collect();
        let guarantee = &self.certificate.guarantee;
        let points = [
            "The public rows gave the centre, the scales and the clip norm: nothing was tuned on private rows."
                .to_string(),
            format!(
                "Each private row was clipped to {} about the public mean, turned into integers, and summed \
                 exactly; Gaussian noise of {} clip norms was drawn in integers and added.",
                nearest(self.clip_norm, 3),
                bound(self.noise_multiplier)
            ),
            format!(
                "Certificate: epsilon {} at delta {}, {} adjacency, exact arithmetic, noise from the operating \
                 system: run it again and the numbers differ a little.",
                bound(guarantee.epsilon.get()),
                exact(guarantee.delta.get()),
                guarantee.adjacency,
            ),
            "The exact column is shown because this data set is public in truth; with real private data \
             nobody sees it."
                .to_string(),
        ];
        let points: Vec<String> =
            points.iter().map(|point| table::wrap(&format!("- {point}"), "  ")).collect();
        format!(
            "{}\n\n{}\n\n{}",
            table::wrap(&question, ""),
            table::columns(&headings, cells),
            points.join("\n")
        )
    }
}
