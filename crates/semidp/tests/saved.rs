//! A model from its file, at work on tables.

use semidp::model::{Columns, Predictor, SavedModel, Task};
use semidp::train::Model;
use semidp::train::metrics::Quality;
use semidp_accounting::{Adjacency, Certificate, Delta, Trust};
use semidp_table::Schema;
use std::path::{Path, PathBuf};

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("saved_{name}.csv"));
    std::fs::write(&path, text).unwrap();
    path
}

/// A model of these weights for a public file, written and read back.
fn predictor(name: &str, text: &str, target: &str, task: Task, loss: &str, weights: Vec<f64>) -> Predictor {
    let path = file(name, text);
    let schema = Schema::infer(&path, None).unwrap().schema;
    let columns = Columns::learn(schema, target, task, Some(&path)).unwrap();
    let (features, outputs) =
        (columns.features().len(), columns.target().loss(Some(loss)).unwrap().0.outputs());
    let model =
        Model::zero(features, outputs, weights.len() == outputs * (features + 1)).with_weights(weights);
    let delta = Delta::new(0.0).unwrap();
    let certificate =
        Certificate::issue(Vec::new(), Adjacency::ReplaceOne, Trust::Central, delta, "custom: none").unwrap();
    let saved = SavedModel::new(&columns, &model, loss, "throw-away", certificate);
    Predictor::new(SavedModel::from_json(&saved.to_json().unwrap()).unwrap()).unwrap()
}

fn predictions(predictor: &Predictor, path: &Path) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let count = predictor.predict(path, &mut |cells| rows.push(cells.to_vec())).unwrap();
    assert_eq!(count, rows.len() as u64);
    rows
}

/// The target may stand before, between or after the features, or be missing.
#[test]
fn the_target_may_stand_anywhere() {
    for header in ["y,a,b", "a,y,b", "a,b,y"] {
        let text = |rows: &[[f64; 3]]| {
            let line = |row: &[f64; 3]| {
                let cell = |name: &str| {
                    row[["a", "b", "y"].iter().position(|known| *known == name).unwrap()].to_string()
                };
                header.split(',').map(cell).collect::<Vec<_>>().join(",")
            };
            format!("{header}\n{}\n", rows.iter().map(line).collect::<Vec<_>>().join("\n"))
        };
        let public = text(&[[0.0, 10.0, 1.0], [2.0, 30.0, 5.0], [4.0, 20.0, 3.0]]);
        let predictor = predictor("anywhere", &public, "y", Task::Regression, "squared", vec![1.0, 0.0]);
        let data = file("anywhere_data", "b,a\n20,2\n20,4\n,\n");
        let found: Vec<f64> =
            predictions(&predictor, &data).iter().map(|row| row[0].parse().unwrap()).collect();
        // A spread of a is one of y; both have the spread 2 times a constant, and gaps are means.
        assert!((found[0] - 3.0).abs() < 1e-5 && (found[1] - 5.0).abs() < 1e-5, "{header}: {found:?}");
        assert!((found[2] - 3.0).abs() < 1e-5, "{header}: {found:?}");
        assert_eq!(predictor.headings(), ["prediction"]);
    }
}

/// A table of indicators alone, of which the first feature is one.
#[test]
fn tables_of_categories() {
    let public = "c,y\nred,no\nblue,yes\nred,no\ngreen,yes\n";
    // blue, green, red, other, intercept.
    let weights = vec![2.0, 1.0, -3.0, 0.5, 0.25];
    let predictor = predictor("categories", public, "y", Task::Classification, "logistic", weights);
    assert_eq!(predictor.headings(), ["prediction", "probability of no", "probability of yes"]);
    let data = file("categories_data", "c\nred\nblue\nviolet\n\nother\n");
    for (row, score) in predictions(&predictor, &data).iter().zip([-2.75, 2.25, 0.75, 0.75, 0.75f64]) {
        let yes: f64 = row[2].parse().unwrap();
        assert!((yes - 1.0 / (1.0 + (-score).exp())).abs() < 1e-12);
        assert_eq!(row[0], if score > 0.0 { "yes" } else { "no" });
    }
    let data = file("categories_known", "y,c\nno,red\nyes,blue\nno,green\nmaybe,red\n,red\n");
    let (found, unknown) = predictor.evaluate(&data).unwrap();
    let found = found.unwrap();
    assert_eq!((found.rows, unknown), (3, 2));
    assert_eq!(found.kind, Quality::Classification { accuracy: 2.0 / 3.0, auc: Some(1.0) });
}

/// Scores too large for probabilities, and numbers too large for rows, are still numbers.
#[test]
fn huge_values_stay_numbers() {
    let public = "x,y\n1,0\n2,1\n3,1\n";
    let predictor = predictor("huge", public, "y", Task::Classification, "logistic", vec![1e30, 0.0]);
    let data = file("huge_data", "x\n1e300\n-1e300\ninf\nnan\nword\n");
    for row in predictions(&predictor, &data) {
        let (no, yes): (f64, f64) = (row[1].parse().unwrap(), row[2].parse().unwrap());
        assert!((no + yes - 1.0).abs() < 1e-12, "{row:?}");
    }
}
