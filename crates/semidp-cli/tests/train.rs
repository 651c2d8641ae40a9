//! `semidp train`: what it answers, for every kind of target, algorithm, sampling and option.

mod common;
mod rows;

use common::{json, number, refused, run};
use rows::{Files, Target, hyper, rows};
use semidp::train::{ALGORITHMS, Algorithm, PrivateUse};
use semidp_accounting::Trust;
use serde_json::{Value, json};

#[test]
fn the_answer_has_what_programs_rely_on() {
    let files = Files::new("train_contract", Target::Number);
    let answer = json(&format!("{} --task regression --certificate {}", files.paid(), files.path("c.json")));
    assert_eq!((&answer["algorithm"], &answer["task"]), (&json!("optimal-gain"), &json!("regression")));
    assert_eq!((&answer["target"], &answer["loss"]), (&json!("y"), &json!("squared")));
    assert_eq!((&answer["public_rows"], &answer["notes"]), (&json!(60), &json!([])));
    assert!(number(&answer, "/epsilon") <= 4.0 && number(&answer, "/epsilon") > 3.9);
    assert_eq!((&answer["adjacency"], &answer["other_adjacency"]), (&json!("replace-one"), &Value::Null));
    let metrics = &answer["public_metrics"];
    assert!(number(metrics, "/r2") > 0.8 && number(metrics, "/rmse") > 0.0 && number(metrics, "/mae") > 0.0);
    assert_eq!(metrics["rows"], 60);
    let sources = ["user", "public data", "theory", "default", "calibration", "released gradients"];
    for (name, entry) in answer["hyperparameters"].as_object().unwrap() {
        assert!(sources.contains(&entry["source"].as_str().unwrap()), "{name}: {entry}");
    }
    // The certificate is the same everywhere, and holds.
    let certificate = &answer["certificate"];
    assert_eq!(certificate["arithmetic"], "exact");
    assert_eq!(certificate["random_source"], "operating-system");
    assert_eq!(certificate["releases"], 20);
    assert!(certificate.get("not_covered").is_none());
    assert_eq!(files.json("c.json"), *certificate);
    assert_eq!(files.json("model.json")["certificate"], *certificate);
    files.write("answer.json", &answer.to_string());
    for name in ["c.json", "model.json", "answer.json"] {
        assert_eq!(json(&format!("verify {}", files.path(name)))["valid"], true, "{name}");
    }
    let ran = run(&files.paid());
    assert!(
        ran.stdout.contains("public data") && ran.stdout.contains("Certificate: epsilon"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("y is taken as regression"), "{}", ran.stderr);
    assert_eq!(run(&format!("{} --quiet", files.paid())).stderr, "");
}

#[test]
fn every_kind_of_target() {
    for (name, target, classes, loss) in [
        ("train_two", Target::TwoWords, &["no", "yes"][..], "logistic"),
        ("train_bit", Target::Bit, &["0", "1"], "logistic"),
        ("train_three", Target::ThreeWords, &["low", "mid", "top"], "softmax"),
        ("train_one_to_three", Target::OneToThree, &["1", "2", "3"], "softmax"),
    ] {
        let files = Files::new(name, target);
        let answer = json(&format!("{} --task classification", files.train()));
        assert_eq!((&answer["classes"], &answer["loss"]), (&json!(classes), &json!(loss)), "{name}");
        let found = files.evaluate();
        assert!(number(&found, "/metrics/accuracy") > 0.75, "{name}: {found}");
        // The class in the middle is not one that lines tell from both others.
        let least = if classes.len() == 2 { 0.9 } else { 0.75 };
        assert!(number(&found, "/metrics/auc") > least, "{name}: {found}");
        assert_eq!(found["rows"], 300);
    }
    let files = Files::new("train_number", Target::Number);
    let answer = json(&files.train());
    assert_eq!(answer["notes"], json!(["--task was not given: y is taken as regression"]));
    assert!(number(&files.evaluate(), "/metrics/r2") > 0.9);
    refused(&format!("{} --task classification", files.paid()), &["target y", "classes"]);
    refused(&format!("{} --loss logistic", files.paid()), &["target y", "--task classification"]);
    let files = Files::new("train_wrong_task", Target::TwoWords);
    refused(&format!("{} --task regression", files.paid()), &["target y", "number"]);
    refused(&format!("{} --loss huber", files.paid()), &["target y", "number"]);
    refused(&format!("{} --loss cubic", files.paid()), &["loss", "softmax"]);
    for loss in ["hinge", "softmax"] {
        json(&format!("{} --loss {loss}", files.train()));
        assert!(number(&files.evaluate(), "/metrics/accuracy") > 0.8, "{loss}");
    }
    let files = Files::new("train_losses", Target::Number);
    for loss in ["huber", "huber:0.5", "quantile:0.4"] {
        assert_eq!(json(&format!("{} --loss {loss}", files.train()))["loss"], loss);
        assert!(number(&files.evaluate(), "/metrics/r2") > 0.7, "{loss}");
    }
}

/// Classes that single precision cannot tell apart, or has no name for.
#[test]
fn classes_far_from_nought_and_between_whole_numbers() {
    for (name, zero, one) in [("train_far", "20240101", "20240102"), ("train_between", "0.1", "0.3")] {
        let files = Files::new(name, Target::Bit);
        for file in ["public.csv", "private.csv", "test.csv"] {
            let text =
                files.text(file).replace(",0\n", &format!(",{zero}\n")).replace(",1\n", &format!(",{one}\n"));
            files.write(file, &text);
        }
        let answer = json(&format!("{} --task classification", files.train()));
        assert_eq!(answer["classes"], json!([zero, one]));
        let found = files.evaluate();
        assert!(number(&found, "/metrics/accuracy") > 0.8 && found["rows"] == 300, "{found}");
    }
}

/// The same bits from a seed whatever the threads; others from the operating system.
#[test]
fn a_seed_is_reproducible_and_loud() {
    let files = Files::new("train_seed", Target::TwoWords);
    let weights = |options: &str| {
        let ran = run(&format!("{} {options}", files.paid()));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("NOT private"), options.contains("seed"), "{}", ran.stderr);
        (files.text("model.json"), ran.stdout)
    };
    let first = weights("--seed 7 --threads 1");
    assert_eq!(first, weights("--seed 7 --threads 2"));
    assert!(first.0.contains("\"seeded\"") && first.1.contains("NOT private"));
    assert_ne!(first.0, weights("--seed 8").0);
    assert_ne!(weights("").0, weights("").0);
}

