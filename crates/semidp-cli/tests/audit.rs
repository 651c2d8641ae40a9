//! `semidp audit`: what is answered, what is drawn, what a broken promise does to a script, and what is refused. All
//! audits have a seed, so that they come out the same every time.

mod common;

use common::{Ran, entries, folder, json, number, refused, run};
use serde_json::Value;

const MEAN: &str = "audit mean --n-private 90 --n-public 10 --dim 5";
const REPORTS: &str = "audit randomizer --mechanism privunit --dim 20 --epsilon 2";
const TRAIN: &str = "audit train --n-private 300 --n-public 100 --dim 60 --epsilon 4 --delta 1e-5";
/// Runs that need no public rows.
const ALONE: &str = "--algorithm dp-sgd --n-public 0 --clip-norm 1 --learning-rate 0.1 --steps 10";
/// The tracing attack of reference.json.
const TRACING: &str = "audit mean --attack tracing --n-private 40 --n-public 10 --dim 10000";

/// What every audit answers, of a promise that is kept; the share of the claimed epsilon that was found.
fn check(answer: &Value) -> f64 {
    let (claimed, found) =
        (number(answer, "/claimed_epsilon"), number(answer, "/audited_epsilon_lower_bound"));
    assert!(found <= claimed, "{answer}");
    assert_eq!(answer["verdict"], "consistent");
    let bounds = answer["bounds"].as_array().unwrap();
    let best = bounds.iter().find(|bound| bound["method"] == answer["method"]).unwrap();
    assert_eq!(best["epsilon"], answer["audited_epsilon_lower_bound"]);
    assert!(bounds.iter().all(|bound| number(bound, "/epsilon") <= found));
    for kind in ["true", "false"] {
        let rate = number(answer, &format!("/{kind}_positive_rate"));
        let ends = [0, 1].map(|end| number(answer, &format!("/{kind}_positive_interval/{end}")));
        assert!(0.0 <= ends[0] && ends[0] <= rate && rate <= ends[1] && ends[1] <= 1.0, "{kind}: {answer}");
    }
    for field in ["/confidence", "/delta", "/trials", "/seed"] {
        number(answer, field);
    }
    assert_eq!((&answer["rows"], &answer["protects"]), (&"synthetic".into(), &"private rows only".into()));
    assert!(answer.get("plot").is_none());
    found / claimed
}

#[test]
fn means_of_every_law_are_audited() {
    // Of so few rows in so few columns Laplace noise is the better one.
    let auto = json(&format!("{MEAN} --epsilon 1 --delta 1e-5 --trials 1000"));
    check(&auto);
    assert_eq!(auto["estimator"], "weighted-laplace");
    let gaussian =
        json(&format!("{MEAN} --epsilon 1 --delta 1e-5 --estimator weighted-gaussian --trials 10000"));
    assert!(check(&gaussian) > 0.4, "{gaussian}");
    assert_eq!(gaussian["estimator"], "weighted-gaussian");
    assert_eq!(gaussian["adjacency"], "replace-one");
    assert_eq!(number(&gaussian, "/trials"), 10_000.0);
    assert_eq!((number(&gaussian, "/confidence"), number(&gaussian, "/delta")), (0.95, 1e-5));
    for name in ["laplace", "weighted-laplace", "k-norm", "weighted-k-norm"] {
        let pure = json(&format!("{MEAN} --epsilon 2 --estimator {name} --trials 2000"));
        assert!(check(&pure) > 0.3, "{pure}");
        assert_eq!((pure["estimator"].as_str(), number(&pure, "/delta")), (Some(name), 0.0));
    }
    check(&json(&format!("{MEAN} --rho 0.5 --trials 2000 --radius 7 --confidence 0.999999")));
    // Whoever reads no private row leaks nothing.
    let thrown = json(&format!("{MEAN} --epsilon 1 --estimator throw-away --trials 100"));
    assert_eq!((number(&thrown, "/claimed_epsilon"), &thrown["verdict"]), (0.0, &"consistent".into()));
    assert!(thrown["notes"][0].as_str().unwrap().contains("nothing can leak"));
}

#[test]
fn randomisers_are_audited() {
    for name in ["duchi", "rank-privunit", "privunit", "privunitg"] {
        let command = format!("audit randomizer --mechanism {name} --dim 20 --epsilon 2 --trials 10000");
        let answer = json(&command);
        assert!(check(&answer) > 0.7, "{answer}");
        assert_eq!((answer["mechanism"].as_str(), answer["trust"].as_str()), (Some(name), Some("local")));
    }
}

