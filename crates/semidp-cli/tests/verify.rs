//! `semidp verify`.

mod common;
mod rows;

use common::{Ran, check_refusal, folder, json, number, refused, run, run_with_input};
use rows::{Files, Target};
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
fn seeded_noise_is_not_valid_unless_allowed() {
    let files = Files::new("verify-seeded", Target::Number);
    let mean = format!(
        "mean --private {} --public {} --columns a,b --epsilon 1 --delta 1e-6 --seed 1",
        files.path("private.csv"),
        files.path("public.csv")
    );
    let answer = json(&format!("{mean} --quiet"));
    rejected(&answer, "NOT private");
    rejected(&answer["certificate"], "seed");
    let ran = run_with_input("verify - --json --allow-seeded", &answer.to_string());
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.starts_with("warning: ") && ran.stderr.contains("not private"), "{}", ran.stderr);
    let table = run_with_input("verify - --quiet", &answer.to_string());
    assert_eq!(table.code, 1);
    assert!(table.stdout.contains("NOT private against anyone"), "{}", table.stdout);
    // The events of a release without the noise that they claim.
    rejected(&with(&answer["certificate"], "/random_source", json!("none")), "random_source");
}

#[test]
fn the_table_shows_where_noise_came_from_and_how_it_was_computed() {
    let ran = run_with_input("verify -", &unsampled()["certificate"].to_string());
    for words in ["arithmetic", "idealised", "random source", "nothing was drawn here", "signed by"] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}

/// The reviewer's three: trust raised by hand, the events removed, and hyper-parameters of another run.
#[test]
fn a_certificate_that_contradicts_itself_is_refused() {
    let central = &unsampled()["certificate"];
    rejected(&with(central, "/guarantee/trust", json!("local")), "trust");
    let mut emptied = central.clone();
    emptied["events"] = json!([]);
    emptied["releases"] = json!(0);
    emptied["guarantee"]["epsilon"] = json!(0.0);
    emptied["accountants"] = json!({ "pld": null, "rdp": null });
    emptied["hyperparameters"] = json!([
        { "name": "noise-multiplier", "value": 184.0, "source": "calibration" },
        { "name": "steps", "value": 609, "source": "theory" },
    ]);
    rejected(&emptied, "there are no events");
    rejected(&with(central, "/hyperparameters/0/value", json!(184.0)), "noise_multiplier");
    rejected(&with(central, "/hyperparameters/1/value", json!(2)), "steps");
}