#[test]
fn every_algorithm_and_sampling() {
    let files = Files::new("train_ways", Target::TwoWords);
    let is_curated =
        |one: &&dyn Algorithm| one.private_use() == PrivateUse::Budgeted && one.trust() == Trust::Central;
    let spending = ALGORITHMS.into_iter().filter(is_curated);
    let samplings = [
        ("poisson", "poisson-gaussian"),
        ("fixed-size", "fixed-size-gaussian"),
        ("one-pass", "one-pass-gaussian"),
        ("none", "gaussian"),
    ];
    for (algorithm, (sampling, event)) in spending
        .flat_map(|one| samplings.map(|sampling| (one.name(), sampling)))
        // Plain DP-SGD is too weak for twenty small batches.
        .filter(|(name, (sampling, _))| *name != "dp-sgd" || !["one-pass", "fixed-size"].contains(sampling))
    {
        let answer = json(&format!("{} --algorithm {algorithm} --sampling {sampling}", files.train()));
        // The autopilot tells what it chose.
        assert_eq!(answer["algorithm"], if algorithm == "auto" { "optimal-gain" } else { algorithm });
        assert_eq!(answer["certificate"]["events"][0]["event"], event);
        assert_eq!(hyper(&answer, "sampling"), (json!(sampling), "user".into()));
        let epsilon = number(&answer, "/epsilon");
        assert!((3.9..=4.0).contains(&epsilon), "{algorithm} {sampling}: {epsilon}");
        assert_eq!(json(&format!("verify --allow-seeded {}", files.path("model.json")))["valid"], true);
        assert!(number(&files.evaluate(), "/metrics/accuracy") > 0.75, "{algorithm} {sampling}");
    }
    // The list of names is that of the registry, where one is missing and where one asks for help.
    let names: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name()).collect();
    refused(&format!("{} --algorithm magic", files.paid()), &[&["algorithm"], &names[..]].concat());
    let help = run("train --help").stdout;
    assert!(names.iter().all(|name| help.contains(name)), "{help}");
}