/// Float PrivUnit's low-order bits name the vector of one-hot rows; the default's do not. A broken claim is exit code 1.
#[test]
fn low_order_bits_are_attacked() {
    let command = |name: &str| {
        format!(
            "audit randomizer --attack low-bits --mechanism {name} --dim 100 --epsilon 1 --trials 3000 --confidence 0.999999999"
        )
    };
    for inputs in ["axis", "sparse", "dense"] {
        let answer = json(&format!("{} --inputs {inputs}", command("rank-privunit")));
        check(&answer);
        assert_eq!((answer["attack"].as_str(), answer["inputs"].as_str()), (Some("low-bits"), Some(inputs)));
    }
    check(&json(&command("duchi")));
    let ran = run(&format!("{} --json", command("privunit")));
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, answer["verdict"].as_str()), (1, Some("violated")), "{}", ran.stderr);
    assert!(number(&answer, "/audited_epsilon_lower_bound") > 3.0, "{answer}");
    refused(
        "audit randomizer --mechanism duchi --dim 2 --epsilon 1 --inputs axis",
        &["--inputs", "--attack"],
    );
    refused(
        &format!(
            "{} --attack low-bits --trials 999",
            "audit randomizer --mechanism duchi --dim 2 --epsilon 1"
        ),
        &["trials", "1000"],
    );
}

#[test]
fn training_is_audited() {
    let auto = json(&format!("{TRAIN} --trials 20"));
    assert!(check(&auto) > 0.1, "{auto}");
    assert_eq!((auto["algorithm"].as_str(), auto["loss"].as_str()), (Some("auto"), Some("logistic")));
    let everyone =
        "audit train --n-private 300 --dim 60 --epsilon 4 --delta 1e-5 --sampling none --trials 40";
    let everyone = json(&format!("{everyone} {ALONE}"));
    assert!(check(&everyone) > 0.2, "{everyone}");
    // The other adjacency, other losses, and reports instead of a curator.
    let secret = "audit train --n-private 300 --dim 60 --epsilon 4 --delta 1e-5 --adjacency add-remove --trials 20 \
                  --sample-rate 0.5 --expected-batch 150";
    let secret = json(&format!("{secret} {ALONE}"));
    check(&secret);
    assert_eq!(secret["adjacency"], "add-remove");
    for loss in ["squared", "softmax"] {
        check(&json(&format!("{TRAIN} --algorithm semi-dp-sgd --steps 10 --trials 10 --loss {loss}")));
    }
    let reports = json(
        "audit train --algorithm semi-ldp-sgd --n-private 300 --n-public 100 --dim 60 --epsilon 4 --trials 10",
    );
    check(&reports);
    assert_eq!(reports["trust"], "local");
    // Options that do nothing are named.
    let useless = json(&format!("{TRAIN} --algorithm semi-dp-sgd --steps 5 --trials 2 --schedule weighted"));
    assert!(useless["notes"][0].as_str().unwrap().contains("no effect on semi-dp-sgd: --schedule"));
}

/// reference.json, tracing_attack: private rows of the semi-DP mean are not found, all others are.
#[test]
fn rows_are_traced() {
    let answer = json(&format!("{TRACING} --rho 0.5"));
    check(&answer);
    assert!(number(&answer, "/true_positive_rate") <= 0.01);
    assert!(number(&answer, "/public_true_positive_rate") >= 0.99);
    assert!(number(&answer, "/false_positive_rate") <= 0.01);
    assert_eq!(answer["means"][0]["name"], "non-private");
    assert!(number(&answer, "/means/0/private/rate") >= 0.99);
    assert!(number(&answer, "/means/0/outsiders/rate") <= 0.01);
    // Where there is next to no noise private rows are found, too, and the promise says as much.
    let control = json(&format!("{TRACING} --rho 1e5"));
    assert!(number(&control, "/true_positive_rate") >= 0.99, "{control}");
    assert!(number(&control, "/false_positive_rate") <= 0.01, "{control}");
    assert!(number(&control, "/audited_epsilon_lower_bound") > 3.0, "{control}");
    check(&control);
    assert!(control["notes"].to_string().contains("a control of the attack"), "{control}");
    // Noise that is released, no public rows, the sharper threshold: half of the private rows are found.
    let alone =
        "audit mean --attack tracing --n-private 40 --n-public 0 --dim 10000 --rho 20 --threshold sharper";
    let alone = json(alone);
    check(&alone);
    assert!(number(&alone, "/true_positive_rate") > 0.3, "{alone}");
    assert!(number(&alone, "/false_positive_rate") < 0.02, "{alone}");
    assert!(alone["public_true_positive_rate"].is_null());
    // Noise for (epsilon, delta) is that of some rho, and claims that epsilon.
    let other = json(&format!("{TRACING} --epsilon 2 --delta 1e-6 --trials 2"));
    let claimed = number(&other, "/claimed_epsilon");
    assert!((1.999..=2.0).contains(&claimed), "{claimed}");
    // An attacker who has other rows instead of the mean.
    let estimated = json(&format!("{TRACING} --rho 0.5 --trials 2 --reference-rows 400"));
    assert!(number(&estimated, "/public_true_positive_rate") >= 0.9, "{estimated}");
    assert!(number(&estimated, "/true_positive_rate") <= 0.05, "{estimated}");
}

