//! tmp
use semidp_accounting::*;
fn n(z: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(z).unwrap()
}
#[test]
fn show() {
    let (e, d) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap());
    let f = GaussianFilter::new(e, d).unwrap();
    println!("{:?}", f);
    let poisson = |z: f64, q: f64, t: u64| {
        vec![CountedEvent::new(
            Event::PoissonGaussian { noise_multiplier: n(z), sample_rate: SampleRate::new(q).unwrap() },
            Steps::new(t).unwrap(),
        )]
    };
    let lap = |z: f64, t: u64| {
        vec![CountedEvent::new(
            Event::Laplace { noise_multiplier: n(z), dimension: 1 },
            Steps::new(t).unwrap(),
        )]
    };
    let pure = |z: f64, t: u64| {
        vec![CountedEvent::new(Event::Pure { epsilon: Epsilon::new(z).unwrap() }, Steps::new(t).unwrap())]
    };
    for adj in [Adjacency::ReplaceOne, Adjacency::AddRemove] {
        for (name, ev, eps) in [
            ("attack", poisson(0.05, 9e-7, 1), 1.0),
            ("train", poisson(2.725, 0.0185, 5000), 2.28),
            ("train", poisson(2.725, 0.0185, 5000), 4.8),
            ("small", poisson(3.0, 0.01, 300), 1.0),
            ("one", poisson(10.0, 0.01, 1), 1.0),
            ("weak", poisson(1.0, 1e-4, 100000), 1.0),
            ("weak", poisson(0.5, 1e-5, 10000), 1.0),
            ("long", poisson(5.0, 1e-6, 10_000_000), 1.0),
            ("lap", lap(40.0, 1), 1.0),
            ("lap100", lap(400.0, 100), 1.0),
            ("pure", pure(0.1, 1), 1.0),
            ("pure", pure(0.01, 50), 1.0),
            ("mix", [poisson(3.0, 0.01, 300), lap(100.0, 3), poisson(2.0, 0.001, 300)].concat(), 1.0),
            ("zcdp", vec![CountedEvent::new(Event::Zcdp { rho: Rho::new(0.005).unwrap() }, Steps::ONE)], 1.0),
        ] {
            let f = GaussianFilter::new(Epsilon::new(eps).unwrap(), d).unwrap();
            let start = std::time::Instant::now();
            let c = f.charge(&ev, adj).unwrap();
            let tight = epsilon(&ev, adj, d).map(|a| a.value.get());
            println!(
                "{adj} {name} {:?} of {:?}: eps {:?} tight {:?}  {:.0} ms",
                c,
                f.budget(),
                c.map(|c| c.epsilon(d).unwrap().get()),
                tight,
                start.elapsed().as_secs_f64() * 1e3
            );
        }
    }
}
