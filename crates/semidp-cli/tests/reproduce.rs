//! `semidp reproduce`: lists, files, and the page.

mod common;

use common::{entries, folder, json, refused, run};

#[test]
fn experiments_are_listed() {
    let names: Vec<String> = json("reproduce --list")["experiments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(
        names,
        [
            "rates",
            "mean-estimation",
            "divergence",
            "hessian-regularisation",
            "noise-tables",
            "linreg-share",
            "linreg-epsilon",
            "linreg-cold",
            "real-tables",
            "cifar-softmax"
        ]
    );
    assert!(run("reproduce").stdout.contains("mean-estimation"));
    refused("reproduce means", &["means", "mean-estimation"]);
}

#[test]
fn rates_are_written_down() {
    let out = folder("reproduce_rates");
    let answer = json(&format!("reproduce rates --out {}", out.display()));
    let names = entries(&out);
    for name in
        ["rates.json", "rates-approximate.csv", "rates-approximate.svg", "rates-example.svg", "report.html"]
    {
        assert!(names.contains(&name.to_string()), "{name} in {names:?}");
    }
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 4);
    assert!(page.contains("harder than test loss"));
    let csv = std::fs::read_to_string(out.join("rates-example.csv")).unwrap();
    assert!(csv.starts_with("n,training_epsilon_1,test_epsilon_1"));
    assert_eq!(answer["experiments"][0]["name"], "rates");
    refused("reproduce rates --out /dev/null/x", &["--out"]);
}

/// Named experiments fail with the name of the file that they miss.
#[test]
fn missing_data_is_told() {
    let out = folder("reproduce_missing");
    let with = |name: &str| format!("reproduce {name} --quick --data /nowhere --out {}", out.display());
    refused(&with("real-tables"), &["/nowhere/adult/adult.data.gz", "archive.ics.uci.edu"]);
    refused(&with("cifar-softmax"), &["/nowhere/cifar-10-batches-bin/data_batch_1.bin", "cs.toronto.edu"]);
}