/// A budget in rho takes one pass, which weighs each step for itself; sampling would not amplify it.
#[test]
fn budgets_in_rho() {
    let files = Files::new("train_rho", Target::Number);
    let by_default = json(&format!("{} --rho 0.5", files.unpaid()));
    assert_eq!(hyper(&by_default, "sampling"), (json!("none"), "theory".into()));
    let answer = json(&format!("{} --rho 0.5 --algorithm semi-dp-sgd", files.unpaid()));
    assert!(number(&answer, "/rho") <= 0.5 && number(&answer, "/certificate/guarantee/rho") > 0.499);
    assert_eq!(hyper(&answer, "sampling"), (json!("one-pass"), "default".into()));
    assert_eq!(hyper(&answer, "blocks"), (json!(20), "user".into()));
    assert_eq!(hyper(&answer, "alpha_rule").0, "per-step");
    refused(&format!("{} --rho 0.5 --sampling poisson", files.unpaid()), &["sampling", "one-pass", "rho"]);
    refused(&format!("{} --rho 0.5 --epsilon 1", files.unpaid()), &["--rho", "--epsilon"]);
    refused(&format!("{} --epsilon 1", files.unpaid()), &["delta must be given"]);
    refused(&files.unpaid(), &["--epsilon", "--rho"]);
    // A batch that does not divide the rows is rounded, and then not the user's.
    let answer = json(&format!(
        "{} --rho 0.5 --expected-batch 400 --steps 2",
        files.unpaid().replace(" --steps 20", "")
    ));
    assert_eq!(hyper(&answer, "expected_batch"), (json!(450.0), "theory".into()));
}

/// A single step must not end where it began: the private rows were paid for.
#[test]
fn one_step_counts() {
    let files = Files::new("train_one_step", Target::Number);
    let base = files.unpaid().replace("--steps 20", "--steps 1");
    let trained = |algorithm: &str, seed: u64| {
        files.write("private.csv", &rows(900, Target::Number, seed));
        let answer = json(&format!("{base} --rho 0.5 --seed 1 --algorithm {algorithm}"));
        assert_eq!(hyper(&answer, "steps").0, 1);
        files.json("model.json")["weights"].clone()
    };
    for algorithm in ["semi-dp-sgd", "optimal-gain"] {
        assert_ne!(trained(algorithm, 2), trained(algorithm, 9), "{algorithm}");
    }
}