#[test]
fn the_seed_is_all_that_matters() {
    let audit = |extra: &str| run(&format!("{REPORTS} --trials 500 --json {extra}"));
    let once = audit("--seed 5 --threads 1");
    assert_eq!(once.stdout, audit("--seed 5 --threads 2").stdout);
    assert_ne!(once.stdout, audit("--seed 6").stdout);
    // Nothing private is at stake, so nothing is warned of.
    assert_eq!(once.stderr, "");
    let loud = run(&format!("{REPORTS} --trials 500 --seed 5"));
    assert!(loud.stderr.contains("no private row was read, and --seed loses no privacy"), "{}", loud.stderr);
    assert!(!loud.stderr.contains("NOT private"));
    assert_eq!(run(&format!("{REPORTS} --trials 500 --quiet")).stderr, "");
}

#[test]
fn the_tables_say_what_a_bound_means() {
    for (command, words) in [
        (format!("{MEAN} --epsilon 1 --delta 1e-5 --trials 500"), "claimed epsilon (replace-one)"),
        (format!("{TRACING} --rho 0.5 --trials 1"), "public rows"),
        (format!("{TRAIN} --trials 2"), "one-run"),
    ] {
        let ran = run(&command);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
        let spaced = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let meaning = "An audit can show that a promise is broken; it cannot show that it is kept.";
        assert!(spaced.ends_with(&format!("nothing contradicts the promise. {meaning}")), "{spaced}");
    }
    let traced = run(&format!("{TRACING} --rho 0.5 --trials 1"));
    assert!(traced.stderr.contains("the promise covers private rows"), "{}", traced.stderr);
}

/// At a confidence of next to nothing a kept promise is soon called broken, which shows what a script would see.
#[test]
fn a_broken_promise_does_not_pass_a_script() {
    let folder = folder("audit_broken");
    let plot = folder.join("broken.svg");
    let attack = |seed: u64, extra: &str| -> Ran {
        run(&format!("{REPORTS} --trials 200 --confidence 1e-6 --seed {seed} {extra}"))
    };
    let seed = (0..100).find(|seed| attack(*seed, "").code != 0).expect("one audit of many is wrong");
    let ran = attack(seed, &format!("--json --plot {}", plot.display()));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["verdict"], "violated");
    assert!(number(&answer, "/audited_epsilon_lower_bound") > number(&answer, "/claimed_epsilon"));
    assert!(plot.exists());
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines[0].starts_with("warning: ") && lines[0].contains("--confidence"), "{}", ran.stderr);
    assert!(lines[1].starts_with("error: ") && lines[1].ends_with("the promise is BROKEN"), "{}", ran.stderr);
    assert!(attack(seed, "").stdout.contains("BROKEN"));
}

#[test]
fn plots_show_the_attack_beside_the_promise() {
    let folder = folder("audit_plots");
    let plot = folder.join("roc.svg");
    for command in [
        format!("{REPORTS} --trials 500"),
        format!("{MEAN} --epsilon 1 --delta 1e-5 --trials 500"),
        format!("{TRAIN} --trials 4"),
        format!("{TRACING} --rho 0.5 --trials 1"),
    ] {
        let answer = json(&format!("{command} --plot {}", plot.display()));
        assert_eq!(answer["plot"].as_str(), plot.to_str());
        let drawn = std::fs::read_to_string(&plot).unwrap();
        assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"));
        for words in ["the attack", "the most that", "a coin", "false positive rate", "true positive rate"] {
            assert!(drawn.contains(words), "{command}: {words}");
        }
        std::fs::remove_file(&plot).unwrap();
    }
    // What is refused leaves nothing behind.
    refused(&format!("{REPORTS} --trials 3 --plot {}", plot.display()), &["trials"]);
    refused(&format!("{TRAIN} --trials 1 --plot {}", plot.display()), &["trials"]);
    assert_eq!(entries(&folder), Vec::<String>::new());
    refused(&format!("{REPORTS} --plot /dev/null/x"), &["--plot"]);
}

