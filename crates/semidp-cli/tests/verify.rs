//! `semidp verify`.

mod common;

use common::{Ran, check_refusal, folder, json, number, refused, run, run_with_input};
use serde_json::{Value, json};

fn verify(value: &Value) -> (Ran, Value) {
    let ran = run_with_input("verify - --json", &value.to_string());
    let answer = serde_json::from_str(&ran.stdout).expect("one JSON object");
    (ran, answer)
}

fn accepted(value: &Value) {
    let (ran, answer) = verify(value);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{value}");
    assert_eq!((&answer["valid"], &answer["objections"]), (&json!(true), &json!([])));
}

fn rejected(value: &Value, word: &str) {
    let (ran, answer) = verify(value);
    assert_eq!(ran.code, 1, "{value}");
    assert_eq!(answer["valid"], false);
    assert!(answer["objections"].to_string().contains(word), "{}", answer["objections"]);
    assert!(ran.stderr.starts_with("error: the certificate does not hold: "), "{}", ran.stderr);
}

fn sampled() -> Value {
    json("calibrate --epsilon 2 --delta 1e-5 --sample-rate 0.05 --steps 300")
}

fn unsampled() -> Value {
    json("account --noise-multiplier 4 --steps 3 --delta 1e-5")
}

/// A copy with one place changed.
fn with(value: &Value, pointer: &str, replacement: Value) -> Value {
    let mut changed = value.clone();
    *changed.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = replacement;
    changed
}

#[test]
fn accepts_what_account_and_calibrate_issue() {
    for arguments in [
        "account --noise-multiplier 3 --sample-rate 0.05 --steps 300 --epsilon 1.5",
        "account --noise-multiplier 9 --sampling fixed-size --sample-rate 0.05 --steps 300 --delta 1e-5",
        "account --noise-multiplier 3 --sampling one-pass --steps 7 --delta 1e-5",
        "account --noise-multiplier 3 --mechanism laplace --steps 7",
        "account --noise-multiplier 3 --mechanism k-norm --dimension 4 --steps 1 --delta 1e-4",
        "calibrate --epsilon 1 --mechanism k-norm --dimension 4 --steps 7",
        "calibrate --rho 0.3 --steps 7 --delta 1e-6",
        "calibrate --epsilon 1 --delta 1e-5 --sample-rate 0.05 --noise-multiplier 3",
    ] {
        let answer = json(arguments);
        accepted(&answer);
        accepted(&answer["certificate"]);
    }
}

#[test]
fn reports_what_it_recomputed() {
    let answer = sampled();
    let (_, verdict) = verify(&answer);
    let (claimed, found) = (number(&verdict, "/claimed_epsilon"), number(&verdict, "/epsilon"));
    assert_eq!(claimed, number(&answer, "/epsilon"));
    assert!(found <= claimed && found > claimed * (1.0 - 1e-3));
    assert_eq!(number(&verdict, "/accountants/pld"), found);
    assert!(number(&verdict, "/accountants/rdp") > found);
    assert_eq!((number(&verdict, "/delta"), &verdict["adjacency"]), (1e-5, &json!("replace-one")));
}

#[test]
fn refuses_a_lowered_epsilon() {
    for answer in [sampled(), unsampled()] {
        let epsilon = number(&answer, "/epsilon");
        for share in [0.99, 0.999] {
            let certificate = with(&answer["certificate"], "/guarantee/epsilon", json!(share * epsilon));
            rejected(&certificate, "epsilon");
            // With the outer figure as it was.
            rejected(&with(&answer, "/certificate", certificate), "epsilon");
            // Only the outer figure.
            rejected(&with(&answer, "/epsilon", json!(share * epsilon)), "the answer states");
        }
        // A larger claim is weaker, and true.
        accepted(&with(&answer["certificate"], "/guarantee/epsilon", json!(1.01 * epsilon)));
    }
}

