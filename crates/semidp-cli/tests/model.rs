//! `semidp evaluate` and `semidp predict`: a saved model at work, and files that are no models.

mod common;
mod rows;

use common::{check_refusal, entries, folder, json, number, refused, run};
use flate2::read::GzDecoder;
use rows::{Files, Target};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

/// The cells of a CSV file without quotes, without the header.
fn cells(text: &str) -> Vec<Vec<String>> {
    text.lines().skip(1).map(|line| line.split(',').map(str::to_string).collect()).collect()
}

/// The scores of rows `a,b,colour,...`, by hand from what the model file says.
fn scores(model: &Value, row: &[String]) -> Vec<f64> {
    let features = model["features"].as_array().unwrap();
    let names = model["feature_names"].as_array().unwrap();
    let mut values: Vec<f64> = Vec::new();
    for (feature, name) in features.iter().zip(names) {
        let name = name.as_str().unwrap();
        values.push(match feature["kind"].as_str().unwrap() {
            "number" => {
                let place = ["a", "b"].iter().position(|column| *column == name).unwrap();
                let cell: f64 = row[place].parse().unwrap();
                // Out of the range of public rows, their nearest end counts.
                let columns = model["schema"]["columns"].as_array().unwrap();
                let range = &columns.iter().find(|column| column["name"] == name).unwrap()["range"];
                let cell = cell.clamp(number(range, "/0"), number(range, "/1"));
                (cell - number(feature, "/shift")) / number(feature, "/scale")
            }
            _ => f64::from(u8::from(name == format!("colour={}", row[2]))),
        });
    }
    values.push(1.0);
    let weights: Vec<f64> =
        model["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
    weights.chunks(values.len()).map(|w| w.iter().zip(&values).map(|(w, x)| w * x).sum()).collect()
}

fn predict(files: &Files, data: &str) -> (Value, Vec<Vec<String>>) {
    let out = files.path("predictions.csv");
    let answer = json(&format!("predict --model {} --data {data} --out {out}", files.path("model.json")));
    let text = files.text("predictions.csv");
    let headings: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    assert_eq!(answer["columns"], json!(headings));
    (answer, cells(&text))
}

/// Single precision of the rows is all that differs from a calculation by hand.
fn close(found: &str, expected: f64) {
    let found: f64 = found.parse().unwrap();
    assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0), "{found} {expected}");
}

#[test]
fn predictions_of_numbers() {
    let files = Files::new("model_numbers", Target::Number);
    json(&files.train());
    let model = files.json("model.json");
    let rows = cells(&files.text("test.csv"));
    let (answer, predictions) = predict(&files, &files.path("test.csv"));
    assert_eq!((&answer["rows"], &answer["target"]), (&json!(300), &json!("y")));
    assert_eq!((&answer["task"], predictions.len()), (&json!("regression"), 300));
    let decode = |score: f64| score * number(&model, "/target/scale") + number(&model, "/target/shift");
    for (row, prediction) in rows.iter().zip(&predictions) {
        close(&prediction[0], decode(scores(&model, row)[0]));
    }
    // Metrics are those of the predictions, in the unit of the target.
    let found = files.evaluate();
    let pairs: Vec<(f64, f64)> = rows
        .iter()
        .zip(&predictions)
        .map(|(row, p)| (row[3].parse().unwrap(), p[0].parse().unwrap()))
        .collect();
    let mean = pairs.iter().map(|(y, _)| y).sum::<f64>() / 300.0;
    let squares: f64 = pairs.iter().map(|(y, p)| (y - p).powi(2)).sum();
    let spread: f64 = pairs.iter().map(|(y, _)| (y - mean).powi(2)).sum();
    let absolute = pairs.iter().map(|(y, p)| (y - p).abs()).sum::<f64>() / 300.0;
    for (name, expected) in
        [("r2", 1.0 - squares / spread), ("rmse", (squares / 300.0).sqrt()), ("mae", absolute)]
    {
        assert!((number(&found, &format!("/metrics/{name}")) - expected).abs() < 1e-5, "{name} {expected}");
    }
}

/// A table whose first column is called `prediction` is a file of somebody else.
#[test]
fn predictions_replace_predictions_only() {
    let files = Files::new("model_overwrite", Target::Number);
    json(&files.train());
    let out = files.path("out.csv");
    let predict =
        format!("predict --model {} --data {} --out {out}", files.path("model.json"), files.path("test.csv"));
    for other in [
        "prediction,age,income\n1,30,4000\n",
        "prediction,probability of rain\nyes,0.3\n",
        "prediction\nrain\n",
    ] {
        files.write("out.csv", other);
        refused(&predict, &["--out", "exists and is not a file of predictions"]);
        assert_eq!(files.text("out.csv"), other);
    }
    std::fs::remove_file(&out).unwrap();
    json(&predict);
    let first = files.text("out.csv");
    json(&predict);
    assert_eq!(files.text("out.csv"), first);
}