#[test]
fn bad_audits_are_refused() {
    let budget = "--epsilon 1 --delta 1e-5";
    let dimensions = "--n-private 90 --n-public 10";
    for (command, words) in [
        ("audit".to_string(), "command"),
        (format!("{MEAN} {budget} --trials 0"), "trials"),
        (format!("{MEAN} {budget} --trials 19"), "trials"),
        (format!("{MEAN} {budget} --trials some"), "trials"),
        (format!("{MEAN} {budget} --confidence 0"), "confidence"),
        (format!("{MEAN} {budget} --confidence 1"), "confidence"),
        (format!("{MEAN} {budget} --confidence nan"), "confidence"),
        (format!("{MEAN} {budget} --threads 0"), "threads"),
        (format!("{MEAN} {budget} --estimator median"), "does not exist"),
        (format!("{MEAN} --epsilon 1 --estimator gaussian"), "estimator"),
        (format!("{MEAN} --epsilon 0 --delta 1e-5"), "epsilon"),
        (format!("{MEAN} --epsilon -1 --delta 1e-5"), "epsilon"),
        (format!("{MEAN} --epsilon 1 --delta 2"), "delta"),
        (format!("{MEAN} --epsilon 1 --rho 1"), "--rho"),
        (MEAN.to_string(), "--epsilon"),
        (format!("{MEAN} {budget} --radius 0"), "radius"),
        (format!("{MEAN} {budget} --adjacency add-remove"), "adjacency"),
        (format!("{MEAN} {budget} --trust local"), "trust"),
        (format!("{MEAN} {budget} --attack luck"), "luck"),
        (format!("{MEAN} {budget} --threshold paper"), "--threshold"),
        (format!("{MEAN} {budget} --reference-rows 9"), "--reference-rows"),
        (format!("audit mean --n-private 0 --n-public 10 --dim 5 {budget}"), "n-private"),
        (format!("audit mean {dimensions} --dim 0 {budget}"), "dim"),
        (format!("audit mean {dimensions} --dim 9007199254740992 {budget}"), "dim"),
        (format!("{TRACING} --epsilon 1"), "delta"),
        (format!("{TRACING} --rho 1 --radius 2"), "--radius"),
        (format!("{TRACING} --rho 1 --estimator laplace"), "estimator"),
        (format!("{TRACING} --rho 1 --reference-rows 1"), "reference-rows"),
        (
            "audit mean --attack tracing --n-private 9007199254740992 --n-public 1 --dim 9 --rho 1".into(),
            "n-private",
        ),
        ("audit randomizer --mechanism laplace --dim 3 --epsilon 1".into(), "--mechanism"),
        ("audit randomizer --mechanism duchi --dim 0 --epsilon 1".into(), "dim"),
        ("audit randomizer --mechanism duchi --dim 3 --epsilon 0".into(), "epsilon"),
        ("audit randomizer --mechanism duchi --dim 3 --epsilon 51".into(), "epsilon"),
        ("audit randomizer --mechanism duchi --dim 3".into(), "--epsilon"),
        (format!("{TRAIN} --algorithm magic"), "algorithm"),
        (format!("{TRAIN} --algorithm throw-away"), "algorithm"),
        (format!("{TRAIN} --algorithm non-private"), "algorithm"),
        (format!("{TRAIN} --loss love"), "loss"),
        (format!("{TRAIN} --domain mars"), "domain"),
        (format!("{TRAIN} --trials 1"), "trials"),
        (format!("{TRAIN} --sample-rate 2"), "sample-rate"),
        (format!("{TRAIN} --adjacency add-remove"), "sample-rate"),
        (format!("audit train {dimensions} --dim 3 {budget}"), "dim"),
        (format!("audit train {dimensions} --dim 40"), "--epsilon"),
        (format!("audit train --n-private 90 --n-public 2 --dim 40 {budget}"), "n-public"),
        (format!("audit train --n-private 1 --n-public 0 --dim 40 {budget}"), "n-private"),
        (format!("audit train --n-private 10000001 --n-public 0 --dim 40 {budget}"), "n-private"),
        (
            format!("audit train --algorithm dp-sgd --n-private 90 --n-public 0 --dim 40 {budget}"),
            "clip-norm",
        ),
        (format!("audit train --algorithm dp-sgd {dimensions} --dim 40 --epsilon 1"), "delta"),
    ] {
        refused(&command, &[words]);
    }
}