/// Every verb that issues certificates issues such as verify, whatever the algorithm, adjacency and sampling.
#[test]
fn what_every_verb_issues_verifies() {
    let files = Files::new("verify-conformance", Target::Number);
    let both = format!("--private {} --public {}", files.path("private.csv"), files.path("public.csv"));
    let mut commands = Vec::new();
    let mean = format!("mean {both} --columns a,b");
    for budget in ["--epsilon 1 --delta 1e-6", "--epsilon 1", "--rho 0.1", "--epsilon 1 --idealised"] {
        commands.push(format!("{mean} {budget}"));
    }
    for estimator in ["throw-away", "gaussian", "laplace", "k-norm", "weighted-gaussian"] {
        commands.push(format!("{mean} --estimator {estimator} --epsilon 1 --delta 1e-6"));
    }
    commands.push(format!("mean --public {} --columns a,b --epsilon 1", files.path("public.csv")));
    let train = format!("train {both} --target y --out {} --checkpoint none", files.path("model.json"));
    for algorithm in [
        "auto",
        "semi-dp-sgd",
        "semi-dp-sgd-accelerated",
        "dp-sgd",
        "optimal-gain",
        "pda-md",
        "pda-first-order",
    ] {
        commands.push(format!("{train} --algorithm {algorithm} --epsilon 4 --delta 1e-5 --steps 20"));
        let secret = "--adjacency add-remove --sample-rate 0.1 --expected-batch 90";
        commands
            .push(format!("{train} --algorithm {algorithm} --epsilon 4 --delta 1e-5 --steps 20 {secret}"));
    }
    for sampling in ["poisson", "fixed-size", "one-pass", "in-order", "none"] {
        let budget = "--algorithm semi-dp-sgd --epsilon 4 --delta 1e-5 --steps 7";
        commands.push(format!("{train} {budget} --sampling {sampling}"));
    }
    commands.push(format!("{train} --algorithm semi-dp-sgd --rho 0.5"));
    commands.push(format!("{train} --algorithm semi-dp-sgd --epsilon 4 --delta 1e-5 --sampling poisson --sample-rate 1 --steps 3"));
    commands.push(format!("{train} --algorithm throw-away"));
    commands.push(format!("{train} --algorithm auto --epsilon 1e-2 --delta 1e-6"));
    for algorithm in ["auto", "semi-ldp-sgd", "ldp-sgd", "semi-ldp-gain"] {
        commands.push(format!("{train} --trust local --algorithm {algorithm} --epsilon 4"));
    }
    for command in commands {
        let answer = json(&format!("{command} --quiet"));
        let (ran, verdict) = verify(&answer);
        assert_eq!(
            (ran.code, &verdict["objections"]),
            (0, &json!([])),
            "{command}: {}",
            answer["certificate"]
        );
    }
    let people = files.write("people.csv", &common::people::people(50));
    let reports = files.path("reports.jsonl");
    let randomize = format!("local randomize --data {people} --out {reports} --radius 2");
    for again in ["", "--round 2", "--round 2 --again --mechanism duchi"] {
        let answer = json(&format!("{randomize} --epsilon 2 {again} --quiet"));
        assert_eq!(verify(&answer).0.code, 0, "{}", answer["certificate"]);
    }
    let answer = json(&format!("local aggregate --reports {reports}"));
    assert_eq!(verify(&answer).0.code, 0, "{}", answer["certificate"]);
    // A reference that was trained in the open promises nothing, and is never valid.
    let open = json(&format!("{train} --algorithm non-private --quiet"));
    let (ran, verdict) = verify(&open);
    assert_eq!((ran.code, &verdict["valid"]), (1, &json!(false)));
}

