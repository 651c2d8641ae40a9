//! An audit of a mean: one private row at either end of the ball, all others at its centre.

use super::coins::Coins;
use super::parallel::in_parallel;
use super::scores::{Claim, from_scores};
use super::{Audit, Options};
use crate::Result;
use crate::mean::{Law, Plan, plan_weighted};
use semidp_accounting::Certificate;
use semidp_core::{Adjacency, CsrTable, Private, Public, Randomness, Session};

/// Rows beyond these only take time: rows at the centre add nothing to a sum, and noise does not depend on their number.
const MOST_ROWS: u64 = 100;
/// Releases of one session.
const TOGETHER: u64 = 500;
/// The row lies this many times as far out as the clip norm: clipping is part of what is audited.
const OUTSIDE: f64 = 8.0;

/// Audits a planned mean through the kernel: the worst neighbours there are, replace-one.
pub fn mean(plan: &Plan, options: &Options) -> Result<Audit> {
    options.check(20)?;
    let plan = &fewer_rows(plan)?;
    let attack = Attack { plan, seed: options.seed };
    let chunks = options.trials.div_ceil(TOGETHER);
    let size = |chunk: u64| TOGETHER.min(options.trials - chunk * TOGETHER);
    let found = in_parallel(2 * chunks as usize, options.threads, |i| {
        let (world, chunk) = (i as u64 / chunks, i as u64 % chunks);
        attack.scores(world == 0, chunk, size(chunk))
    })?;
    let certificate = found[0].1.clone();
    let scores: Vec<Vec<f64>> = found.into_iter().map(|(scores, _)| scores).collect();
    let (ins, outs) = scores.split_at(chunks as usize);
    let guarantee = certificate.guarantee;
    let claim = Claim {
        what: format!("mean: {}", plan.name()),
        epsilon: guarantee.epsilon.get(),
        delta: guarantee.delta.get(),
        adjacency: guarantee.adjacency,
        is_gaussian: plan.law() == Some(Law::Gaussian),
    };
    from_scores(claim, &ins.concat(), &outs.concat(), options.confidence, options.seed)
}

/// The same plan for a few rows that have the whole weight of all of them.
pub(super) fn fewer_rows(plan: &Plan) -> Result<Plan> {
    let problem = plan.problem();
    let rows = problem.private_rows().min(MOST_ROWS);
    if rows == problem.private_rows() {
        return Ok(plan.clone());
    }
    let weight = plan.private_weight() * problem.private_rows() as f64 / rows as f64;
    plan_weighted(plan.name(), &problem.with_rows(rows, problem.public_rows()), plan.budget(), weight)
}

struct Attack<'a> {
    plan: &'a Plan,
    seed: u64,
}

impl Attack<'_> {
    /// Scores of releases in one world, and what is promised of each.
    fn scores(&self, is_in: bool, chunk: u64, count: u64) -> Result<(Vec<f64>, Certificate)> {
        let dimension = self.plan.problem().dimension();
        let seed = Coins::new(self.seed, u64::from(is_in), chunk).word();
        let session = Session::new(Private::new(self.rows(is_in)?), Adjacency::ReplaceOne)?
            .with_randomness(Randomness::Seed(seed))
            .with_threads(1);
        let origin = Public(vec![0.0; dimension]);
        let first = self.plan.release(&session, &origin, &origin)?;
        let mut scores = vec![self.score(&first.value)];
        for _ in 1..count {
            scores.push(self.score(&self.plan.release(&session, &origin, &origin)?.value));
        }
        Ok((scores, first.certificate))
    }

    /// The first row far out on the first axis, on the side of this world; all others are zero.
    fn rows(&self, is_in: bool) -> Result<CsrTable<f64>> {
        let problem = self.plan.problem();
        let length = OUTSIDE * self.plan.clip_norm().unwrap_or(problem.l2().radius);
        let rows = problem.private_rows() as usize;
        let mut offsets = vec![1; rows + 1];
        offsets[0] = 0;
        let (columns, values) = match rows {
            0 => (Vec::new(), Vec::new()),
            _ => (vec![0], vec![if is_in { length } else { -length }]),
        };
        Ok(CsrTable::new(offsets, columns, values, problem.dimension())?)
    }

    /// How much likelier IN is: a function that grows with the likelihood ratio of the noise.
    fn score(&self, released: &[f64]) -> f64 {
        match (self.plan.law(), self.plan.clip_norm()) {
            (Some(Law::KNorm), Some(clip)) if self.plan.private_weight() > 0.0 => {
                let reach = self.plan.private_weight() * clip;
                let across: f64 = released[1..].iter().map(|x| x * x).sum();
                let distance = |to: f64| ((released[0] - to).powi(2) + across).sqrt();
                distance(-reach) - distance(reach)
            }
            // Normal and Laplace noise have independent coordinates, and only the first one differs.
            _ => released[0],
        }
    }
}
