//! `semidp train` as an auditor sees it: what may not depend on private rows, and what happens to odd ones.

mod common;
mod rows;

use common::{Ran, SEMIDP, check_refusal, entries, json, number, refused, run};
use rows::{Files, Target, hyper, rows, schema};
use serde_json::{Value, json};
use std::process::Command;

const SECRET: &str = "--adjacency add-remove --sample-rate 0.1 --expected-batch 90";

/// Everything a run leaves behind but weights.
fn traces(files: &Files, arguments: &str) -> Vec<String> {
    let Ran { code, stdout, stderr } = run(arguments);
    assert_eq!(code, 0, "{stderr}");
    let mut model = files.json("model.json");
    for part in ["weights", "checksum"] {
        assert!(model.as_object_mut().unwrap().remove(part).is_some());
    }
    vec![stdout, stderr, model.to_string(), files.text("certificate.json"), entries(&files.folder).join(" ")]
}

/// Under add-remove nothing but weights depends on the number of private rows, byte for byte. Weights that hardly leave
/// nought keep the metrics the same, too.
#[test]
fn the_number_of_private_rows_is_secret() {
    let files = Files::new("privacy_count", Target::Number);
    let contents = [
        rows(900, Target::Number, 2),
        rows(899, Target::Number, 2),
        rows(30_000, Target::Number, 4),
        rows(1, Target::Number, 2),
        rows(0, Target::Number, 2),
        "y,colour,b,a\nx,x,x,x\n".into(),
    ];
    for algorithm in ["optimal-gain", "semi-dp-sgd", "dp-sgd"] {
        for sampling in ["", "--sampling poisson", "--sampling one-pass", "--sampling none --sample-rate 1"] {
            for form in ["--json", ""] {
                let adjacency = if sampling.contains("none") {
                    SECRET.replace("--sample-rate 0.1 ", "")
                } else {
                    SECRET.into()
                };
                let arguments = format!(
                    "{} --algorithm {algorithm} {adjacency} {sampling} {form} --alpha horizon --domain box:0:1e-300 --certificate {}",
                    // So few that whether public rows are believed, which gradients tell, is not asked.
                    files.train().replace("--steps 20", "--steps 8"),
                    files.path("certificate.json")
                );
                let mut seen: Vec<Vec<String>> = Vec::new();
                for text in &contents {
                    files.write("private.csv", text);
                    // There before as after.
                    files.write("model.json", "");
                    files.write("certificate.json", "");
                    seen.push(traces(&files, &arguments));
                }
                for other in &seen[1..] {
                    assert_eq!(&seen[0], other, "{arguments}");
                }
            }
        }
    }
}

/// The same without a domain that hides anything: metrics and weights apart.
#[test]
fn answers_under_add_remove() {
    let files = Files::new("privacy_answers", Target::TwoWords);
    let answer = |text: &str| {
        files.write("private.csv", text);
        let mut answer = json(&format!("{} {SECRET} --algorithm semi-dp-sgd", files.train()));
        answer.as_object_mut().unwrap().remove("public_metrics");
        answer
    };
    let first = answer(&rows(900, Target::TwoWords, 2));
    assert_eq!(first, answer(&rows(17, Target::TwoWords, 3)));
    assert_eq!(first, answer(&rows(0, Target::TwoWords, 3)));
    assert_eq!(first["algorithm"], "semi-dp-sgd");
    assert_eq!(first["certificate"]["guarantee"]["adjacency"], "add-remove");
    assert_eq!(first["other_adjacency"]["adjacency"], "replace-one");
    assert!(number(&first, "/other_adjacency/epsilon") > number(&first, "/epsilon"));
    assert_eq!(hyper(&first, "sample_rate"), (json!(0.1), "user".into()));
    assert_eq!(hyper(&first, "expected_batch"), (json!(90.0), "user".into()));
    assert_eq!(json(&format!("verify --allow-seeded {}", files.path("model.json")))["valid"], true);
}

