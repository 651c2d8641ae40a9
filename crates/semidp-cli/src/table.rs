//! Tables for people.

use crate::printable;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// Wide enough for a sentence, narrow enough for a terminal.
const WIDTH: u16 = 100;

/// Facts, one a row: what it is, and its value.
pub fn facts(rows: Vec<(String, String)>) -> String {
    let mut table = new();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(WIDTH);
    table.add_rows(rows.into_iter().map(|(name, value)| [cell(&name), cell(&value)]));
    table.trim_fmt()
}

/// Numbers under headings, all to the right; a heading breaks where it says so.
pub fn columns(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = new();
    table.set_header(headings.to_vec());
    table.add_rows(rows.iter().map(|row| row.iter().map(|value| cell(value))));
    table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.trim_fmt()
}

/// Characters of a cell that are printed: the layout takes a time that is quadratic in the length of a word. JSON answers have all of it.
const MAX_CELL: usize = 2000;

/// A value as it is safe to print, before the layout counts its characters and breaks its lines.
fn cell(value: &str) -> String {
    match value.char_indices().nth(MAX_CELL) {
        Some((end, _)) => format!("{} ...", printable::line(&value[..end])),
        None => printable::line(value).into_owned(),
    }
}

fn new() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table
}

/// A paragraph broken into lines that fit beside the tables; all but the first start with `indent`.
pub fn wrap(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in printable::page(text).split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.trim().is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= usize::from(WIDTH) {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines.join("\n")
}
