//! Options that were given and make no difference: a user should hear of them.

use super::options::{HyperOptions, Train, WarmStartName};
use semidp::train::{Algorithm, PrivateUse};
use semidp_accounting::Trust;

impl Train {
    /// Tells of options that were given and make no difference.
    pub fn without_effect(&self, algorithm: &dyn Algorithm, has_public: bool) -> Option<String> {
        let is_unread = algorithm.private_use() == PrivateUse::Nothing;
        let is_quiet = algorithm.private_use() != PrivateUse::Budgeted;
        let mut names = useless(&[
            ("--private", self.private.is_some(), is_unread),
            ("--strict", self.strict, is_unread),
        ]);
        names.extend(self.hyper.without_effect(algorithm, has_public));
        names.extend(useless(&[
            ("--seed", self.seed.is_some(), is_quiet),
            ("--threads", self.threads.is_some(), is_quiet),
            ("--memory", self.memory.is_some(), is_quiet),
        ]));
        let what =
            if is_lonely(algorithm, has_public) { "training without public rows" } else { algorithm.name() };
        (!names.is_empty()).then(|| format!("no effect on {what}: {}", names.join(", ")))
    }
}

impl HyperOptions {
    /// Those that were given and make no difference.
    pub fn without_effect(&self, algorithm: &dyn Algorithm, has_public: bool) -> Vec<&'static str> {
        let is_warm = self.warm_start.is_some_and(|start| !matches!(start, WarmStartName::None));
        let is_cold = self.warm_start.is_some() && !is_warm;
        let is_local = algorithm.private_use() == PrivateUse::Budgeted && algorithm.trust() == Trust::Local;
        let ignores = algorithm.ignores();
        let ignored = |name: &str| ignores.contains(&name);
        let lonely = is_lonely(algorithm, has_public);
        useless(&[
            ("--clip-norm", self.clip_norm.is_some(), ignored("clip-norm")),
            ("--sampling", self.sampling.is_some(), ignored("sampling")),
            ("--sample-rate", self.sample_rate.is_some(), ignored("sample-rate")),
            ("--expected-batch", self.expected_batch.is_some(), ignored("expected-batch")),
            ("--steps", self.steps.is_some(), ignored("steps")),
            ("--learning-rate", self.learning_rate.is_some(), ignored("learning-rate")),
            ("--average", self.average.is_some(), ignored("average")),
            ("--public-batch", self.public_batch.is_some(), ignored("public-batch") || lonely),
            ("--alpha", self.alpha.is_some(), ignored("alpha") || lonely),
            ("--public-gradient", self.public_gradient.is_some(), ignored("public-gradient") || lonely),
            ("--warm-start", is_warm, ignored("warm-start") || lonely),
            ("--warm-start none", is_cold, ignored("warm-start") || ignored("warm-start none")),
            ("--l2", self.l2.is_some(), ignored("l2")),
            ("--randomizer", self.randomizer.is_some(), !is_local),
            ("--schedule", self.schedule.is_some(), !is_local || ignored("schedule")),
            (
                "--hessian-regularisation",
                self.hessian_regularisation.is_some(),
                ignored("hessian-regularisation"),
            ),
        ])
    }
}

/// Gradients of public rows that are not there are not weighed, and nothing starts at their minimum.
fn is_lonely(algorithm: &dyn Algorithm, has_public: bool) -> bool {
    !has_public && algorithm.private_use() == PrivateUse::Budgeted
}

/// Of options, each with whether it was given and whether it has no effect, the names of those where both is so.
fn useless(options: &[(&'static str, bool, bool)]) -> Vec<&'static str> {
    let both = options.iter().filter(|(_, is_given, has_none)| *is_given && *has_none);
    both.map(|(name, ..)| *name).collect()
}
