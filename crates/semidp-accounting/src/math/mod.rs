//! Numerical tools that the accountants share.

pub(crate) mod decimal;
pub(crate) mod normal;
pub(crate) mod quadrature;
pub(crate) mod search;

/// `ln(1 - q + q e^x)` without overflow and without cancellation for small `q` or `x`.
pub(crate) fn log_mix_exp(q: f64, x: f64) -> f64 {
    if x > 30.0 { x + q.ln() + ((1.0 - q) / q * (-x).exp()).ln_1p() } else { (q * x.exp_m1()).ln_1p() }
}

/// `ln(e^x - 1)` for `x > 0`.
pub(crate) fn log_exp_m1(x: f64) -> f64 {
    if x > 36.0 { x } else { x.exp_m1().ln() }
}

/// A sum of positive terms given by their logarithms, none of which may overflow it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogSum {
    largest: f64,
    scaled: f64,
}

impl LogSum {
    pub(crate) fn new() -> Self {
        Self { largest: f64::NEG_INFINITY, scaled: 0.0 }
    }

    pub(crate) fn add(&mut self, log_term: f64) {
        if log_term == f64::NEG_INFINITY {
            return;
        }
        if log_term <= self.largest {
            self.scaled += (log_term - self.largest).exp();
        } else {
            self.scaled = self.scaled * (self.largest - log_term).exp() + 1.0;
            self.largest = log_term;
        }
    }

    /// The logarithm of the sum; −∞ for the empty sum.
    pub(crate) fn ln(&self) -> f64 {
        self.largest + self.scaled.ln()
    }

    /// `ln(1 + sum)`.
    pub(crate) fn ln_1p(&self) -> f64 {
        let log = self.ln();
        if log > 36.0 { log } else { log.exp().ln_1p() }
    }
}

/// a + b, rounded up: what rounding lost is known exactly (Knuth).
pub(crate) fn add_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let rounded = sum - a;
    let lost = (a - (sum - rounded)) + (b - rounded);
    if lost > 0.0 { sum.next_up() } else { sum }
}

/// a/b for positive numbers, rounded up.
pub(crate) fn divide_up(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if quotient.mul_add(b, -a) < 0.0 { quotient.next_up() } else { quotient }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_quotients_are_never_below_the_truth() {
        assert_eq!(add_up(0.0, 0.1), 0.1);
        assert_eq!(add_up(0.1, 0.1), 0.2);
        assert_eq!(add_up(1.0, f64::MIN_POSITIVE), 1.0f64.next_up());
        // To the nearest it would be 0.7999999999999999.
        assert_eq!(add_up(0.1, 0.7), 0.8);
        assert_eq!(divide_up(2.0, 4.0), 0.5);
        // To the nearest a third is rounded down.
        assert_eq!(divide_up(1.0, 3.0), (1.0f64 / 3.0).next_up());
        assert_eq!(divide_up(1.0, 5.0), 0.2);
    }

    #[test]
    fn log_sums() {
        let mut sum = LogSum::new();
        assert_eq!(sum.ln(), f64::NEG_INFINITY);
        for term in [1.0f64, 3.0, 2.0] {
            sum.add(term.ln());
        }
        assert!((sum.ln() - 6f64.ln()).abs() < 1e-15);
        sum.add(1e6);
        assert_eq!(sum.ln(), 1e6);
        assert_eq!(sum.ln_1p(), 1e6);
        assert!((log_mix_exp(0.3, 2.0) - (0.7 + 0.3 * 2f64.exp()).ln()).abs() < 1e-15);
        assert!((log_mix_exp(0.3, 40.0) - (40.0 + 0.3f64.ln())).abs() < 1e-14);
        assert!((log_exp_m1(1e-9) - 1e-9f64.ln()).abs() < 1e-8);
    }
}
