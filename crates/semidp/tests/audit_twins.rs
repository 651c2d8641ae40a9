//! Deliberately broken twins of mechanisms: an audit must flag each of them, and none that is right.
//!
//! They are small simulations of one coordinate, in floating point, and live here only. All claims are at confidence 1 − 1e-9.

use semidp::audit::{Audit, Claim, Guesses, from_scores, one_run_epsilon};
use semidp::mean::{Problem, plan_named};
use semidp_accounting::convert::gaussian_epsilon;
use semidp_accounting::{
    Adjacency, CountedEvent, Delta, Event, Mu, NoiseMultiplier, PrivacyBudget, Rho, SampleRate, Steps,
    epsilon,
};
use semidp_core::{DenseTable, Private, Public, Randomness, Session};

const DELTA: f64 = 1e-5;
const TRIALS: usize = 40_000;
const SURE: f64 = 1.0 - 1e-9;
/// C.
const CLIP: f64 = 1.0;
/// μ of every Gaussian claim: noise has a standard deviation of sensitivity/μ.
const MU: f64 = 1.0;

/// A small generator, enough for simulations.
struct Numbers(u64);

impl Numbers {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn delta() -> Delta {
    Delta::new(DELTA).unwrap()
}

fn gaussian_claim(what: &str, mu: f64, adjacency: Adjacency) -> Claim {
    let epsilon = gaussian_epsilon(Mu::new(mu).unwrap(), delta()).unwrap().get();
    Claim { what: what.into(), epsilon, delta: DELTA, adjacency, is_gaussian: true }
}

/// Audits scores of a mechanism that is told in which world it is.
fn audit(claim: Claim, mut score: impl FnMut(bool, &mut Numbers) -> f64) -> Audit {
    let mut numbers = Numbers(11);
    let mut world = |is_in: bool| -> Vec<f64> { (0..TRIALS).map(|_| score(is_in, &mut numbers)).collect() };
    let (ins, outs) = (world(true), world(false));
    let found = from_scores(claim, &ins, &outs, SURE, 11).unwrap();
    println!("{}: {:.3} of {:.3}", found.what, found.best().epsilon, found.claimed_epsilon);
    found
}

/// A sum of one private number that is clipped to [−C, C], or not, plus noise of this standard deviation.
fn noised_sum(row: f64, is_clipped: bool, std: f64, numbers: &mut Numbers) -> f64 {
    (if is_clipped { row.clamp(-CLIP, CLIP) } else { row }) + std * numbers.normal()
}

/// Opposite rows, far out.
fn opposite(is_in: bool) -> f64 {
    if is_in { 8.0 * CLIP } else { -8.0 * CLIP }
}

/// 2C/μ: what replace-one needs.
fn honest_std() -> f64 {
    Adjacency::ReplaceOne.sensitivity_factor() * CLIP / MU
}

#[test]
fn the_honest_twin_passes_and_is_seen() {
    let claim = gaussian_claim("honest", MU, Adjacency::ReplaceOne);
    let found = audit(claim, |is_in, numbers| noised_sum(opposite(is_in), true, honest_std(), numbers));
    assert!(!found.is_violation());
    assert!(found.best().epsilon >= 0.8 * found.claimed_epsilon);
}

#[test]
fn less_noise_is_flagged() {
    for factor in [0.5, 0.8] {
        let claim = gaussian_claim(&format!("{factor} of the noise"), MU, Adjacency::ReplaceOne);
        let std = factor * honest_std();
        let found = audit(claim, |is_in, numbers| noised_sum(opposite(is_in), true, std, numbers));
        assert!(found.is_violation(), "{factor}");
    }
}

/// Noise for a sensitivity of C, which is that of add/remove.
#[test]
fn sensitivity_c_under_replace_one_is_flagged() {
    let claim = gaussian_claim("sensitivity C under replace-one", MU, Adjacency::ReplaceOne);
    let std = Adjacency::AddRemove.sensitivity_factor() * CLIP / MU;
    assert!(audit(claim, |is_in, numbers| noised_sum(opposite(is_in), true, std, numbers)).is_violation());
}

#[test]
fn skipped_clipping_is_flagged() {
    let claim = gaussian_claim("clipping skipped", MU, Adjacency::ReplaceOne);
    let score = |is_in, numbers: &mut Numbers| noised_sum(opposite(is_in), false, honest_std(), numbers);
    assert!(audit(claim, score).is_violation());
}

/// A Poisson sample of a data set of one row, or of none. A release of exactly zero says that the sample was empty.
#[test]
fn an_empty_batch_without_noise_is_flagged() {
    let (rate, multiplier) = (0.2, 2.0);
    let event = Event::PoissonGaussian {
        noise_multiplier: NoiseMultiplier::new(multiplier).unwrap(),
        sample_rate: SampleRate::new(rate).unwrap(),
    };
    let events = [CountedEvent::new(event, Steps::ONE)];
    let claimed = epsilon(&events, Adjacency::AddRemove, delta()).unwrap().value.get();
    let twin = |noises_nothing: bool| {
        let claim = Claim {
            what: format!("an empty batch is noised: {noises_nothing}"),
            epsilon: claimed,
            delta: DELTA,
            adjacency: Adjacency::AddRemove,
            is_gaussian: false,
        };
        audit(claim, |is_in, numbers| {
            let is_sampled = is_in && numbers.uniform() < rate;
            let sum = if is_sampled { CLIP } else { 0.0 };
            let released = match is_sampled || noises_nothing {
                true => sum + multiplier * CLIP * numbers.normal(),
                false => 0.0,
            };
            f64::from(u8::from(released != 0.0))
        })
    };
    assert!(twin(false).is_violation());
    assert!(!twin(true).is_violation());
}

/// A mean divided by the number of rows that there happen to be: under add/remove one row moves it by 2C/n, and the sum by C only.
#[test]
fn a_divisor_from_the_data_is_flagged() {
    let others = 100.0;
    let twin = |follows_the_data: bool| {
        let what = format!("the divisor follows the data: {follows_the_data}");
        audit(gaussian_claim(&what, MU, Adjacency::AddRemove), |is_in, numbers| {
            // All others at one end, and the canary at the other.
            let (sum, rows) = if is_in { (others - CLIP, others + 1.0) } else { (others, others) };
            let divisor = if follows_the_data { rows } else { others };
            -(sum + CLIP / MU * numbers.normal()) / divisor
        })
    };
    assert!(twin(true).is_violation());
    assert!(!twin(false).is_violation());
}

/// A run that is taken up again with the noise of its first step, but on other rows: the difference of both releases has no noise.
#[test]
fn the_same_noise_on_different_data_is_flagged() {
    let twin = |is_fresh: bool| {
        // Two releases with noise for μ/2 each cost μ/√2.
        let std = 2.0 * honest_std();
        let what = format!("fresh noise in the second release: {is_fresh}");
        let claim = gaussian_claim(&what, MU / 2f64.sqrt(), Adjacency::ReplaceOne);
        audit(Claim { is_gaussian: is_fresh, ..claim }, |is_in, numbers| {
            let row = opposite(is_in).clamp(-CLIP, CLIP);
            let first = numbers.normal();
            let second = if is_fresh { numbers.normal() } else { first };
            // The batch of the second has the canary's row.
            (row + std * second) - std * first
        })
    };
    assert!(twin(false).is_violation());
    assert!(!twin(true).is_violation());
}

/// Through the kernel, which cannot know: a private row among the rows whose mean is passed as public.
#[test]
fn private_rows_passed_as_public_are_flagged() {
    let (private, public) = (100u64, 10u64);
    let rho = MU * MU / 2.0;
    let budget = PrivacyBudget::Zcdp { rho: Rho::new(rho).unwrap(), stated_at: delta() };
    let plan = plan_named(
        "weighted-gaussian",
        &Problem::new(private, public, 1, CLIP).unwrap().with_std(0.1 * CLIP).unwrap(),
        budget,
    )
    .unwrap();
    let twin = |is_public: bool| {
        let mut scores = [Vec::new(), Vec::new()];
        let mut certified = f64::NAN;
        for (world, side) in [CLIP, -CLIP].into_iter().enumerate() {
            let mut rows = vec![0.0f64; private as usize];
            let mut public_mean = 0.0;
            match is_public {
                true => public_mean = side / public as f64,
                false => rows[0] = side,
            }
            let table = Private::new(DenseTable::new(rows, 1).unwrap());
            let session = Session::new(table, Adjacency::ReplaceOne).unwrap();
            let session = session.with_randomness(Randomness::Seed(world as u64)).with_threads(1);
            for _ in 0..4000 {
                let released =
                    plan.release(&session, &Public(vec![public_mean]), &Public(vec![0.0])).unwrap();
                certified = released.certificate.guarantee.epsilon.get();
                scores[world].push(released.value[0]);
            }
        }
        let claim = Claim {
            epsilon: certified,
            ..gaussian_claim(
                &format!("a private row passed as public: {is_public}"),
                MU,
                Adjacency::ReplaceOne,
            )
        };
        let found = from_scores(claim, &scores[0], &scores[1], SURE, 0).unwrap();
        println!("{}: {:.3} of {:.3}", found.what, found.best().epsilon, found.claimed_epsilon);
        found
    };
    assert!(twin(true).is_violation());
    assert!(!twin(false).is_violation());
}

/// Randomised response spends exactly its ε on every answer, so nothing but confidence keeps a bound below it: at most one audit in ten
/// may refute it. 6.5 standard deviations of 400 audits are 39.
#[test]
fn honest_mechanisms_are_refuted_no_more_often_than_confidence_allows() {
    let (audits, trials, confidence) = (400, 1000, 0.9);
    let truth = 1.0 / (1.0 + (-1f64).exp());
    let mut numbers = Numbers(5);
    let (mut many_runs, mut one_run) = (0, 0);
    for _ in 0..audits {
        let mut answers = |chance: f64| -> Vec<f64> {
            (0..trials).map(|_| f64::from(u8::from(numbers.uniform() < chance))).collect()
        };
        let (ins, outs) = (answers(truth), answers(1.0 - truth));
        let claim = Claim {
            what: "randomised response".into(),
            epsilon: 1.0,
            delta: 0.0,
            adjacency: Adjacency::ReplaceOne,
            is_gaussian: false,
        };
        many_runs += u32::from(from_scores(claim, &ins, &outs, confidence, 0).unwrap().is_violation());
        let right = ins.iter().filter(|answer| **answer > 0.5).count() as u64;
        let guesses = Guesses { canaries: trials as u64, made: trials as u64, right };
        one_run += u32::from(one_run_epsilon(&guesses, 0.0, confidence).unwrap() > 1.0);
    }
    println!("refuted: {many_runs} and {one_run} of {audits}");
    assert!(many_runs <= 79 && one_run <= 79);
    // The one-run bound is tight here, up to whole numbers.
    assert!(one_run > 5);
}
