//! `semidp account`.

mod common;

use common::{check_refusal, entries, folder, json, number, refused, run, run_with_input};
use serde_json::{Value, json};

const SAMPLED: &str = "account --noise-multiplier 2.744 --sample-rate 0.018518518518518517 --steps 5000";

#[test]
fn answers_epsilon_with_everything_that_gives_it_meaning() {
    let answer = json(&format!("{SAMPLED} --delta 1e-5"));
    // spec A, erratum 6: the paper's noise for "epsilon 2" at public share 0.1 costs 4.15.
    assert!((number(&answer, "/epsilon") - 4.148).abs() < 0.003);
    assert_eq!(number(&answer, "/delta"), 1e-5);
    for (field, expected) in [
        ("adjacency", json!("replace-one")),
        ("sampling", json!("poisson")),
        ("trust", json!("central")),
        ("protects", json!("private rows only")),
        ("mechanism", json!("gaussian")),
        ("noise_multiplier", json!(2.744)),
        ("sample_rate", json!(0.018518518518518517)),
        ("steps", json!(5000)),
        ("rho", Value::Null),
        ("arithmetic", json!("idealised")),
    ] {
        assert_eq!(answer[field], expected, "{field}");
    }
    assert_eq!(answer["accountants"]["pld"], answer["epsilon"]);
    assert!(number(&answer, "/accountants/rdp") > number(&answer, "/epsilon"));
    assert_eq!(answer["other_adjacency"]["adjacency"], "add-remove");
    assert!((number(&answer, "/other_adjacency/epsilon") - 1.9836).abs() < 1e-3);
    let certificate = &answer["certificate"];
    assert_eq!(certificate["guarantee"]["epsilon"], answer["epsilon"]);
    assert_eq!(certificate["guarantee"]["protects"], "private rows only");
    assert_eq!(certificate["random_source"], "none");
    let sources = certificate["hyperparameters"].as_array().unwrap();
    assert!(sources.iter().all(|one| one["source"] == "user"));
    assert!(sources.iter().any(|one| one["name"] == "noise_multiplier" && one["value"] == 2.744));
}

#[test]
fn answers_delta_for_an_epsilon_and_leads_back() {
    let answer = json(&format!("{SAMPLED} --epsilon 4.2 --adjacency replace-one"));
    let delta = number(&answer, "/delta");
    assert!(delta < 1e-5 && delta > 5e-6, "{delta}");
    assert!((number(&answer, "/accountants/pld") / delta - 1.0).abs() < 2e-3);
    assert!(number(&answer, "/accountants/rdp") > delta);
    assert_eq!(answer["other_adjacency"]["adjacency"], "add-remove");
    assert!(number(&answer, "/other_adjacency/delta") < delta);
    assert!(answer["other_adjacency"].get("epsilon").is_none());
    assert_eq!(answer["certificate"]["guarantee"]["delta"], answer["delta"]);
    assert!(number(&answer, "/certificate/guarantee/epsilon") <= 4.2);
    // Far out delta is too small for any number, but it is not 0: Gaussian noise is never pure.
    let far = json("account --noise-multiplier 100 --steps 1 --epsilon 10");
    assert!(number(&far, "/delta") > 0.0 && number(&far, "/accountants/pld") > 0.0);
    let back = json(&format!("{SAMPLED} --delta {delta}"));
    assert!((number(&back, "/epsilon") - 4.2).abs() < 1e-3);
}

#[test]
fn sampling_follows_the_sample_rate_unless_it_is_given() {
    let with =
        |options: &str| json(&format!("account --noise-multiplier 5 --steps 3 --delta 1e-5 {options}"));
    assert_eq!(with("--sample-rate 0.1")["sampling"], "poisson");
    assert_eq!(with("")["sampling"], "none");
    assert_eq!(with("--sample-rate 1")["sampling"], "none");
    assert_eq!(with("--sample-rate 1 --sampling poisson")["epsilon"], with("")["epsilon"]);
    assert_eq!(with("--sampling none")["sample_rate"], 1.0);
}