#[test]
fn signatures_tell_what_an_institution_issued() {
    let files = Files::new("verify-signed", Target::Number);
    let (key, other) = (files.path("clinic.key"), files.path("other.key"));
    for path in [&key, &other] {
        let made = json(&format!("keygen --out {path}"));
        assert_eq!(made["public_key_file"], format!("{path}.pub"));
        refused(&format!("keygen --out {path}"), &["--out", "never overwritten"]);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let both = format!("--private {} --public {}", files.path("private.csv"), files.path("public.csv"));
    let mean = format!("mean {both} --columns a,b --epsilon 1 --delta 1e-6");
    let train = format!(
        "train {both} --target y --epsilon 4 --delta 1e-5 --checkpoint none --out {}",
        files.path("model.json")
    );
    let signer = |value: &Value, key: &str| {
        let ran = run_with_input(&format!("verify - --json --signer {key}.pub"), &value.to_string());
        (ran.code, serde_json::from_str::<Value>(&ran.stdout).unwrap())
    };
    for command in [&mean, &train] {
        let answer = json(&format!("{command} --sign {key}"));
        let certificate = &answer["certificate"];
        accepted(&answer);
        let (code, verdict) = signer(&answer, &key);
        assert_eq!((code, &verdict["signer_checked"]), (0, &json!(true)), "{verdict}");
        assert_eq!(verdict["signed_by"], certificate["signature"]["public_key"]);
        let (code, verdict) = signer(&answer, &other);
        assert_eq!((code, verdict["valid"].as_bool()), (1, Some(false)));
        assert!(verdict["objections"].to_string().contains("another key"));
        // A weaker claim is true, and yet not what was signed.
        let epsilon = number(certificate, "/guarantee/epsilon");
        let altered = with(certificate, "/guarantee/epsilon", json!(1.5 * epsilon));
        rejected(&altered, "not what was signed");
        assert_eq!(signer(&altered, &key).0, 1);
        let mut unsigned = certificate.clone();
        unsigned.as_object_mut().unwrap().remove("signature");
        accepted(&unsigned);
        let (code, verdict) = signer(&unsigned, &key);
        assert_eq!(code, 1);
        assert!(verdict["objections"].to_string().contains("signature: there is none"));
        for (pointer, value) in [
            ("/signature/value", json!("00".repeat(64))),
            ("/signature/value", json!("zz")),
            ("/signature/public_key", json!("")),
            ("/signature/algorithm", json!("none")),
        ] {
            rejected(&with(certificate, pointer, value), "signature");
        }
    }
    let table = run(&format!("verify {} --signer {key}.pub", files.path("model.json")));
    assert!(table.code == 0 && table.stdout.contains("checked against --signer"), "{}", table.stdout);
    assert!(table.stdout.contains("the certificate, not the values beside it"), "{}", table.stdout);
    assert!(table.stdout.contains("weights"), "{}", table.stdout);
    // A signature says nothing of the values, and the answer says so: what was compared, and what was not.
    let answer = json(&format!("{mean} --sign {key}"));
    let altered = with(&answer, "/mean", json!([1e6, 1e6]));
    let (code, verdict) = signer(&altered, &key);
    assert_eq!((code, &verdict["valid"]), (0, &json!(true)), "{verdict}");
    assert_eq!(verdict["signature_covers"], "the certificate, not the values beside it");
    let not_checked = verdict["not_checked"].to_string();
    assert!(
        ["\"mean\"", "\"confidence_interval\"", "\"columns\""].iter().all(|name| not_checked.contains(name))
    );
    assert!(!not_checked.contains("epsilon") && !not_checked.contains("adjacency"), "{not_checked}");
    let (_, verdict) = signer(&answer["certificate"], &key);
    assert_eq!(verdict["signature_covers"], "every field of the certificate");
    assert!(verdict.get("not_checked").is_none(), "{verdict}");
    // Weights that were altered break the checksum of the model.
    let model: Value = serde_json::from_str(&files.text("model.json")).unwrap();
    check_refusal(
        "weights",
        &run_with_input("verify -", &with(&model, "/weights/0", json!(1e3)).to_string()),
        &["CERTIFICATE", "checksum"],
    );
    // A forged certificate around a signed one, beside it, or inside it.
    let signed = &answer["certificate"];
    let mut forged = signed.clone();
    forged["guarantee"]["epsilon"] = json!(0.01);
    let mut around = forged.clone();
    around["certificate"] = signed.clone();
    let mut inside = signed.clone();
    inside["certificate"] = forged.clone();
    for both in [
        around,
        inside,
        json!({ "certificate": signed, "guarantee": { "epsilon": 0.01 } }),
        json!({ "certificate": signed, "signature": signed["signature"] }),
        json!({ "certificate": signed, "format": "semidp-certificate/1" }),
        json!({ "certificate": signed, "answer": [{ "certificate": forged }] }),
        json!({ "certificate": signed, "note": forged }),
    ] {
        let ran = run_with_input(&format!("verify - --signer {key}.pub"), &both.to_string());
        check_refusal(&both.to_string(), &ran, &["CERTIFICATE", "certificate"]);
    }
    // Keys that are none, or that others may read, are refused before anything is read or spent.
    refused(&format!("{mean} --sign {}", files.path("public.csv")), &["--sign"]);
    refused(&format!("{mean} --sign {key}.pub"), &["--sign"]);
    refused(&format!("{mean} --sign /no/such/key"), &["--sign", "/no/such/key"]);
    refused(&format!("verify {} --signer {key}", files.path("model.json")), &["--signer"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        refused(&format!("{mean} --sign {key}"), &["--sign", "others than its owner"]);
    }
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

/// Parsers differ on which of two values of one key they take.
#[test]
fn a_key_that_occurs_twice_is_refused() {
    let answer = unsampled();
    let certificate = answer["certificate"].to_string();
    for text in [
        answer.to_string().replacen('{', "{\"epsilon\":0.01,", 1),
        certificate.replacen("\"guarantee\":{", "\"guarantee\":{\"epsilon\":0.01,", 1),
        format!("{{\"certificate\":{certificate},\"certificate\":{certificate}}}"),
        format!("{{\"certificate\":{certificate},\"mean\":[{{\"a\":1,\"a\":2}}]}}"),
        certificate.replacen("\"count\":3", "\"count\":1,\"\\u0063ount\":3", 1),
    ] {
        check_refusal(&text, &run_with_input("verify -", &text), &["CERTIFICATE", "occurs twice"]);
    }
}

/// A comparison of numbers must not pass over text that a reader takes for a number.
#[test]
fn text_in_place_of_numbers_is_refused() {
    let mut answer = unsampled();
    for name in ["epsilon", "delta", "rho", "noise_multiplier", "steps", "accountants", "mean"] {
        for value in [json!("0.01"), json!(true), json!({ "pld": "0.01" }), json!(["0.01"])] {
            let kept = answer.get(name).cloned();
            answer[name] = value;
            let ran = run_with_input("verify -", &answer.to_string());
            check_refusal(name, &ran, &["CERTIFICATE", &format!("`{name}` must be a number")]);
            answer[name] = kept.unwrap_or(Value::Null);
        }
    }
    for name in ["adjacency", "trust", "protects"] {
        let text = with(&answer, &format!("/{name}"), json!(1)).to_string();
        check_refusal(name, &run_with_input("verify -", &text), &["CERTIFICATE", name, "text"]);
    }
}

#[test]
fn every_field_that_a_certificate_states_is_compared() {
    let answer = unsampled();
    rejected(&with(&answer, "/trust", json!("local")), "trust");
    rejected(&with(&answer, "/protects", json!("all rows")), "protects");
    rejected(&with(&answer, "/arithmetic", json!("exact")), "arithmetic");
    rejected(&with(&answer, "/rho", json!(1e-3)), "rho");
    let sampled = sampled();
    rejected(&with(&sampled, "/rho", json!(1e-3)), "its certificate none");
    let files = Files::new("verify-fields", Target::Number);
    let train = json(&format!(
        "train --private {} --public {} --target y --epsilon 4 --delta 1e-5 --steps 20 --checkpoint none --out {} --quiet",
        files.path("private.csv"),
        files.path("public.csv"),
        files.path("model.json")
    ));
    accepted(&train);
    rejected(&with(&train, "/accountants/rdp", json!(0.1)), "accountants");
    rejected(&with(&train, "/hyperparameters/clip_norm/value", json!(7)), "hyperparameters");
    rejected(&with(&train, "/hyperparameters/steps/value", json!("20")), "hyperparameters");
}

#[test]
fn figures_of_accountants_must_apply_to_the_guarantee() {
    let pure = json("account --noise-multiplier 3 --mechanism laplace --steps 7");
    for name in ["pld", "rdp"] {
        rejected(
            &with(&pure["certificate"], &format!("/accountants/{name}"), json!(0.1)),
            &format!("accountants.{name}"),
        );
    }
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

/// A copy of a certificate with more hyper-parameters.
fn stating(certificate: &Value, name: &str, value: Value) -> Value {
    let mut changed = certificate.clone();
    changed["hyperparameters"].as_array_mut().unwrap().push(json!({
        "name": name, "value": value, "source": "user"
    }));
    changed
}

/// The attacks of a hostile reviewer: each certificate is false, and `verify` said yes to it.
#[test]
fn certificates_edited_by_a_hostile_reader_are_refused() {
    let files = Files::new("verify-hostile", Target::Number);
    let both = format!("--private {} --public {}", files.path("private.csv"), files.path("public.csv"));
    let mean = json(&format!("mean {both} --columns a,b --epsilon 1 --quiet"))["certificate"].clone();
    for prefix in [" mean", "Mean", "\u{200b}mean", "m\u{435}an", "mean "] {
        let words = mean["mechanism"].as_str().unwrap().replacen("mean", prefix, 1);
        let mut forged = with(&mean, "/mechanism", json!(words));
        rejected(&forged, "mechanism");
        forged["guarantee"]["trust"] = json!("local");
        rejected(&forged, "mechanism");
        let mut added = with(&mean, "/mechanism", json!(words));
        added["guarantee"]["adjacency"] = json!("add-remove");
        rejected(&added, "mechanism");
        let undrawn = with(&with(&mean, "/mechanism", json!(words)), "/random_source", json!("none"));
        rejected(&undrawn, "mechanism");
    }
    for (name, value) in [
        ("Noise-Multiplier", json!(1000.0)),
        ("noise multiplier", json!(1000.0)),
        ("noise-multiplier ", json!(1000.0)),
        ("n\u{43e}ise-multiplier", json!(1000.0)),
        ("noise_multiplier", json!(1000.0)),
        ("epsilon", json!(0.001)),
        ("rho", json!(1e-9)),
        ("trust", json!("local")),
        ("adjacency", json!("add-remove")),
        ("arithmetic", json!("idealised")),
        ("seed", json!(1)),
    ] {
        rejected(&stating(&mean, name, value), name.trim());
    }
    let place =
        mean["hyperparameters"].as_array().unwrap().iter().position(|entry| entry["name"] == "budget");
    let budget = format!("/hyperparameters/{}/value", place.unwrap());
    rejected(&with(&mean, &budget, json!({ "epsilon": 0.01, "delta": 0 })), "budget");
    // Everything of the release but its event.
    let mut emptied = mean.clone();
    emptied["events"] = json!([]);
    emptied["releases"] = json!(0);
    emptied["random_source"] = json!("none");
    emptied["guarantee"]["epsilon"] = json!(0.0);
    emptied["guarantee"].as_object_mut().unwrap().remove("rho");
    emptied["hyperparameters"].as_array_mut().unwrap().retain(|entry| entry["name"] != "noise-multiplier");
    for words in ["mean: shift-robust-laplace", "mean: throw-away, no private row was read"] {
        rejected(
            &with(&emptied, "/mechanism", json!(words)),
            "joint-clip-norm: stated, but there are no events",
        );
    }
    let mean = json(&format!("mean {both} --columns a,b --epsilon 1 --estimator k-norm --idealised --quiet"));
    for words in [mean["certificate"]["mechanism"].clone(), json!("mean: k-norm"), json!("K-norm noise")] {
        let forged = with(&mean["certificate"], "/mechanism", words);
        rejected(&with(&forged, "/arithmetic", json!("exact")), "arithmetic");
    }
    let train = json(&format!(
        "train {both} --target y --algorithm semi-dp-sgd --epsilon 4 --delta 1e-5 --steps 20 --checkpoint none --out {} --quiet",
        files.path("model.json")
    ));
    for words in ["train: non-private", "train: throw-away", "train: semi-ldp-gain", "train: dp-sgd"] {
        rejected(&with(&train["certificate"], "/mechanism", json!(words)), "mechanism");
    }
    let computed = &unsampled()["certificate"];
    rejected(&with(computed, "/arithmetic", json!("exact")), "arithmetic");
    rejected(&with(computed, "/random_source", json!("operating-system")), "random_source");
    let people = files.write("people.csv", &common::people::people(20));
    for randomiser in ["privunit", "privunitg"] {
        let answer = json(&format!(
            "local randomize --data {people} --out {} --radius 2 --epsilon 2 --mechanism {randomiser} --round {randomiser} --idealised --quiet",
            files.path(&format!("{randomiser}.jsonl"))
        ));
        accepted_quietly(&answer["certificate"]);
        rejected(&with(&answer["certificate"], "/arithmetic", json!("exact")), "arithmetic");
    }
}

/// Whatever else is printed.
fn accepted_quietly(value: &Value) {
    let (ran, answer) = verify(value);
    assert_eq!((ran.code, &answer["objections"]), (0, &json!([])), "{value}");
}

/// A guarantee is within the budget that its certificate states, to the last digit.
#[test]
fn guarantees_are_within_their_budgets() {
    let files = Files::new("verify-budgets", Target::Number);
    let mean = format!(
        "mean --private {} --public {} --columns a,b --quiet",
        files.path("private.csv"),
        files.path("public.csv")
    );
    for budget in ["--epsilon 0.3", "--epsilon 0.7", "--epsilon 1.1", "--epsilon 2.9", "--epsilon 4.1"] {
        accepted_quietly(&json(&format!("{mean} {budget}")));
        accepted_quietly(&json(&format!("{mean} {budget} --delta 1e-6 --estimator gaussian")));
    }
    for rho in ["0.001", "0.03", "0.3", "0.7"] {
        for estimator in ["", "--estimator gaussian", "--estimator weighted-gaussian"] {
            accepted_quietly(&json(&format!("{mean} --rho {rho} {estimator}")));
        }
    }
}

/// A mechanism of another program: its events are checked, and the answer says that nothing else is.
#[test]
fn custom_mechanisms_are_named_as_such() {
    let custom = with(&unsampled()["certificate"], "/mechanism", json!("custom: noise on counts"));
    let (ran, answer) = verify(&custom);
    assert_eq!((ran.code, &answer["custom_mechanism"]), (0, &json!(true)));
    let table = run_with_input("verify -", &custom.to_string());
    assert!(table.code == 0 && table.stdout.contains("its issuer named it"), "{}", table.stdout);
    assert!(verify(&unsampled()["certificate"]).1.get("custom_mechanism").is_none());
    rejected(&with(&custom, "/arithmetic", json!("exact")), "arithmetic");
    // The layout of a table would take hours for 8 MB in one word.
    let mut long = custom.clone();
    long["notes"] = json!(["x".repeat(8_000_000)]);
    let table = run_with_input("verify -", &long.to_string());
    assert!(table.code == 0 && table.stdout.len() < 20_000, "{}", table.stdout.len());
}

/// A few megabytes of empty lists would take gigabytes of memory.
#[test]
fn json_of_too_many_values_is_refused() {
    let files = Files::new("verify-large", Target::Number);
    let limit = "more than 3000000 JSON values and keys";
    let certificate = unsampled()["certificate"].clone();
    let many = format!("[{}[]]", "[],".repeat(3_000_000));
    let (beside, inside) = (
        format!("{{\"certificate\":{certificate},\"mean\":{many}}}"),
        stating(&certificate, "schema", json!("@")).to_string().replace("\"@\"", &many),
    );
    for text in [&many, &beside, &inside, &format!("{many}]")] {
        check_refusal("many values", &run_with_input("verify -", text), &["CERTIFICATE", limit]);
    }
    let few = format!("[{}[]]", "[],".repeat(500_000));
    let inside = stating(&certificate, "schema", json!("@")).to_string().replace("\"@\"", &few);
    check_refusal(
        "a large certificate",
        &run_with_input("verify -", &inside),
        &["CERTIFICATE", "more than 500000 JSON values and keys"],
    );
    let beside = format!("{{\"certificate\":{certificate},\"mean\":[{}0]}}", "0,".repeat(2_000_000));
    assert_eq!(run_with_input("verify -", &beside).code, 0);

    let path = files.write("many.json", &many);
    let (private, public) = (files.path("private.csv"), files.path("public.csv"));
    for (command, option, words) in [
        (format!("predict --model {path} --data {public} --out {}", files.path("out.csv")), "model", limit),
        (format!("evaluate --model {path} --data {public}"), "model", limit),
        (format!("mean --private {private} --schema {path} --radius 1 --epsilon 1"), "--schema", limit),
        (format!("account --events {path} --delta 1e-5"), "--events", limit),
        (
            format!(
                "local randomize --data {private} --columns a,b --centre {path} --radius 1 --epsilon 1 --out {}",
                files.path("reports.jsonl")
            ),
            "--centre",
            "at most 3000000 JSON values and keys",
        ),
    ] {
        refused(&command, &[option, words]);
    }
    let path = files.write("events.json", &" ".repeat((16 << 20) + 1));
    refused(&format!("account --events {path} --delta 1e-5"), &["--events", "larger than 16 MiB"]);
}

/// The limits leave room for wide tables.
#[test]
fn a_schema_of_many_columns_and_categories_loads() {
    let files = Files::new("verify-wide", Target::Number);
    let number =
        |k: usize| format!("{{\"kind\":\"number\",\"name\":\"x{k}\",\"impute\":0.5,\"range\":[0.0,1.0]}}");
    let mut columns: Vec<String> = ["a", "b"].map(|name| number(0).replace("x0", name)).into();
    columns.extend((0..100_000).map(number));
    let values: Vec<String> = (0..100_000).map(|k| format!("\"value {k}\"")).collect();
    columns.push(format!("{{\"kind\":\"category\",\"name\":\"place\",\"values\":[{}]}}", values.join(",")));
    let schema = format!("{{\"format\":\"semidp-schema/1\",\"columns\":[{}]}}", columns.join(","));
    let path = files.write("wide.json", &schema);
    let ran = run(&format!(
        "mean --private {} --schema {path} --columns a,b --radius 1 --epsilon 1 --json",
        files.path("private.csv")
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
