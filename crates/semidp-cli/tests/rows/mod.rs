//! Tables for tests of training.

// Each test crate uses its own part of this module.
#![allow(dead_code)]

use crate::common::{folder, json, run};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What the target is.
#[derive(Clone, Copy, PartialEq)]
pub enum Target {
    /// About 100 + 3·score.
    Number,
    /// `no` or `yes`, as the score is negative or not.
    TwoWords,
    /// 0 or 1.
    Bit,
    /// `low`, `mid` or `top`.
    ThreeWords,
    /// 1, 2 or 3.
    OneToThree,
}

/// Numbers from −1 to 1 that look random.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Rows `a,b,colour,y`: a from −1 to 1, b from 40 to 60, three colours, and a target that depends on all of them.
pub fn rows(count: usize, target: Target, seed: u64) -> String {
    let mut numbers = Numbers(seed);
    let mut text = "a,b,colour,y\n".to_string();
    for row in 0..count {
        let (a, b) = (numbers.draw(), 50.0 + 10.0 * numbers.draw());
        let colour = ["red", "green", "blue"][row % 3];
        let score =
            2.0 * a - 0.1 * (b - 50.0) + if colour == "red" { 0.6 } else { -0.3 } + 0.3 * numbers.draw();
        let step = usize::from(score > -0.7) + usize::from(score > 0.7);
        let y = match target {
            Target::Number => (100.0 + 3.0 * score).to_string(),
            Target::TwoWords => ["no", "yes"][usize::from(score >= 0.0)].into(),
            Target::Bit => u8::from(score >= 0.0).to_string(),
            Target::ThreeWords => ["low", "mid", "top"][step].into(),
            Target::OneToThree => (1 + step).to_string(),
        };
        let _ = writeln!(text, "{a},{b},{colour},{y}");
    }
    text
}

/// A folder with files of public, private and test rows.
pub struct Files {
    pub folder: PathBuf,
}

impl Files {
    pub fn new(name: &str, target: Target) -> Self {
        let files = Self { folder: folder(name) };
        files.write("public.csv", &rows(60, target, 1));
        files.write("private.csv", &rows(900, target, 2));
        files.write("test.csv", &rows(300, target, 3));
        files
    }

    /// Writes a file, and tells its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// `train` on these files without a budget, few steps, to `model.json`.
    pub fn unpaid(&self) -> String {
        let at = self.folder.display();
        format!(
            "train --private {at}/private.csv --public {at}/public.csv --target y --steps 20 --out {at}/model.json"
        )
    }

    /// The same with a budget.
    pub fn paid(&self) -> String {
        format!("{} --epsilon 4 --delta 1e-5", self.unpaid())
    }

    /// The same with a seed: how good a model is must not depend on the day.
    pub fn train(&self) -> String {
        format!("{} --seed 1", self.paid())
    }

    /// The metrics of `model.json` on the test rows.
    pub fn evaluate(&self) -> Value {
        json(&format!("evaluate --model {} --data {}", self.path("model.json"), self.path("test.csv")))
    }
}

/// A hyper-parameter of an answer: its value and its source.
pub fn hyper(answer: &Value, name: &str) -> (Value, String) {
    let found = &answer["hyperparameters"][name];
    assert!(found.is_object(), "no {name} in {}", answer["hyperparameters"]);
    (found["value"].clone(), found["source"].as_str().unwrap().to_string())
}

/// A schema file from public rows.
pub fn schema(folder: &Path) -> String {
    let (public, out) = (folder.join("public.csv"), folder.join("schema.json"));
    let ran = run(&format!("schema --public {} --out {}", public.display(), out.display()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    out.display().to_string()
}