#[test]
fn predictions_of_classes() {
    for (name, target, headings) in [
        ("model_two", Target::TwoWords, &["prediction", "probability of no", "probability of yes"][..]),
        ("model_bit", Target::Bit, &["prediction", "probability of 0", "probability of 1"]),
        (
            "model_three",
            Target::ThreeWords,
            &["prediction", "probability of low", "probability of mid", "probability of top"],
        ),
        (
            "model_from_one",
            Target::OneToThree,
            &["prediction", "probability of 1", "probability of 2", "probability of 3"],
        ),
    ] {
        let files = Files::new(name, target);
        let trained = json(&format!("{} --task classification", files.train()));
        let classes = trained["classes"].as_array().unwrap().clone();
        let model = files.json("model.json");
        let rows = cells(&files.text("test.csv"));
        // The target need not be there, nor columns in order.
        let without: String = ["colour,b,a\n".to_string()]
            .into_iter()
            .chain(rows.iter().map(|row| format!("{},{},{}\n", row[2], row[1], row[0])))
            .collect();
        let (answer, predictions) = predict(&files, &files.write("without.csv", &without));
        assert_eq!((&answer["columns"], &answer["rows"]), (&json!(headings), &json!(300)));
        assert_eq!(predictions, predict(&files, &files.path("test.csv")).1);
        let mut right = 0;
        for (row, prediction) in rows.iter().zip(&predictions) {
            let mut scores = scores(&model, row);
            if scores.len() == 1 {
                scores.insert(0, 0.0);
            }
            let total: f64 = scores.iter().map(|score| score.exp()).sum();
            for (cell, score) in prediction[1..].iter().zip(&scores) {
                close(cell, score.exp() / total);
            }
            let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
            assert_eq!(json!(prediction[0]), classes[best], "{name}");
            right += u32::from(prediction[0] == row[3]);
        }
        assert_eq!(files.evaluate()["metrics"]["accuracy"], f64::from(right) / 300.0);
    }
    let files = Files::new("model_hinge", Target::TwoWords);
    json(&format!("{} --loss hinge", files.train()));
    let (answer, predictions) = predict(&files, &files.path("test.csv"));
    assert_eq!(answer["columns"], json!(["prediction", "score"]));
    let positive = |row: &Vec<String>| row[1].parse::<f64>().unwrap() > 0.0;
    assert!(predictions.iter().all(|row| (row[0] == "yes") == positive(row)));
}

/// Classes with commas and quotes survive the way out.
#[test]
fn names_of_classes_are_quoted() {
    let files = Files::new("model_quotes", Target::TwoWords);
    for name in ["public.csv", "private.csv", "test.csv"] {
        let text = files.text(name).replace(",no\n", ",\"no, \"\"never\"\"\"\n");
        files.write(name, &text);
    }
    json(&files.train());
    assert!(number(&files.evaluate(), "/metrics/accuracy") > 0.8);
    json(&format!(
        "predict --model {0}/model.json --data {0}/test.csv --out {0}/p.csv",
        files.folder.display()
    ));
    let text = files.text("p.csv");
    assert!(
        text.starts_with("prediction,\"probability of no, \"\"never\"\"\",probability of yes\n"),
        "{text}"
    );
    assert!(text.contains("\n\"no, \"\"never\"\"\",0."));
}

