//! The documents must not point at what is not there: relative links in every Markdown file, and
//! the paths and tests that `docs/paper-map.md` names.

use crate::process::Failure;
use std::fs;
use std::path::{Path, PathBuf};

/// The map from the paper to files and tests; its table rows are checked more strictly.
const PAPER_MAP: &str = "docs/paper-map.md";

/// Checks every document below `root`; a failure lists everything that is missing.
pub fn check(root: &Path) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for path in documents(root).map_err(|error| Failure::new(format!("cannot list documents: {error}")))? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = read(&path)?;
        let folder = path.parent().unwrap_or(root);
        for (line, target) in links(&text) {
            if !folder.join(&target).exists() {
                missing.push(format!("{name}:{line}: the link to `{target}` leads nowhere"));
            }
        }
    }
    let map = read(&root.join(PAPER_MAP))?;
    for (line, reference) in references(&map) {
        missing.extend(look_up(root, &reference).map(|problem| format!("{PAPER_MAP}:{line}: {problem}")));
    }
    for problem in &missing {
        eprintln!("{problem}");
    }
    match missing.len() {
        0 => Ok(()),
        1 => Err(Failure::new("one dead reference in the documents")),
        many => Err(Failure::new(format!("{many} dead references in the documents"))),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

/// The Markdown files at the root, and those at any depth in `docs` and `crates`.
fn documents(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(root, false, &mut found)?;
    for folder in ["docs", "crates"] {
        if root.join(folder).is_dir() {
            collect(&root.join(folder), true, &mut found)?;
        }
    }
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, deep: bool, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if deep && name != "target" && !name.starts_with('.') {
                collect(&path, deep, found)?;
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    Ok(())
}

/// Numbered lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            return None;
        }
        (!in_code).then_some((index + 1, line))
    })
}

/// The files that Markdown links point at, with their line numbers: `[text](target)` and
/// `[name]: target`, without anchors. Web addresses and Rust paths are not files.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        for (start, _) in line.match_indices("](") {
            let rest = &line[start + 2..];
            found.extend(rest.find(')').and_then(|end| file_of(&rest[..end])).map(|file| (number, file)));
        }
        if line.trim_start().starts_with('[')
            && let Some((_, target)) = line.split_once("]: ")
        {
            found.extend(file_of(target).map(|file| (number, file)));
        }
    }
    found
}

/// The file that a link's target names, if it names one.
fn file_of(target: &str) -> Option<String> {
    let target = target.split_whitespace().next()?.trim_start_matches('<').trim_end_matches('>');
    if target.contains("://") || target.contains("::") || target.starts_with("mailto:") {
        return None;
    }
    let file = target.split('#').next()?;
    (!file.is_empty()).then(|| file.to_string())
}

/// The line with everything between backticks removed.
fn without_code(line: &str) -> String {
    let mut pieces = line.split('`');
    let first = pieces.next().unwrap_or_default().to_string();
    // Odd pieces are code; an unpaired backtick is a plain character.
    let rest: Vec<&str> = pieces.collect();
    let paired = rest.len() / 2 * 2;
    let mut outside = first;
    for (index, piece) in rest.iter().enumerate() {
        if index % 2 == 1 || index >= paired {
            outside.push_str(piece);
        }
    }
    outside
}

/// A path that a table row names in backticks, perhaps with a test in that file.
#[derive(Debug, PartialEq)]
struct Reference {
    path: String,
    test: Option<String>,
}

/// Every path in backticks in a table row, with its line number. A path is relative to the root.
fn references(text: &str) -> Vec<(usize, Reference)> {
    let rows = prose(text).filter(|(_, line)| line.trim_start().starts_with('|'));
    rows.flat_map(|(number, line)| {
        let codes = line.split('`').skip(1).step_by(2);
        codes.filter_map(reference_of).map(move |reference| (number, reference)).collect::<Vec<_>>()
    })
    .collect()
}