#[test]
fn what_add_remove_needs() {
    let files = Files::new("privacy_needs", Target::TwoWords);
    let base = format!("{} --adjacency add-remove", files.paid());
    refused(&base, &["sample-rate must be given", "expected-batch"]);
    refused(&format!("{base} --sample-rate 0.1"), &["expected-batch must be given", "sample-rate"]);
    refused(&format!("{base} --expected-batch 9"), &["sample-rate must be given", "expected-batch"]);
    refused(&format!("{base} --sampling fixed-size"), &["sampling", "poisson", "secret"]);
    refused(&format!("{base} --sampling none --sample-rate 0.1 --expected-batch 9"), &["sample-rate", "1"]);
    let tiny = "--sampling one-pass --sample-rate 1e-12 --expected-batch 9";
    refused(&format!("{base} {tiny}"), &["sample-rate", "one-pass"]);
    // A batch larger than the file is nobody's business.
    json(&format!("{base} --sample-rate 0.5 --expected-batch 1e6"));
}

/// What is refused for the options given is refused whatever the rows are: also for a file that has none.
#[test]
fn a_refusal_does_not_depend_on_whether_there_are_private_rows() {
    let files = Files::new("privacy_refused_empty", Target::Number);
    let empty = files.write("empty.csv", "a,b,colour,y\n");
    let refusal = |private: &str, options: &str| {
        let public = files.path("public.csv");
        let out = files.path("model.json");
        let ran =
            run(&format!("train --private {private} --public {public} --target y {options} --out {out}"));
        assert!(!files.folder.join("model.json").exists(), "{options}: {}", ran.stderr);
        (ran.code, ran.stderr)
    };
    for budget in ["--epsilon 2", "--epsilon 2 --delta 1e-5", "--rho 0.5", "--epsilon 60"] {
        for algorithm in ["auto", "semi-ldp-gain", "semi-ldp-sgd", "ldp-sgd"] {
            for adjacency in ["add-remove", "replace-one"] {
                if (adjacency, budget) == ("replace-one", "--epsilon 2") {
                    continue;
                }
                let options =
                    format!("--trust local --algorithm {algorithm} --adjacency {adjacency} {budget}");
                let of_empty = refusal(&empty, &options);
                assert_eq!(of_empty.0, 2, "{options}: {}", of_empty.1);
                assert_eq!(of_empty, refusal(&files.path("private.csv"), &options), "{options}");
            }
        }
    }
    // Curators, too: what add-remove needs is asked for before rows are counted.
    for algorithm in [
        "auto",
        "optimal-gain",
        "semi-dp-sgd",
        "semi-dp-sgd-accelerated",
        "pda-first-order",
        "pda-md",
        "dp-sgd",
    ] {
        let options = format!("--algorithm {algorithm} --adjacency add-remove --epsilon 2 --delta 1e-5");
        let of_empty = refusal(&empty, &options);
        assert_eq!(of_empty.0, 2, "{options}: {}", of_empty.1);
        assert_eq!(of_empty, refusal(&files.path("private.csv"), &options), "{options}");
    }
}

/// Private rows with every kind of odd cell, and columns in another order, train like others and are never quoted.
/// A file of no bytes is no table, whoever its rows are: an empty table is a header line. With that alone a run goes on as with any rows.
#[test]
fn a_private_file_without_rows_needs_its_header() {
    let files = Files::new("privacy_empty", Target::Number);
    let secret = "--adjacency add-remove --sample-rate 0.1 --expected-batch 90 --epsilon 4 --delta 1e-5 --steps 20 --seed 1 --quiet";
    let train = |private: &str| {
        let public = files.path("public.csv");
        format!(
            "train --private {private} --public {public} --target y {secret} --out {}",
            files.path("model.json")
        )
    };
    let empty = files.write("empty.csv", "");
    refused(&train(&empty), &["empty.csv", "it has no header line"]);
    assert!(
        run(&train(&empty)).stderr.contains("hint: a CSV file begins with a line that names its columns")
    );
    let header = files.write("header.csv", "a,b,colour,y\n");
    let facts = |private: &str| {
        let mut answer = json(&train(private));
        for place in ["certificate", "public_metrics"] {
            answer[place] = Value::Null;
        }
        // What released gradients say.
        answer["hyperparameters"]["public_data"] = Value::Null;
        answer
    };
    assert_eq!(facts(&header), facts(&files.path("private.csv")));
}

