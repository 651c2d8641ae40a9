//! What the figures say, in words; every number comes from them.

use super::Sizes;
use super::summary::Summary;
use super::tables::Topic;
use super::trainer::Algorithm;
use crate::published::Start;

/// The excess loss of our Algorithm 1 over the paper's should be at most this.
pub const EXCESS_BAR: f64 = 1.1;
/// The autopilot should be at most this far above the paper's Algorithm 1.
const AUTOPILOT_BAR: f64 = 0.002;

impl Topic {
    /// Of one table.
    pub fn findings(&self, summaries: &[Summary<'_>], sizes: &Sizes) -> Vec<String> {
        let mut found = vec![self.protocol_in_words(summaries)];
        found.extend(self.excess_in_words(summaries));
        found.push(self.averages_in_words(summaries));
        found.extend(self.autopilot_in_words(summaries));
        found.push(self.limit_in_words(summaries));
        found.extend(self.few_public_rows(summaries, sizes));
        // An experiment has several tables; each finding says of which it is.
        found.into_iter().map(|finding| format!("{}: {finding}", self.title)).collect()
    }

    /// Where a figure is reached, for a sentence.
    pub fn at(&self, summary: &Summary<'_>) -> String {
        format!("{} {}", self.variable().replace('_', " "), self.value(summary))
    }

    /// The largest of a figure, and where.
    fn most<'s>(
        &self,
        summaries: &[Summary<'s>],
        of: impl Fn(&Summary<'s>) -> Option<f64>,
    ) -> Option<(f64, String)> {
        let known = summaries.iter().filter_map(|summary| Some((of(summary)?, self.at(summary))));
        known.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Who is best by the paper's protocol.
    fn protocol_in_words(&self, summaries: &[Summary<'_>]) -> String {
        let against = |other: Algorithm| {
            // Paired: every algorithm saw the same draws.
            let is_best = |summary: &&Summary<'_>| {
                let gaps: Vec<f64> = summary
                    .cell
                    .draws
                    .iter()
                    .map(|draw| summary.on_draw(Algorithm::One, draw) - summary.on_draw(other, draw))
                    .collect();
                let (gap, error) = crate::regression::mean_and_error(&gaps);
                gap <= 2.0 * error
            };
            summaries.iter().filter(is_best).count()
        };
        let throws = summaries
            .iter()
            .filter(|s| s.protocol(Algorithm::One).0 <= s.throw_away.0 + 2.0 * s.throw_away.1);
        format!(
            "with hyper-parameters chosen on validation data of another draw, the output among them, Algorithm 1 is at or \
             below DP-SGD in {} of {} cells, PDA-MD in {}, throw-away in {} (within two standard errors).",
            against(Algorithm::DpSgd),
            summaries.len(),
            against(Algorithm::PdaMd),
            throws.count(),
        )
    }

    /// Ours over the paper's, by the same protocol.
    fn excess_in_words(&self, summaries: &[Summary<'_>]) -> Option<String> {
        let within = |of: &dyn Fn(&Summary<'_>) -> Option<f64>| {
            summaries.iter().filter_map(of).filter(|ratio| *ratio <= EXCESS_BAR).count()
        };
        let [last, averaged] = [0, 1].map(|output| {
            within(&|summary| summary.excess_over_papers(summary.loss(Algorithm::One, output).0))
        });
        let (most, place) = self.most(summaries, Summary::excess_ratio)?;
        let after = self.most(summaries, Summary::excess_ratio_after_luck);
        let after = after.map_or(String::new(), |(most, place)| {
            format!(" After luck the largest, among cells with more public rows than columns, is {most:.3} ({place}).")
        });
        Some(format!(
            "excess loss of our Algorithm 1 by the paper's protocol over the paper's: at most {EXCESS_BAR} in {} of {} \
             cells, {most:.3} at most ({place}).{after} With the last iterate everywhere it is at most {EXCESS_BAR} in \
             {last} cells, with the mean of late ones in {averaged}.",
            within(&|summary| summary.excess_ratio()),
            summaries.len(),
        ))
    }

    /// What averaging does.
    fn averages_in_words(&self, summaries: &[Summary<'_>]) -> String {
        let gain = |summary: &Summary<'_>| {
            let [last, averaged] = [0, 1].map(|output| summary.loss(Algorithm::One, output).0);
            (last - 1.0) / (averaged - 1.0)
        };
        let better = summaries.iter().filter(|summary| gain(summary) > 1.0).count();
        let chosen = summaries.iter().filter(|summary| summary.tuned_output(Algorithm::One) == 1).count();
        let most = self.most(summaries, |summary| Some(gain(summary)));
        let most =
            most.map_or(String::new(), |(most, place)| format!(", by up to a factor of {most:.2} ({place})"));
        format!(
            "the mean of late iterates in place of the last one, tuned likewise, lowers the excess loss of Algorithm 1 \
             in {better} of {} cells{most}; validation data choose it in {chosen}.",
            summaries.len()
        )
    }

    /// The library left to itself.
    fn autopilot_in_words(&self, summaries: &[Summary<'_>]) -> Vec<String> {
        let name = crate::autopilot::NAME;
        let tuned = summaries.iter().filter(|s| s.autopilot.0 <= s.protocol(Algorithm::One).0);
        let mut found = vec![format!(
            "the autopilot ({name} with a budget alone; it sees no validation row) is at or below our tuned Algorithm 1 in \
             {} of {} cells.",
            tuned.count(),
            summaries.len()
        )];
        if let Some((most, place)) = self.most(summaries, Summary::autopilot_minus_paper) {
            let within = summaries
                .iter()
                .filter_map(Summary::autopilot_minus_paper)
                .filter(|gap| *gap <= AUTOPILOT_BAR);
            found.push(format!(
                "against the paper's tuned Algorithm 1, luck of draws taken off where it is known, the autopilot is at most \
                 {AUTOPILOT_BAR} above in {} of {} cells; the largest difference is {most:+.4} ({place}).",
                within.count(),
                summaries.len()
            ));
        }
        let ratios: Vec<f64> = summaries.iter().filter_map(Summary::predicted_over_measured).collect();
        if !ratios.is_empty() {
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let most = ratios.iter().copied().fold(0.0, f64::max);
            found.push(format!(
                "the excess loss that the autopilot predicted of itself is {least:.2} to {most:.2} times what was measured."
            ));
        }
        found
    }

    /// How much is left to gain.
    fn limit_in_words(&self, summaries: &[Summary<'_>]) -> String {
        let furthest = self.most(summaries, |s| Some((s.autopilot.0 - 1.0) / (s.limit - 1.0)));
        let furthest = furthest.map_or(String::new(), |(most, place)| {
            format!("the excess loss of the autopilot is at most {most:.2} times it ({place})")
        });
        let ratio = self.most(summaries, Summary::distance_ratio).map_or(String::new(), |(most, place)| {
            format!(
                "; its distance from it is at most {most:.2} times that of the paper's Algorithm 1 ({place})"
            )
        });
        format!("against the limit of public rows and noised private gradients together, {furthest}{ratio}.")
    }

    /// PDA-MD with fewer public rows than columns does not stay at its start here.
    fn few_public_rows(&self, summaries: &[Summary<'_>], sizes: &Sizes) -> Option<String> {
        let few: Vec<&Summary<'_>> =
            summaries.iter().filter(|summary| summary.public < sizes.dimension).collect();
        let first = few.first()?;
        let ours = first.protocol(Algorithm::PdaMd).0;
        let papers = first.papers(Algorithm::PdaMd);
        let papers = papers.map_or(String::new(), |paper| format!(", where the paper prints {paper}"));
        let start = match first.cell.setting.start {
            Start::Warm => "the shortest interpolation of public labels",
            Start::Cold => "zero",
        };
        Some(format!(
            "with fewer public rows than columns PDA-MD, whose Hessian is divided by its least eigenvalue, can leave \
             {start}: {ours:.4} at {}{papers}. There the least eigenvalue is the regularisation, and directions without \
             public rows are followed as by DP-SGD.",
            self.at(first)
        ))
    }
}

/// What holds for all tables.
pub fn general(sizes: &Sizes) -> Vec<String> {
    let mut found = vec![
        "Learning rates and weights of Algorithm 1, PDA-MD and DP-SGD were chosen on validation data, as the paper does, and \
         so was the output, the last iterate or the mean of late ones, as the paper's Algorithm 1 leaves it open; validation rows are as private as training rows, so that the printed epsilon does not hold for those columns. The \
         autopilot, throw-away and the limit use none."
            .into(),
    ];
    if !sizes.is_of_paper {
        found.push(format!(
            "These are figures of a smaller problem (d = {}, n = {}, K = {}, T = {}). The paper's are of d = 2000 and n = \
             30,000, and are left out: they cannot be compared.",
            sizes.dimension, sizes.rows, sizes.batch, sizes.steps
        ));
    }
    found
}
