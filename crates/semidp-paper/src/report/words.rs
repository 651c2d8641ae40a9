//! Names for programs as words for people.

/// Longer ones first where one begins another.
const NAMES: [(&str, &str); 11] = [
    ("tuned_on_validation_data_leaks", "tuned on validation data (leaks)"),
    ("over_papers", "over the paper's"),
    ("minus_paper", "minus the paper's"),
    ("_paper_after", " (paper's) after"),
    ("algorithm_1", "Algorithm 1"),
    ("pda_md", "PDA-MD"),
    ("dp_sgd", "DP-SGD"),
    ("throw_away", "throw-away"),
    ("add_remove", "add/remove"),
    ("replace_one", "replace-one"),
    ("weighted_gaussian", "weighted Gaussian"),
];

/// A heading or the name of a setting, in words.
pub fn words(name: &str) -> String {
    let mut text = name.to_string();
    for (from, to) in NAMES {
        text = text.replace(from, to);
    }
    if let Some(whose) = text.strip_suffix("_paper") {
        text = format!("{whose} (paper's)");
    }
    text.replace('_', " ")
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_paper() {
        assert_eq!(words("algorithm_1_paper"), "Algorithm 1 (paper's)");
        assert_eq!(words("dp_sgd_end"), "DP-SGD end");
        assert_eq!(words("distance_to_limit_over_papers"), "distance to limit over the paper's");
        assert_eq!(words("autopilot_minus_paper_after_luck"), "autopilot minus the paper's after luck");
        assert_eq!(
            words("algorithm_1_tuned_on_validation_data_leaks"),
            "Algorithm 1 tuned on validation data (leaks)"
        );
    }
}