#[test]
fn odd_private_cells_are_taken_in_silence() {
    let files = Files::new("privacy_odd", Target::TwoWords);
    let clean = rows(900, Target::TwoWords, 2);
    let mut text = "extra,y,colour,b,a\n".to_string();
    for row in clean.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        text.push_str(&format!("9,{},{},{},{}\n", cells[3], cells[2], cells[1], cells[0]));
    }
    text.push_str("1,TOPSECRET,TOPSECRET,TOPSECRET,TOPSECRET\n,,,,\n2,yes,red,nan,inf\n3,no,?,1e999,-1e308\n4\n\"TOPSECRET\n");
    files.write("private.csv", &text);
    for adjacency in ["", SECRET] {
        for options in ["--json", "", "--algorithm dp-sgd"] {
            let ran = run(&format!("{} {adjacency} {options}", files.train()));
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            for text in [ran.stdout, ran.stderr, files.text("model.json")] {
                assert!(!text.contains("TOPSECRET"), "{text}");
            }
            assert!(number(&files.evaluate(), "/metrics/accuracy") > 0.8);
        }
    }
    let strict = run(&format!("{} --strict", files.paid()));
    check_refusal("strict", &strict, &["private.csv", "column"]);
    assert!(!strict.stderr.contains("TOPSECRET"), "{}", strict.stderr);
    // A strict check that passes is on the certificate; one that never happened is not.
    let (header, body) =
        rows(60, Target::TwoWords, 1).split_once('\n').map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
    files.write("private.csv", &format!("{header}\n{}", body.repeat(15)));
    let answer = json(&format!("{} --strict", files.train()));
    assert!(answer["certificate"]["not_covered"][0].as_str().unwrap().contains("strict"));
    let answer = json(&format!("{} --strict --algorithm throw-away", files.train()));
    assert!(answer["certificate"].get("not_covered").is_none());
}

/// Odd public cells: gaps are imputed, rows without a label left out, columns that do not vary named.
#[test]
fn odd_public_cells_are_told() {
    let files = Files::new("privacy_public", Target::Number);
    let mut public = rows(60, Target::Number, 1).replace("a,b,colour,y\n", "");
    public.push_str("nan,,,101\n0.5,inf,red,\n0.1,50,NA,?\n0.2,51,green,inf\n");
    let public: String = public.lines().map(|row| format!("{row},7\n")).collect();
    files.write("public.csv", &format!("a,b,colour,y,same\n{public}"));
    let with_same = |text: String| {
        text.lines()
            .enumerate()
            .map(|(row, line)| format!("{line},{}\n", ["same", "3"][usize::from(row > 0)]))
            .collect::<String>()
    };
    files.write("private.csv", &with_same(rows(900, Target::Number, 2)));
    files.write("test.csv", &with_same(rows(300, Target::Number, 3)));
    let answer = json(&format!("{} --task regression", files.train()));
    let expected = [
        "columns that do not vary in the public rows are left out: same",
        "3 public rows without a known y are left out",
    ];
    assert_eq!(answer["notes"], json!(expected));
    assert_eq!((&answer["public_rows"], &answer["public_metrics"]["rows"]), (&json!(61), &json!(61)));
    assert!(number(&files.evaluate(), "/metrics/r2") > 0.9);
    refused(&format!("{} --columns same", files.paid()), &["feature", "target y"]);
}

/// Private labels that no public row has, or that are missing, pull nowhere.
#[test]
fn unknown_private_labels_have_no_weight() {
    let files = Files::new("privacy_labels", Target::TwoWords);
    let weights = |private: String| -> Value {
        files.write("private.csv", &private);
        json(&format!("{} --sampling none --expected-batch 900", files.train()));
        files.json("model.json")["weights"].clone()
    };
    let all = rows(900, Target::TwoWords, 2);
    let unlabelled = |label: &str| {
        let row = |(at, row): (usize, &str)| {
            if at % 2 == 1 {
                format!("{}{label}\n", row.trim_end_matches(char::is_alphabetic))
            } else {
                format!("{row}\n")
            }
        };
        all.lines().enumerate().map(row).collect::<String>()
    };
    let missing = weights(unlabelled(""));
    assert_eq!(missing, weights(unlabelled("perhaps")));
    assert_ne!(missing, weights(unlabelled("no")));
}