#[test]
fn refuses_edits_that_make_the_claim_false() {
    for answer in [sampled(), unsampled()] {
        let certificate = &answer["certificate"];
        let noise = number(certificate, "/events/0/noise_multiplier");
        let count = certificate["events"][0]["count"].as_u64().unwrap();
        rejected(&with(certificate, "/events/0/noise_multiplier", json!(0.99 * noise)), "epsilon");
        let longer = with(certificate, "/events/0/count", json!(count + 10));
        rejected(&with(&longer, "/releases", json!(count + 10)), "epsilon");
        rejected(&longer, "releases");
        rejected(&with(certificate, "/guarantee/delta", json!(1e-7)), "epsilon");
        rejected(&with(certificate, "/guarantee/delta", json!(0.0)), "do not support");
        rejected(&with(certificate, "/accountants/rdp", json!(0.1)), "accountants.rdp");
        rejected(&with(&answer, "/adjacency", json!("add-remove")), "adjacency");
        rejected(&with(&answer, "/delta", json!(1e-6)), "delta");
        rejected(&with(&answer, "/noise_multiplier", json!(0.9 * noise)), "noise_multiplier");
        rejected(&with(&answer, "/steps", json!(count + 1)), "steps");
    }
    let rho = with(&unsampled()["certificate"], "/guarantee/rho", json!(0.1));
    rejected(&rho, "rho");
    let added =
        json("account --noise-multiplier 4 --sample-rate 0.1 --steps 30 --delta 1e-5 --adjacency add-remove");
    rejected(&with(&added["certificate"], "/guarantee/adjacency", json!("replace-one")), "epsilon");
    rejected(&with(&added["certificate"], "/guarantee/trust", json!("local")), "curator");
    let fixed =
        json("account --noise-multiplier 4 --sampling fixed-size --sample-rate 0.1 --steps 30 --delta 1e-5");
    rejected(&with(&fixed["certificate"], "/guarantee/adjacency", json!("add-remove")), "do not support");
}

#[test]
fn the_table_says_no_where_it_must() {
    let answer = unsampled();
    let folder = folder("verify-table");
    let path = folder.join("certificate.json");
    std::fs::write(&path, answer["certificate"].to_string()).unwrap();
    let ran = run(&format!("verify {}", path.display()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("valid") && ran.stdout.contains("yes"), "{}", ran.stdout);
    std::fs::write(&path, with(&answer["certificate"], "/guarantee/epsilon", json!(1.0)).to_string())
        .unwrap();
    let ran = run(&format!("verify {}", path.display()));
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("NO") && ran.stdout.contains("objection"), "{}", ran.stdout);
}

#[test]
fn warns_of_a_seed() {
    let seeded = with(&unsampled()["certificate"], "/random_source", json!("seeded"));
    let ran = run_with_input("verify - --json", &seeded.to_string());
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.starts_with("warning: ") && ran.stderr.contains("not private"), "{}", ran.stderr);
    assert_eq!(run_with_input("verify - --json --quiet", &seeded.to_string()).stderr, "");
}

#[test]
fn what_is_no_certificate_is_bad_input() {
    let certificate = &unsampled()["certificate"];
    let mut extended = certificate.clone();
    extended["extra"] = json!(1);
    for (text, words) in [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "format"),
        ("3", "format"),
        ("{}", "format"),
        (r#"{"certificate":null}"#, "format"),
        (&extended.to_string(), "extra"),
        (&with(certificate, "/format", json!("semidp-certificate/9")).to_string(), "semidp-certificate/9"),
        (&with(certificate, "/guarantee/delta", json!(2)).to_string(), "delta"),
        (&with(certificate, "/guarantee/protects", json!("all rows")).to_string(), "all rows"),
        (&with(certificate, "/events/0/event", json!("magic")).to_string(), "magic"),
    ] {
        check_refusal(text, &run_with_input("verify -", text), &["CERTIFICATE", words]);
    }
    refused("verify /no/such/file", &["CERTIFICATE", "/no/such/file"]);
    refused("verify", &["CERTIFICATE"]);
}

#[test]
fn thousands_of_different_events_are_refused_at_once() {
    let mut certificate = sampled();
    let event = certificate["certificate"]["events"][0].clone();
    let many: Vec<Value> =
        (0..20_000).map(|k| with(&event, "/noise_multiplier", json!(3.0 + 1e-4 * f64::from(k)))).collect();
    certificate["certificate"]["events"] = json!(many);
    let ran = run_with_input("verify -", &certificate.to_string());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("20000 different sampled or pure events cannot be composed, at most 256"));
}