#[test]
fn unsampled_noise_has_a_rho_and_one_pass_does_not_compose() {
    let one = json("account --noise-multiplier 4 --steps 1 --delta 1e-5");
    assert!((number(&one, "/rho") - 0.125).abs() < 1e-15);
    let pass = json("account --noise-multiplier 4 --steps 100 --sampling one-pass --delta 1e-5");
    assert_eq!(pass["epsilon"], one["epsilon"]);
    assert_eq!(pass["steps"], 100);
    let added = json(
        "account --noise-multiplier 4 --steps 100 --sampling one-pass --delta 1e-5 --adjacency add-remove",
    );
    assert_eq!(added["other_adjacency"]["epsilon"], pass["epsilon"]);
    let many = json("account --noise-multiplier 4 --steps 4 --delta 1e-5");
    assert!((number(&many, "/rho") - 0.5).abs() < 1e-15);
    // spec B: rho = 0.5, delta = 1e-5, Gaussian.
    assert!((number(&many, "/epsilon") - 4.3772).abs() < 1e-4);
}

#[test]
fn the_other_adjacency_is_null_with_a_reason_where_it_has_no_meaning() {
    for (options, reason) in [
        ("--sampling fixed-size --sample-rate 0.1", "secret"),
        ("--sampling one-pass", "index"),
        ("--noise-multiplier 0.08", "above 200"),
    ] {
        let noise = if options.contains("noise") { "" } else { "--noise-multiplier 5" };
        let adjacency = if options.contains("noise") { "add-remove" } else { "replace-one" };
        let answer =
            json(&format!("account --steps 1 --delta 1e-5 --adjacency {adjacency} {noise} {options}"));
        assert_eq!(answer["other_adjacency"], Value::Null, "{options}");
        assert!(answer["other_adjacency_note"].as_str().unwrap().contains(reason), "{answer}");
    }
}

#[test]
fn laplace_and_k_norm_answer_pure_epsilon() {
    for mechanism in ["laplace", "k-norm --dimension 10"] {
        let base = format!("account --mechanism {mechanism} --noise-multiplier 4 --steps 3");
        let pure = json(&base);
        assert_eq!((number(&pure, "/epsilon"), number(&pure, "/delta")), (1.5, 0.0));
        assert_eq!(pure["accountants"], json!({"pld": null, "rdp": null, "pure": 1.5}));
        assert_eq!(pure["other_adjacency"], json!({"adjacency": "add-remove", "epsilon": 0.75}));
        let single = json(&format!("{} --delta 1e-3", base.replace("steps 3", "steps 1")));
        assert!(number(&single, "/epsilon") < 0.5 && number(&single, "/accountants/pld") > 0.0);
        assert_eq!(json(&format!("{base} --epsilon 1.5"))["delta"], 0.0);
    }
}

#[test]
fn a_file_of_events_is_accounted_for() {
    let folder = folder("account-events");
    let path = folder.join("events.json");
    let text = r#"[{"event":"poisson-gaussian","noise_multiplier":1,"sample_rate":0.01,"count":100}]"#;
    std::fs::write(&path, text).unwrap();
    let from_file = json(&format!("account --delta 1e-5 --events {}", path.display()));
    let direct = json("account --delta 1e-5 --noise-multiplier 1 --sample-rate 0.01 --steps 100");
    for field in ["epsilon", "sampling", "steps", "other_adjacency", "accountants"] {
        assert_eq!(from_file[field], direct[field], "{field}");
    }
    assert_eq!((&from_file["mechanism"], &from_file["noise_multiplier"]), (&json!("events"), &Value::Null));
    let piped = run_with_input("account --delta 1e-5 --events - --json", text);
    assert_eq!(serde_json::from_str::<Value>(&piped.stdout).unwrap()["epsilon"], direct["epsilon"]);

    let mixed = r#"[{"event":"gaussian","noise_multiplier":8},{"event":"pure","epsilon":0.1},
                    {"event":"one-pass-gaussian","noise_multiplier":9,"blocks":5}]"#;
    let mixed = run_with_input("account --delta 1e-5 --events - --json", mixed);
    let mixed: Value = serde_json::from_str(&mixed.stdout).unwrap();
    assert_eq!((&mixed["sampling"], &mixed["steps"]), (&json!("mixed"), &json!(7)));
    assert!(mixed["other_adjacency_note"].as_str().unwrap().contains("`pure`"));

    let pure = run_with_input("account --events - --json", r#"[{"event":"pure","epsilon":0.5,"count":2}]"#);
    assert_eq!(serde_json::from_str::<Value>(&pure.stdout).unwrap()["epsilon"], 1.0);
}

