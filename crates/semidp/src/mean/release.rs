//! Carrying out a plan on private rows.

use super::joint::{SAME_POPULATION, clipping_assumption};
use super::law::{ADJACENCY, stated_at};
use super::plan::Plan;
use super::{Law, Target};
use crate::{Error, Result};
use semidp_accounting::{Arithmetic, Certificate, Delta, PrivacyBudget, Provenance, RandomSource, Trust};
use semidp_core::{
    BlockSource, ClippedSum, Gaussian, KNorm, Laplace, Mechanism, Program, Public, Release, Sampling,
    Session, Steps,
};
use serde_json::json;

impl Plan {
    /// Releases the mean.
    ///
    /// `centre` is what rows are clipped about and `public_mean` the mean of the public rows, both in the
    /// session's coordinates; the same vector serves for both if public rows exist, and neither may
    /// depend on private rows.
    pub fn release<S: BlockSource>(
        &self,
        session: &Session<S>,
        public_mean: &Public<Vec<f64>>,
        centre: &Public<Vec<f64>>,
    ) -> Result<Release<Vec<f64>>> {
        let (dimension, rows) = (self.problem().dimension(), self.problem().private_rows());
        let shape = |what, of, found: usize, expected: usize| {
            if found == expected {
                Ok(())
            } else {
                Err(Error::Kernel(semidp_core::Error::Shape { what, of, found, expected }))
            }
        };
        shape("the public mean", "columns", public_mean.len(), dimension)?;
        shape("the centre", "columns", centre.len(), dimension)?;
        let Some(noise) = self.noise() else {
            return Ok(Release { value: self.base(public_mean, centre), certificate: self.untouched()? });
        };
        let Some(units) = session.units() else {
            return Err(Error::invalid(
                "adjacency",
                "add-remove",
                "replace-one for a mean: its weights use the number of private rows",
            ));
        };
        shape("the private table", "rows", units, rows as usize)?;
        match noise.law {
            Law::Gaussian => {
                let query = ClippedSum::l2(centre.clone(), noise.clip.radius)?;
                self.run(session, Gaussian::new(noise.multiplier), &query, public_mean, centre)
            }
            Law::KNorm => {
                let query = ClippedSum::l2(centre.clone(), noise.clip.radius)?;
                self.run(session, KNorm::new(noise.multiplier), &query, public_mean, centre)
            }
            Law::Laplace => {
                let query = ClippedSum::l1(centre.clone(), noise.clip.radius)?;
                self.run(session, Laplace::new(noise.multiplier), &query, public_mean, centre)
            }
        }
    }

    fn run<S: BlockSource, M: Mechanism>(
        &self,
        session: &Session<S>,
        mechanism: M,
        query: &ClippedSum<M::Norm>,
        public_mean: &[f64],
        centre: &[f64],
    ) -> Result<Release<Vec<f64>>> {
        let program = Program::new(mechanism, Sampling::Everyone, Steps::ONE);
        let (run, mut tickets) = session.authorise(program, self.stated_at()?)?;
        let ticket = tickets.next().ok_or_else(|| Error::invalid("steps", 0, "one step"))?;
        let weight = self.private_weight();
        let noised = run.noise(run.sum(query, ticket)?)?.map(|sum| {
            let base = self.base(public_mean, centre).into_iter();
            base.zip(sum).map(|(base, sum)| base + weight * sum).collect::<Vec<f64>>()
        });
        let mut release = run.finish(tickets, noised)?;
        release.certificate.mechanism = format!("mean: {}, {}", self.name(), release.certificate.mechanism);
        release.certificate.hyperparameters = self.provenance();
        release.certificate.assumptions = self.assumptions();
        Ok(release)
    }

    /// The part of the estimate that no private row has a part in.
    fn base(&self, public_mean: &[f64], centre: &[f64]) -> Vec<f64> {
        let share = self.public_share();
        public_mean.iter().zip(centre).map(|(mean, c)| share * mean + (1.0 - share) * c).collect()
    }

    /// Where the certificate states its ε: a pure law needs no δ.
    fn stated_at(&self) -> Result<Delta> {
        match self.noise() {
            Some(noise) => stated_at(noise.law, self.budget()),
            None => Ok(Delta::new(0.0)?),
        }
    }

    /// The public rows stand for the private ones, unless there are rows of one kind only or the rows themselves are meant; and rows beyond
    /// the radius are what the bias of clipping makes of them.
    fn assumptions(&self) -> Vec<String> {
        let problem = self.problem();
        let is_mixed = problem.private_rows() > 0 && problem.public_rows() > 0;
        let same = (is_mixed && problem.target() == Target::Population).then_some(SAME_POPULATION);
        let clipping = self.noise().map(|noise| clipping_assumption(noise.clip));
        same.into_iter().chain(clipping).map(String::from).collect()
    }

    /// ε = 0: no private row was read.
    fn untouched(&self) -> Result<Certificate> {
        let mechanism = format!("mean: {}, no private row was read", self.name());
        let mut certificate =
            Certificate::issue(Vec::new(), ADJACENCY, Trust::Central, Delta::new(0.0)?, mechanism)?;
        certificate.arithmetic = Arithmetic::Exact;
        certificate.random_source = RandomSource::None;
        certificate.hyperparameters = self.provenance();
        certificate.assumptions = self.assumptions();
        Ok(certificate)
    }

    /// Where everything that was chosen came from.
    fn provenance(&self) -> Vec<Provenance> {
        let entry = |name: &str, value: serde_json::Value, source: &str| Provenance {
            name: name.into(),
            value,
            source: source.into(),
        };
        let mut entries = vec![entry("private-weight", json!(self.private_weight()), self.weight_source())];
        if let Some(noise) = self.noise() {
            entries.push(entry("noise-multiplier", json!(noise.multiplier.get()), "calibration"));
        }
        let budget = match self.budget() {
            PrivacyBudget::Approximate { epsilon, delta } => {
                json!({ "epsilon": epsilon.get(), "delta": delta.get() })
            }
            PrivacyBudget::Pure { epsilon } => json!({ "epsilon": epsilon.get() }),
            PrivacyBudget::Zcdp { rho, .. } => json!({ "rho": rho.get() }),
        };
        entries.push(entry("budget", budget, "user"));
        entries.push(entry("target", json!(self.problem().target().name()), "user"));
        entries.extend_from_slice(self.known());
        entries
    }
}