fn weights(files: &Files) -> Vec<f64> {
    files.json("model.json")["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect()
}

/// Models stay in their domain, wherever they start and whichever iterates are averaged.
#[test]
fn domains_hold() {
    let files = Files::new("train_domains", Target::Number);
    for start in ["none", "minimum", "ridge"] {
        for average in ["last", "mean", "tail", "weighted"] {
            let train = |domain: &str| {
                json(&format!(
                    "{} --warm-start {start} --average {average} --domain {domain}",
                    files.train()
                ));
                weights(&files)
            };
            let ball = train("ball:0.25");
            assert!(ball.iter().map(|w| w * w).sum::<f64>().sqrt() <= 0.25 + 1e-9, "{start} {average}");
            assert!(
                train("box:0.1:0.3").iter().all(|w| (0.1 - 1e-12..=0.3 + 1e-12).contains(w)),
                "{start} {average}"
            );
            let simplex = train("simplex:1");
            assert!((simplex.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{start} {average}: {simplex:?}");
        }
    }
    for domain in ["ball:-1", "ball", "cube:1", "box:1:0"] {
        refused(&format!("{} --domain {domain}", files.paid()), &["domain"]);
    }
}

#[test]
fn ridges_shrink_and_never_diverge() {
    let files = Files::new("train_l2", Target::Number);
    let length = |options: &str| {
        json(&format!("{} {options}", files.train()));
        weights(&files).iter().map(|w| w * w).sum::<f64>().sqrt()
    };
    let free = length("");
    assert!(length("--l2 1") < free && length("--l2 1000") < 0.1 * free);
    refused(&format!("{} --l2 -1", files.paid()), &["l2", ">= 0"]);
    // A step that overflows whatever the private rows are is refused before the debit.
    let before = files.text("model.json");
    refused(&format!("{} --learning-rate 1e300", files.paid()), &["learning-rate", "overflows"]);
    assert_eq!(files.text("model.json"), before);
}

#[test]
fn the_weight_of_private_rows() {
    let files = Files::new("train_alpha", Target::Number);
    for rule in ["per-step", "horizon", "by-direction"] {
        let answer = json(&format!("{} --alpha {rule}", files.train()));
        assert_eq!(hyper(&answer, "alpha_rule"), (json!(rule), "user".into()));
        let (alpha, source) = hyper(&answer, "alpha");
        assert!(alpha.as_f64().unwrap() > 0.01 && alpha.as_f64().unwrap() < 1.0 && source == "public data");
    }
    // One public row does not vary, which is no reason to believe it.
    for rule in ["per-step", "horizon"] {
        let answer = json(&format!("{} --alpha {rule} --public-batch 1 --warm-start none", files.train()));
        assert!(hyper(&answer, "alpha").0.as_f64().unwrap() > 0.1, "{}", answer["hyperparameters"]);
    }
    let answer = json(&format!("{} --alpha 0.25 --public-gradient rescale", files.train()));
    assert_eq!(hyper(&answer, "alpha"), (json!(0.25), "user".into()));
    assert_eq!(hyper(&answer, "public_gradient"), (json!("rescale"), "user".into()));
    let answer = json(&format!("{} --alpha 0", files.train()));
    assert!(answer["notes"].to_string().contains("throw-away costs nothing"), "{}", answer["notes"]);
    refused(&format!("{} --alpha 1.5", files.paid()), &["alpha", "0 to 1"]);
    refused(&format!("{} --alpha best", files.paid()), &["alpha", "horizon"]);
}

/// What is said about a hyper-parameter is so.
#[test]
fn sources_are_true() {
    let files = Files::new("train_sources", Target::Number);
    let answer = json(&format!(
        "{} --clip-norm 0.5 --sample-rate 0.1 --learning-rate 0.2 --public-batch 7 --average mean --l2 0.01 --warm-start",
        files.train()
    ));
    for (name, value) in [
        ("clip_norm", json!(0.5)),
        ("sample_rate", json!(0.1)),
        ("learning_rate", json!(0.2)),
        ("public_batch", json!(7)),
        ("average", json!("mean")),
        ("l2", json!(0.01)),
        ("warm_start", json!("ridge")),
        ("steps", json!(20)),
    ] {
        assert_eq!(hyper(&answer, name), (value, "user".into()), "{name}");
    }
    assert_eq!(hyper(&answer, "expected_batch").0, 90.0);
    let answer = json(&format!("{} --algorithm semi-dp-sgd", files.train()));
    for (name, source) in [
        ("clip_norm", "public data"),
        ("learning_rate", "public data"),
        ("ridge", "public data"),
        ("sample_rate", "theory"),
        ("expected_batch", "theory"),
        ("noise_multiplier", "calibration"),
        ("warm_start", "default"),
    ] {
        assert_eq!(hyper(&answer, name).1, source, "{name}");
    }
    // There are not so many public rows.
    let answer = json(&format!("{} --public-batch 500", files.train()));
    assert_eq!(hyper(&answer, "public_batch"), (json!(60), "default".into()));
    // What has no effect is said to have none, and is nobody's choice.
    let answer = json(&format!("{} --algorithm dp-sgd --alpha 0.5 --learning-rate 0.3", files.train()));
    assert_eq!(hyper(&answer, "warm_start"), (json!("none"), "default".into()));
    assert!(answer["notes"].to_string().contains("no effect on dp-sgd: --alpha\""));
    assert_eq!(hyper(&answer, "learning_rate"), (json!(0.3), "user".into()));
    assert!(hyper(&answer, "learning_rate_unit").0.as_str().unwrap().contains("over the clip norm"));
    let answer = json(&format!("{} --algorithm dp-sgd --warm-start minimum", files.train()));
    assert_eq!(hyper(&answer, "warm_start"), (json!("minimum"), "user".into()));
    let answer = json(&format!("{} --algorithm throw-away --clip-norm 1", files.train()));
    assert!(answer["notes"].to_string().contains("no effect on throw-away: --private, --clip-norm, --steps"));
    assert!(answer["hyperparameters"].get("clip_norm").is_none());
}

/// Sizes that contradict each other, or a sampling, are refused.
#[test]
fn batches_must_make_sense() {
    let files = Files::new("train_batches", Target::Number);
    for (options, words) in [
        ("--expected-batch 901", &["expected-batch", "private rows"][..]),
        ("--expected-batch 0", &["expected-batch"]),
        ("--sample-rate 1.5", &["sample-rate"]),
        ("--sampling none --sample-rate 0.5", &["sample-rate", "1"]),
        ("--sampling none --expected-batch 10", &["sample-rate", "1"]),
        ("--sampling fixed-size --sample-rate 0.5 --expected-batch 10", &["expected-batch"]),
        ("--sampling one-pass --expected-batch 100", &["steps", "one pass"]),
        ("--clip-norm 0", &["clip-norm"]),
        ("--learning-rate -1", &["learning-rate"]),
        ("--public-batch 0", &["public-batch"]),
        ("--threads 0", &["threads"]),
    ] {
        refused(&format!("{} {options}", files.paid()), words);
    }
    let answer = json(&format!("{} --sampling none --expected-batch 900", files.train()));
    assert_eq!(hyper(&answer, "expected_batch"), (json!(900.0), "user".into()));
    // More batches than rows: one row each.
    let answer = json(&format!("{} --sampling one-pass --sample-rate 0.0001", files.train()));
    assert_eq!(hyper(&answer, "expected_batch").0, 1.0);
}

/// Fewer public rows than features: private rows still teach what public ones have not shown.
#[test]
fn few_public_rows() {
    let files = Files::new("train_few", Target::TwoWords);
    files.write("private.csv", &rows(4000, Target::TwoWords, 2));
    for count in [4, 8, 12] {
        files.write("public.csv", &rows(count, Target::TwoWords, 5));
        let accuracy = |options: &str| {
            let answer = json(&format!("{} --steps 200 {options}", files.train().replace(" --steps 20", "")));
            (number(&files.evaluate(), "/metrics/accuracy"), answer)
        };
        let (best, chosen) = accuracy("");
        assert_eq!(chosen["algorithm"], if count < 10 { "semi-dp-sgd" } else { "optimal-gain" });
        let (semi, answer) = accuracy("--algorithm semi-dp-sgd");
        assert_eq!(hyper(&answer, "alpha_rule"), (json!("horizon"), "theory".into()));
        let (plain, _) = accuracy("--algorithm dp-sgd");
        assert!(semi > plain - 0.03 && semi > 0.85, "{count}: {semi} {plain}");
        assert!(best > plain - 0.03 && best > 0.85, "{count}: {best} {plain}");
        if count < 10 {
            assert_eq!(hyper(&answer, "ridge"), (json!(1.0), "default".into()));
        }
    }
    // An exact fit teaches no clip norm.
    let files = Files::new("train_exact", Target::Number);
    files.write("public.csv", &rows(4, Target::Number, 5));
    refused(&format!("{} --warm-start minimum", files.paid()), &["clip-norm", "fitted exactly"]);
    let one = format!("{} --columns colour", files.paid());
    files.write("public.csv", &rows(1, Target::Number, 5));
    refused(&one, &["clip-norm", "fitted exactly"]);
    refused(&files.paid(), &["clip-norm"]);
}

/// Public features three standard deviations off: the released gradients show it, and the answer says that what was predicted from public
/// rows does not hold. What the prediction takes for granted stands beside it in any case.
#[test]
fn doubted_public_rows_take_back_their_prediction() {
    let folder = common::folder("train_doubted");
    let even = |i: usize, by: usize| ((i * by) % 101) as f64 / 29.0 - 1.74;
    let table = |count: usize, moved: f64, sign: f64| {
        (0..count).fold("a,b,y\n".to_string(), |text, i| {
            let (a, b) = (even(i, 37) + moved, even(i, 11) + moved);
            text + &format!("{a},{b},{}\n", sign * (a + b) + even(i, 53))
        })
    };
    std::fs::write(folder.join("p.csv"), table(5050, 0.0, 1.0)).unwrap();
    for (moved, sign, is_doubted) in [(0.0, 1.0, false), (3.0, -1.0, true)] {
        std::fs::write(folder.join("q.csv"), table(202, moved, sign)).unwrap();
        let answer = json(&format!(
            "train --private {0}/p.csv --public {0}/q.csv --target y --epsilon 1 --delta 1e-6 --seed 3 --out {0}/{sign}.json",
            folder.display()
        ));
        assert_eq!(
            hyper(&answer, "predicted_excess_assumes").0,
            json!("public and private rows come from the same population")
        );
        let verdict = hyper(&answer, "public_data").0;
        assert_eq!(verdict.as_str().unwrap().starts_with("doubted"), is_doubted, "{verdict}");
        assert_eq!(
            answer["notes"].to_string().contains("predicted-excess"),
            is_doubted,
            "{}",
            answer["notes"]
        );
    }
}