/// Columns are described by public rows or a schema, never by private rows.
#[test]
fn no_public_rows() {
    let files = Files::new("privacy_plain", Target::TwoWords);
    let schema = schema(&files.folder);
    let out = format!("--target y --steps 50 --epsilon 4 --delta 1e-5 --out {}", files.path("model.json"));
    let base = format!("train --private {} {out}", files.path("private.csv"));
    refused(&base, &["--schema must be given"]);
    let base = format!("{base} --schema {schema}");
    refused(&base, &["clip-norm must be given", "learning-rate"]);
    refused(&format!("{base} --clip-norm 1"), &["learning-rate must be given"]);
    let base = format!("{base} --clip-norm 1 --learning-rate 1");
    let header = files.write("header.csv", "a,b,colour,y\n");
    for public in [String::new(), format!("--public {header}")] {
        let answer = json(&format!("{base} {public}"));
        assert_eq!((&answer["public_metrics"], &answer["public_rows"]), (&Value::Null, &Value::Null));
        assert_eq!(hyper(&answer, "warm_start"), (json!("none"), "default".into()));
        assert_eq!(hyper(&answer, "features").1, "user");
        assert!(number(&files.evaluate(), "/metrics/accuracy") > 0.7);
    }
    let answer = json(&format!("{base} --validation {} --alpha 0.5 --warm-start", files.path("test.csv")));
    assert_eq!(answer["public_metrics"]["on"], "validation rows");
    assert!(
        answer["notes"]
            .to_string()
            .contains("no effect on training without public rows: --alpha, --warm-start")
    );
    refused(
        &format!("train --private {} --public {header} {out}", files.path("private.csv")),
        &["header.csv", "no rows"],
    );
    // Neither kind of row.
    refused(&format!("train {out}"), &["--private", "--public"]);
    let empty = files.write("empty.csv", "a,b,colour,y\n");
    let neither = format!("train --private {empty} --schema {schema} --clip-norm 1 --learning-rate 1 {out}");
    refused(&neither, &["public must be given"]);
    json(&format!("{neither} {SECRET}"));
}

/// Public rows alone cost nothing, and need no budget.
#[test]
fn no_private_rows() {
    let files = Files::new("privacy_free", Target::TwoWords);
    let base =
        format!("train --public {} --target y --out {}", files.path("public.csv"), files.path("model.json"));
    let mut weights = Vec::new();
    let empty = files.write("empty.csv", "a,b,colour,y\n");
    for options in [
        String::new(),
        "--algorithm throw-away".into(),
        "--algorithm semi-dp-sgd".into(),
        format!("--algorithm throw-away --private {}", files.path("private.csv")),
        format!("--private {empty} --epsilon 1 --delta 1e-5"),
        "--adjacency add-remove".into(),
    ] {
        let answer = json(&format!("{base} {options}"));
        assert_eq!(
            (&answer["algorithm"], &answer["epsilon"]),
            (&json!("throw-away"), &json!(0.0)),
            "{options}"
        );
        assert_eq!(answer["certificate"]["events"], json!([]));
        assert_eq!(answer["certificate"]["random_source"], "none");
        assert_eq!(json(&format!("verify --allow-seeded {}", files.path("model.json")))["valid"], true);
        weights.push(files.json("model.json")["weights"].clone());
    }
    assert!(weights.windows(2).all(|pair| pair[0] == pair[1]));
    refused(&format!("{base} --private {empty}"), &["--epsilon must be given"]);
    refused(&format!("{base} --algorithm dp-sgd"), &["--epsilon must be given"]);
    let ridge = |options: &str| hyper(&json(&format!("{base} {options}")), "ridge");
    assert_eq!(ridge("--l2 0.5"), (json!(0.5), "user".into()));
    assert_eq!(ridge("--warm-start minimum"), (json!(0.0), "user".into()));
    assert_eq!(ridge("").1, "public data");
}

#[test]
fn metrics_on_rows_kept_out() {
    let files = Files::new("privacy_validation", Target::Number);
    let test = files.path("test.csv");
    let answer = json(&format!("{} --validation {test}", files.train()));
    assert_eq!(
        (&answer["public_metrics"]["on"], &answer["public_metrics"]["rows"]),
        (&json!("validation rows"), &json!(300))
    );
    let found = files.evaluate();
    for name in ["loss", "r2", "rmse", "mae"] {
        assert_eq!(answer["public_metrics"][name], found["metrics"][name], "{name}");
    }
    // Rows that were trained on, or are private, are not kept out.
    for (option, name) in [("--private", "private.csv"), ("--public", "public.csv")] {
        refused(&format!("{} --validation {}", files.paid(), files.path(name)), &[option, "--validation"]);
    }
    let empty = files.write("empty.csv", "a,b,colour,y\n");
    refused(&format!("{} --validation {empty}", files.paid()), &["empty.csv", "no rows"]);
}

/// Whatever goes wrong, files stay as they were and nothing is left lying about.
const OLD_MODEL: &str = "{\"format\":\"semidp-model/0\"}";
const OLD_CERTIFICATE: &str = "{\"format\":\"semidp-certificate/0\"}";

