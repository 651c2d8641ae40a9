//! dbg
use semidp_accounting::accountant::*;
use semidp_accounting::*;
fn main() {
    let a: Vec<f64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    for step in [None, Some(1e-4), Some(5e-5)] {
        let mut acc = PldAccountant::with_options(Adjacency::AddRemove, PldOptions { fixed_step: step, ..Default::default() });
        acc.compose(&Event::PoissonGaussian { noise_multiplier: NoiseMultiplier::new(a[1]).unwrap(), sample_rate: SampleRate::new(a[0]).unwrap() }, Steps::new(a[2] as u64).unwrap()).unwrap();
        println!("{step:?} {:?}", acc.directional_delta(Epsilon::new(a[3]).unwrap(), false));
    }
}