/// Reads `some/file.rs` or `some/file.rs::test_name`; other code is not a reference.
fn reference_of(code: &str) -> Option<Reference> {
    let (path, test) = match code.split_once("::") {
        Some((path, names)) => (path, names.rsplit("::").next().map(str::to_string)),
        None => (code, None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let is_path = path.chars().all(plain) && (path.contains('/') || path.ends_with(".rs"));
    is_path.then(|| Reference { path: path.to_string(), test })
}

/// What is wrong with a reference, if anything.
fn look_up(root: &Path, reference: &Reference) -> Option<String> {
    let Reference { path, test } = reference;
    let file = root.join(path);
    if !file.exists() {
        return Some(format!("`{path}` does not exist"));
    }
    let test = test.as_ref()?;
    match fs::read_to_string(&file) {
        Ok(source) if defines(&source, test) => None,
        Ok(_) => Some(format!("`{path}` has no `fn {test}`")),
        Err(error) => Some(format!("`{path}` cannot be read: {error}")),
    }
}

/// Whether the source has a function of exactly this name.
fn defines(source: &str, name: &str) -> bool {
    let signature = format!("fn {name}");
    source.match_indices(&signature).any(|(start, _)| {
        let next = source[start + signature.len()..].chars().next();
        !next.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found_and_others_are_not() {
        let text = "\
See [one](docs/a.md), ![two](../b.svg \"title\") and [three](c.md#part).
[web](https://example.org/x) [here](#anchor) [mail](mailto:a@b.c) [rust](crate::Event)
`[not a link](code.md)` but [yes](d.md)
```
[in a block](e.md)
```
[name]: f/g.md
[other]: <h.md>";
        let expected =
            [(1, "docs/a.md"), (1, "../b.svg"), (1, "c.md"), (3, "d.md"), (7, "f/g.md"), (8, "h.md")];
        assert_eq!(links(text), expected.map(|(line, file)| (line, file.to_string())));
    }

    #[test]
    fn code_is_cut_out() {
        assert_eq!(without_code("a `b` c `d` e"), "a  c  e");
        assert_eq!(without_code("a ` b"), "a  b");
        assert_eq!(without_code("`a` [b](c) ` d"), " [b](c)  d");
    }

    #[test]
    fn references_are_the_paths_in_table_rows() {
        let text = "\
`not/a/row.rs`
| Theorem 1 | `crates/a/src/b.rs` | `crates/a/tests/c.rs::holds` and `lib.rs::tests::too` |
| $x$ | `Event::Gaussian` `σ/C` `x / y` `docs/` | |";
        let reference = |path: &str, test: Option<&str>| Reference {
            path: path.to_string(),
            test: test.map(str::to_string),
        };
        let expected = vec![
            (2, reference("crates/a/src/b.rs", None)),
            (2, reference("crates/a/tests/c.rs", Some("holds"))),
            (2, reference("lib.rs", Some("too"))),
            (3, reference("docs/", None)),
        ];
        assert_eq!(references(text), expected);
    }

    #[test]
    fn a_function_is_found_by_its_whole_name() {
        assert!(defines("    fn holds() {}", "holds"));
        assert!(defines("fn holds<T>()", "holds"));
        assert!(!defines("fn holds_for_all() {}", "holds"));
        assert!(!defines("let holds = 1;", "holds"));
    }

    #[test]
    fn look_up_names_what_is_missing() {
        let root = crate::process::root();
        let this = "crates/xtask/src/documents.rs";
        let ask = |path: &str, test: Option<&str>| {
            look_up(&root, &Reference { path: path.into(), test: test.map(str::to_string) })
        };
        assert_eq!(ask(this, None), None);
        assert_eq!(ask(this, Some("look_up_names_what_is_missing")), None);
        assert!(ask("crates/nowhere.rs", None).unwrap().contains("does not exist"));
        assert!(ask(this, Some("absent_test")).unwrap().contains("has no"));
    }
}