#[test]
fn evaluation_leaves_out_unknown_labels_and_warns() {
    let files = Files::new("model_unknown", Target::TwoWords);
    json(&files.train());
    let known = files.evaluate();
    assert_eq!((&known["rows"], &known["rows_without_target"]), (&json!(300), &json!(0)));
    assert!(
        number(&known, "/model_epsilon") <= 4.0
            && known["not_covered"].as_str().unwrap().contains("NO epsilon")
    );
    let mut text = files.text("test.csv");
    text.push_str("0.5,50,red,perhaps\n0.5,50,red,\n0.1,49,violet,?\n");
    files.write("test.csv", &text);
    let found = files.evaluate();
    assert_eq!((&found["rows"], &found["rows_without_target"]), (&json!(300), &json!(3)));
    assert_eq!(found["metrics"], known["metrics"]);
    let ran = run(&format!("evaluate --model {0}/model.json --data {0}/test.csv", files.folder.display()));
    assert!(ran.stdout.contains("accuracy") && ran.stdout.contains("AUC"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("NO epsilon") && ran.stderr.contains("3 rows without a known y"),
        "{}",
        ran.stderr
    );
    // No label that the model knows, or none at all.
    let evaluate = |text: &str, words: &[&str]| {
        let data = files.write("odd.csv", text);
        refused(&format!("evaluate --model {} --data {data}", files.path("model.json")), words);
    };
    evaluate("a,b,colour,y\n1,50,red,perhaps\n", &["odd.csv", "known y"]);
    evaluate("a,b,colour\n1,50,red\n", &["odd.csv", "y"]);
    evaluate("a,b,colour,y\n", &["odd.csv", "no rows"]);
    // One class alone has no AUC.
    let data = files.write("one.csv", "a,b,colour,y\n1,50,red,yes\n0.9,40,red,yes\n");
    let found = json(&format!("evaluate --model {} --data {data}", files.path("model.json")));
    assert_eq!((&found["metrics"]["auc"], &found["rows"]), (&Value::Null, &json!(2)));
}

/// Numbers out of the model's classes are unknown to it, not the nearest.
#[test]
fn numbers_that_are_no_classes() {
    let files = Files::new("model_classes", Target::OneToThree);
    json(&format!("{} --task classification", files.train()));
    let mut text = files.text("test.csv");
    text.push_str("0.5,50,red,4\n0.5,50,red,0\n0.1,49,blue,1.5\n0.1,49,blue,nan\n");
    files.write("test.csv", &text);
    let found = files.evaluate();
    assert_eq!((&found["rows"], &found["rows_without_target"]), (&json!(300), &json!(4)));
}

/// Damaged, truncated, newer and other files are refused; nothing is written.
#[test]
fn files_that_are_no_models() {
    let files = Files::new("model_damaged", Target::Number);
    json(&files.train());
    let text = files.text("model.json");
    let newer = text.replace("semidp-model/1", "semidp-model/2");
    let digit = text.rfind("0.").unwrap();
    let edited = format!("{}1.{}", &text[..digit], &text[digit + 2..]);
    let out = files.write("p.csv", "prediction\n0.25\n");
    let bad = files.write("bad.json", "");
    let before = entries(&files.folder);
    for (content, word) in [
        (text[..text.len() / 2].to_string(), "not JSON"),
        (text[..text.len() - 3].to_string(), "not JSON"),
        (edited, "checksum"),
        (newer, "semidp-model/2"),
        (String::new(), "not JSON"),
        ("{}".into(), "format"),
        ("[1]".into(), "format"),
        (text.replace("\"checksum\"", "\"chequesum\""), "checksum"),
        (files.json("model.json")["certificate"].to_string(), "format"),
    ] {
        files.write("bad.json", &content);
        for command in [
            format!("evaluate --data {}", files.path("test.csv")),
            format!("predict --data {} --out {out}", files.path("test.csv")),
        ] {
            refused(&format!("{command} --model {bad}"), &["--model", "bad.json", word]);
        }
        assert_eq!(
            (entries(&files.folder), files.text("p.csv")),
            (before.clone(), "prediction\n0.25\n".into())
        );
    }
    for (arguments, words) in [
        (format!("--model {bad}.no --data {}", files.path("test.csv")), &["--model", "bad.json.no"][..]),
        (format!("--model {} --data {bad}", files.path("model.json")), &["no known format"]),
        (format!("--model {} --data {}.no.csv", files.path("model.json"), bad), &["bad.json.no.csv"]),
    ] {
        refused(&format!("evaluate {arguments}"), words);
        refused(&format!("predict {arguments} --out {out}"), words);
        assert_eq!(
            (entries(&files.folder), files.text("p.csv")),
            (before.clone(), "prediction\n0.25\n".into())
        );
    }
    let model = files.path("model.json");
    refused(
        &format!("predict --model {model} --data {0} --out {0}", files.path("test.csv")),
        &["--data", "--out"],
    );
    refused(
        &format!("predict --model {model} --data {} --out {model}", files.path("test.csv")),
        &["--model", "--out"],
    );
    let lacking = files.write("lacking.csv", "a,b\n1,TOPSECRET\n");
    let ran = run(&format!("predict --model {model} --data {lacking} --out {out}"));
    check_refusal("predict", &ran, &["lacking.csv", "colour"]);
    assert!(!ran.stderr.contains("TOPSECRET") && files.text("p.csv") == "prediction\n0.25\n");
}

/// The files of the UCI archive as they are: public and private slices of the training file, and the test file.
#[test]
fn the_adult_data_set() {
    let folder = folder("model_adult");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/adult");
    let text = |name: &str| {
        let mut text = String::new();
        let file = std::fs::File::open(source.join(name)).unwrap();
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
        text
    };
    let data = text("adult.data.gz");
    let lines: Vec<&str> = data.lines().filter(|line| !line.is_empty()).collect();
    for (name, rows) in [("public", &lines[..400]), ("private", &lines[400..6400])] {
        std::fs::write(folder.join(format!("{name}.data")), rows.join("\n")).unwrap();
        std::fs::write(folder.join(format!("{name}.names")), text("adult.names.gz")).unwrap();
    }
    let at = folder.display();
    let train = format!(
        "train --private {at}/private.data --public {at}/public.data --target class --epsilon 2 --delta 1e-5 --steps 100 --seed 1 \
         --out {at}/model.json"
    );
    let evaluate =
        format!("evaluate --model {at}/model.json --data {}", source.join("adult.test.gz").display());
    let answer = json(&train);
    assert_eq!(answer["classes"], json!(["<=50K", ">50K"]));
    let semi = json(&evaluate);
    assert_eq!((&semi["rows"], &semi["rows_without_target"]), (&json!(16281), &json!(0)));
    assert!(number(&semi, "/metrics/accuracy") > 0.83 && number(&semi, "/metrics/auc") > 0.88, "{semi}");
    json(&format!("{train} --algorithm throw-away"));
    let thrown = json(&evaluate);
    assert!(number(&semi, "/metrics/auc") > number(&thrown, "/metrics/auc"), "{semi} {thrown}");
}