#[test]
fn bad_events_are_refused_by_position_and_field() {
    let command = "account --delta 1e-5 --events -";
    for (text, words) in [
        (
            r#"[{"event":"gaussian","noise_multiplier":1},{"event":"gaussian","noise":1}]"#,
            "event 1: unknown field `noise`",
        ),
        (r#"[{"event":"gaussian","noise_multiplier":1,"cuont":3}]"#, "unknown field `cuont`"),
        (r#"[{"event":"gausian","noise_multiplier":1}]"#, "gausian"),
        (r#"[{"event":"gaussian","noise_multiplier":-1}]"#, "noise-multiplier must be"),
        (r#"[{"event":"gaussian","noise_multiplier":1,"count":0}]"#, "steps must be"),
        ("[]", "empty"),
        ("{", "not a JSON list"),
    ] {
        check_refusal(text, &run_with_input(command, text), &["--events", words]);
    }
    let fixed = r#"[{"event":"fixed-size-gaussian","noise_multiplier":1,"sample_rate":0.1}]"#;
    let ran = run_with_input(&format!("{command} --adjacency add-remove"), fixed);
    check_refusal("fixed size", &ran, &["--events", "add-remove"]);
    let ran = run_with_input(&format!("{command} --trust local"), fixed);
    check_refusal("local", &ran, &["--trust local", "fixed-size-gaussian"]);
    refused("account --delta 1e-5 --events /no/such/file", &["--events", "/no/such/file"]);
    refused("account --delta 1e-5 --events - --steps 3", &["--events", "--steps"]);
    refused("account --delta 1e-5 --events - --noise-multiplier 3", &["--events", "--noise-multiplier"]);
}

#[test]
fn questions_that_cannot_be_answered_are_refused() {
    let full = "account --noise-multiplier 1 --steps 10 --delta 1e-5";
    for (arguments, words) in [
        ("account --noise-multiplier 1 --steps 10".into(), ["--delta", "--epsilon"]),
        (format!("{full} --epsilon 1"), ["--delta", "--epsilon"]),
        ("account --steps 10 --delta 1e-5".into(), ["--noise-multiplier", "must be given"]),
        ("account --noise-multiplier 1 --delta 1e-5".into(), ["--steps", "must be given"]),
        (format!("{full} --sampling poisson"), ["--sample-rate", "must be given"]),
        (format!("{full} --sampling fixed-size"), ["--sample-rate", "must be given"]),
        (format!("{full} --sampling none --sample-rate 0.5"), ["--sample-rate", "must be 1"]),
        (format!("{full} --sampling one-pass --sample-rate 0.5"), ["--sample-rate", "must be 1"]),
        (
            format!("{full} --sampling fixed-size --sample-rate 0.1 --adjacency add-remove"),
            ["--sampling", "replace-one"],
        ),
        (format!("{full} --mechanism laplace --sample-rate 0.1"), ["--mechanism laplace", "--sampling none"]),
        (format!("{full} --mechanism gaussian --dimension 3"), ["--dimension", "must be used"]),
        (format!("{full} --trust local --sample-rate 0.1"), ["--trust local", "--sampling none"]),
        (format!("{full} --trust local --sampling one-pass"), ["--trust local", "--sampling none"]),
        ("account --noise-multiplier 0.01 --steps 10 --delta 1e-5".into(), ["epsilon", "above 200"]),
        ("account --noise-multiplier 1 --steps 10 --delta 0".into(), ["pure", "gaussian"]),
        (format!("{full} --grid-scale 0"), ["grid-scale must be", "0.1 to 10"]),
    ] {
        refused(&arguments, &words);
        refused(&format!("{arguments} --json"), &words);
    }
}

#[test]
fn parameters_outside_their_range_are_refused_by_name() {
    for (option, name) in [
        ("--noise-multiplier", "noise-multiplier must be a finite number > 0"),
        ("--delta", "delta must be a number >= 0 and < 1"),
        ("--epsilon", "epsilon must be a finite number >= 0"),
        ("--sample-rate", "sample-rate must be a number > 0 and <= 1"),
        ("--steps", "steps must be a whole number from 1 to 100000000"),
        ("--dimension", "dimension must be a whole number >= 1"),
    ] {
        for value in ["-1", "nan", "inf", "-inf", "abc", "--json", "1e999", "-1e-3"] {
            refused(&format!("account {option} {value}"), &[name]);
        }
    }
    refused("account --delta 1", &["delta must be", "got 1"]);
    refused("account --steps 0", &["steps must be", "got 0"]);
    refused("account --steps 1000000001", &["steps must be"]);
    refused("account --steps 1.5", &["steps must be"]);
    refused("account --noise-multiplier 0", &["noise-multiplier must be"]);
    refused("account --sample-rate 0", &["sample-rate must be"]);
    refused("account --adjacency swap", &["--adjacency", "replace-one, add-remove"]);
}

#[test]
fn local_trust_is_for_reports_without_sampling() {
    let answer = json("account --noise-multiplier 4 --steps 1 --delta 1e-5 --trust local");
    assert_eq!(answer["trust"], "local");
    assert_eq!(answer["certificate"]["guarantee"]["trust"], "local");
    let ran = run("account --noise-multiplier 4 --steps 1 --delta 1e-5 --trust local");
    assert!(ran.stdout.contains("one person's own row"), "{}", ran.stdout);
}

#[test]
fn a_grid_scale_changes_the_pld_figure_only() {
    let base = format!("{SAMPLED} --delta 1e-5");
    let (usual, finer) = (json(&base), json(&format!("{base} --grid-scale 0.5")));
    assert_eq!(usual["epsilon"], finer["epsilon"]);
    assert_eq!(usual["accountants"]["rdp"], finer["accountants"]["rdp"]);
    let (usual, finer) = (number(&usual, "/accountants/pld"), number(&finer, "/accountants/pld"));
    assert!(finer <= usual && finer > usual * (1.0 - 1e-4), "{usual} {finer}");
}

#[test]
fn the_certificate_is_written_whole_or_not_at_all() {
    let folder = folder("account-certificate");
    let path = folder.join("certificate.json");
    let base = "account --noise-multiplier 4 --steps 1";
    let answer = json(&format!("{base} --delta 1e-5 --certificate {}", path.display()));
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(written, answer["certificate"]);
    // Over an older one.
    json(&format!("{base} --delta 1e-6 --certificate {}", path.display()));
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(written["guarantee"]["delta"], 1e-6);
    assert_eq!(entries(&folder), ["certificate.json"]);

    let fresh = folder.join("fresh.json");
    refused(&format!("{base} --delta 2 --certificate {}", fresh.display()), &["delta"]);
    refused(&format!("{base} --delta 1e-5 --certificate {}", folder.display()), &["--certificate"]);
    refused(
        &format!("{base} --delta 1e-5 --certificate {}/no/such.json", folder.display()),
        &["--certificate"],
    );
    refused(&format!("{base} --delta 1e-5 --certificate -"), &["--certificate"]);
    refused(&format!("{base} --delta 1e-5 --certificate /dev/null"), &["--certificate", "regular"]);
    refused(&format!("{base} --steps 100000 --epsilon 0 --certificate {}", fresh.display()), &["--steps"]);
    let useless =
        format!("account --noise-multiplier 1 --steps 100000 --epsilon 0 --certificate {}", fresh.display());
    refused(&useless, &["--certificate", "promises nothing"]);
    assert_eq!(entries(&folder), ["certificate.json"]);
}
