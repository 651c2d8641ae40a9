//! Exact intervals for a rate, by the incomplete beta function.

/// P(B ≤ x) for B ~ Beta(a, b) with a, b > 0: the regularised incomplete beta function.
pub fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The continued fraction converges fast below the mean.
    if x <= (a + 1.0) / (a + b + 2.0) {
        log_front(a, b, x).exp() * fraction(a, b, x) / a
    } else {
        1.0 - log_front(b, a, 1.0 - x).exp() * fraction(b, a, 1.0 - x) / b
    }
}

/// ln of x^a (1−x)^b / B(a, b).
fn log_front(a: f64, b: f64, x: f64) -> f64 {
    a * x.ln() + b * (-x).ln_1p() - log_beta(a, b)
}

/// ln B(a, b). Differences of logarithms of Γ lose digits where one argument is large, so Stirling's formula is subtracted
/// by hand there.
fn log_beta(a: f64, b: f64) -> f64 {
    let (small, large) = if a <= b { (a, b) } else { (b, a) };
    if large < 20.0 {
        return libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    }
    let sum = small + large;
    // ln Γ(large) − ln Γ(sum), without the large parts that cancel.
    let difference = correction(large) - correction(sum)
        + (large - 0.5) * -(small / large).ln_1p()
        + small * (1.0 - sum.ln());
    let own = if small < 20.0 {
        libm::lgamma(small)
    } else {
        (small - 0.5) * small.ln() - small + 0.5 * (2.0 * std::f64::consts::PI).ln() + correction(small)
    };
    own + difference
}

/// ln Γ(x) − [(x − ½) ln x − x + ½ ln 2π] for x ≥ 20.
fn correction(x: f64) -> f64 {
    let square = 1.0 / (x * x);
    (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x
}

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let safe = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / safe(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    // It takes about the root of the larger argument; the limit is only there to end whatever happens.
    for step in 1..100_000u32 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / safe(1.0 + even * d);
        c = safe(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / safe(1.0 + odd * d);
        c = safe(1.0 + odd / c);
        let factor = d * c;
        result *= factor;
        if (factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    result
}

/// The interval of rates for which neither so many hits or more, nor so many or fewer, has a chance below `miss`
/// (Clopper and Pearson 1934). Everything is possible if nothing was counted.
pub fn clopper_pearson(hits: u64, count: u64, miss: f64) -> (f64, f64) {
    let hits = hits.min(count);
    (lower_end(hits, count, miss), 1.0 - lower_end(count - hits, count, miss))
}

/// The p with P(Bin(count, p) ≥ hits) = miss.
fn lower_end(hits: u64, count: u64, miss: f64) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    let (a, b) = (hits as f64, (count - hits) as f64 + 1.0);
    let (mut low, mut high) = (0.0, 1.0);
    // Below half a unit in the last place nothing changes any more.
    while high - low > 1e-16 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if incomplete_beta(a, b, middle) < miss {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