#[test]
fn failures_leave_nothing_behind() {
    let files = Files::new("privacy_failures", Target::TwoWords);
    let (model, certificate) =
        (files.write("model.json", OLD_MODEL), files.write("certificate.json", OLD_CERTIFICATE));
    let lacking = files.write("lacking.csv", "a,b,y\n1,2,yes\n");
    let twice = files.write("twice.csv", "a,a,b,colour,y\n1,1,2,red,yes\n");
    let single = files.write("single.csv", "a,b,colour,y\n1,2,red,yes\n2,3,blue,yes\n");
    let public = files.path("public.csv");
    let before = entries(&files.folder);
    let base = format!("{} --certificate {certificate}", files.paid());
    let with = |option: &str, name: &str| base.replace(&format!("{option} {}", files.path(name)), "");
    for (arguments, words) in [
        (format!("{base} --target"), &["target"][..]),
        (base.replace("--target y", "--target z"), &["--target", "no column z"]),
        (format!("{base} --columns a,z"), &["z"]),
        (format!("{} --private {lacking}", with("--private", "private.csv")), &["lacking.csv", "colour"]),
        (format!("{} --private {lacking}.no", with("--private", "private.csv")), &["lacking.csv.no"]),
        (
            format!("{} --private {}", with("--private", "private.csv"), files.folder.display()),
            &["no known format"],
        ),
        (format!("{} --private {twice}", with("--private", "private.csv")), &["twice.csv", "column a"]),
        (format!("{} --public {twice}", with("--public", "public.csv")), &["twice.csv", "column a"]),
        (format!("{} --public {single}", with("--public", "public.csv")), &["target y", "two classes"]),
        (format!("{} --out {}/no/m.json", with("--out", "model.json"), files.folder.display()), &["--out"]),
        (format!("{} --out {public}", with("--out", "model.json")), &["--public", "--out"]),
        (format!("{base} --schema {public}"), &["--public", "--schema"]),
        (format!("{base} --schema {lacking}"), &["--schema", "lacking.csv", "not JSON"]),
        (format!("{base} --validation {certificate}"), &["--validation", "--certificate"]),
        (format!("{base} --algorithm magic"), &["algorithm"]),
        (format!("{base} --domain ball:0"), &["domain"]),
        (format!("{base} --adjacency add-remove"), &["sample-rate"]),
        (format!("{base} --expected-batch 1e9"), &["expected-batch"]),
        (format!("{base} --learning-rate 1e300 --clip-norm 1e9"), &["learning-rate"]),
        (base.replace("--delta 1e-5", ""), &["delta"]),
    ] {
        refused(&arguments, words);
        assert_eq!(entries(&files.folder), before, "{arguments}");
        assert_eq!(
            (files.text("model.json"), files.text("certificate.json")),
            (OLD_MODEL.into(), OLD_CERTIFICATE.into())
        );
    }
    assert_eq!(run(&base).code, 0);
    assert_eq!(entries(&files.folder), before);
    assert!(files.text("model.json").contains("semidp-model/1") && model.ends_with("model.json"));
}

/// Names of columns with everything that names have.
#[test]
fn names_of_all_kinds() {
    let files = Files::new("privacy_names", Target::Number);
    for name in ["public.csv", "private.csv", "test.csv"] {
        let text =
            files.text(name).replacen("a,b,colour,y", "\"größe, \"\"in\"\" cm\",b b,couleur=é,résultat", 1);
        files.write(name, &text);
    }
    let base = files.train().replace(" --target y", "");
    let train = |target: &str, columns: &[&str]| -> Ran {
        let arguments = base.split_whitespace().chain(["--target", target]).chain(columns.iter().copied());
        Command::new(SEMIDP).args(arguments).output().unwrap().into()
    };
    let ran = train("résultat", &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(number(&files.evaluate(), "/metrics/r2") > 0.9);
    let names = files.json("model.json")["feature_names"].clone();
    assert_eq!(names[0], "größe, \"in\" cm");
    assert_eq!(names[2], "couleur=é=blue");
    assert_eq!(train("größe, \"in\" cm", &[]).code, 0);
    // The target among the columns, and columns twice, are no mistake.
    let ran = train("résultat", &["--columns", "b b,résultat,couleur=é,b b"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(files.json("model.json")["feature_names"].as_array().unwrap().len(), 5);
}
