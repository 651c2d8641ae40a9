//! Tables as HTML: a mean and its standard error share a cell, and columns have as many digits as they need.

use super::words::{escape, words};
use crate::{Cell, Table};
use std::fmt::Write;

/// A table of more columns or rows is folded. So many columns of numbers fit a sheet of paper.
const COLUMNS: usize = 13;
const ROWS: usize = 20;
/// From so many columns on letters are small on paper, and one that was unfolded has a sheet that lies on its side.
const WIDE: usize = 12;
/// Losses, shares and what the paper printed have so many decimals at most.
const DECIMALS: usize = 4;

/// What one column of the page shows.
struct Column {
    /// Of the table.
    place: usize,
    /// Where the standard error is, if there is one.
    error: Option<usize>,
    /// The same number of decimals for all, if no number needs more.
    decimals: Option<usize>,
    is_text: bool,
}

/// Columns of the page: a standard error goes with the column before it, and one without any entry is left out.
fn columns(table: &Table) -> Vec<Column> {
    let is_error =
        |heading: &str| heading.ends_with("standard_error") || heading.starts_with("standard_error_");
    let mut found: Vec<Column> = Vec::new();
    for (place, heading) in table.headings.iter().enumerate() {
        if table.rows.iter().all(|row| row[place] == Cell::Empty) {
            continue;
        }
        match found.last_mut() {
            Some(before) if is_error(heading) && before.error.is_none() && !before.is_text => {
                before.error = Some(place);
            }
            _ => found.push(Column {
                place,
                error: None,
                decimals: decimals(table, place),
                is_text: table.rows.iter().any(|row| matches!(row[place], Cell::Text(_))),
            }),
        }
    }
    found
}

/// As many decimals as the number of a column that needs the most, but four where those show at least two digits of each.
fn decimals(table: &Table, place: usize) -> Option<usize> {
    let numbers = table.rows.iter().filter_map(|row| match row[place] {
        Cell::Number(value) if value != 0.0 => Some(value),
        _ => None,
    });
    let numbers: Vec<f64> = numbers.collect();
    if !numbers.iter().all(|value| value.abs() < 1e6) {
        return None;
    }
    let needed = |value: &f64| format!("{value}").split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let most = numbers.iter().map(needed).max().unwrap_or(0);
    let are_of_a_size = numbers.iter().all(|value| (1e-3..1e4).contains(&value.abs()));
    if most <= DECIMALS { Some(most) } else { are_of_a_size.then_some(DECIMALS) }
}

/// Whether it is shown without being asked for.
pub fn fits(table: &Table) -> bool {
    columns(table).len() <= COLUMNS && table.rows.len() <= ROWS
}

/// A table with its caption.
pub fn open(page: &mut String, table: &Table) {
    let (name, title) = (escape(&table.name), escape(&table.title));
    let _ = write!(
        page,
        "<figure class=\"table\" id=\"table-{name}\"><figcaption>{title} <code>{name}.csv</code></figcaption>"
    );
    body(page, table);
    page.push_str("</figure>\n");
}

/// A table that is shown when it is asked for.
pub fn folded(page: &mut String, table: &Table) {
    let (name, title) = (escape(&table.name), escape(&table.title));
    let _ = write!(
        page,
        "<details class=\"table\" id=\"table-{name}\"><summary>{title} ({} rows) <code>{name}.csv</code></summary>",
        table.rows.len()
    );
    body(page, table);
    page.push_str("</details>\n");
}

fn body(page: &mut String, table: &Table) {
    let columns = columns(table);
    let class = if columns.len() >= WIDE { "scroll wide" } else { "scroll" };
    let _ = write!(page, "<div class=\"{class}\"><table><thead><tr>");
    for column in &columns {
        let heading = escape(&words(&table.headings[column.place]));
        let error = if column.error.is_some() { " ±" } else { "" };
        let _ = write!(page, "<th scope=\"col\">{heading}{error}</th>");
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for column in &columns {
            let class = if column.is_text { " class=\"text\"" } else { "" };
            let _ = write!(page, "<td{class}>{}</td>", shown(row, column));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>");
}

fn shown(row: &[Cell], column: &Column) -> String {
    match &row[column.place] {
        Cell::Number(value) => match column.error.map(|place| &row[place]) {
            Some(Cell::Number(error)) => measured(*value, *error),
            _ => column.decimals.map_or_else(|| short(*value), |digits| format!("{value:.digits$}")),
        },
        Cell::Text(text) => escape(text),
        Cell::Empty => String::new(),
    }
}

/// A mean with its standard error, both to the second digit of the error, or to the first if that has four decimals.
fn measured(mean: f64, error: f64) -> String {
    let is_plain = |size: f64| (1e-5..1e5).contains(&size);
    if !is_plain(error) || !(mean == 0.0 || is_plain(mean.abs())) {
        return format!("{} ± {}", short(mean), two_digits(error));
    }
    let first = (-error.log10().floor() as i32).max(-1);
    let digits = if first == DECIMALS as i32 { DECIMALS } else { (first + 1) as usize };
    format!("{mean:.digits$} ± {error:.digits$}")
}

fn two_digits(error: f64) -> String {
    if error == 0.0 || !error.is_finite() { format!("{error}") } else { format!("{error:.1e}") }
}

/// Five significant digits, or fewer if there are no more.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || value.fract() == 0.0 && size < 1e9 {
        return format!("{value}");
    }
    if !(1e-3..1e6).contains(&size) {
        let (cut, all) = (format!("{value:.3e}"), format!("{value:e}"));
        return if all.len() < cut.len() { all } else { cut };
    }
    let digits = (4 - size.log10().floor() as i32).max(0) as usize;
    let (cut, all) = (format!("{value:.digits$}"), format!("{value}"));
    if all.len() < cut.len() { all } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(headings: &[&str], rows: &[&[f64]]) -> Table {
        Table {
            name: "t".into(),
            title: "figures".into(),
            headings: headings.iter().map(|heading| (*heading).into()).collect(),
            rows: rows.iter().map(|row| row.iter().map(|value| Cell::Number(*value)).collect()).collect(),
        }
    }

    #[test]
    fn errors_share_the_cell_of_their_mean() {
        let with = table(
            &["public_share", "dp_sgd", "dp_sgd_standard_error", "standard_errors_from_expected"],
            &[&[0.1, 1.123456, 0.0123, 2.0], &[0.25, 87.5, 4.06, 0.123456], &[0.5, 1.07, 0.00047, 1.0]],
        );
        let mut page = String::new();
        open(&mut page, &with);
        assert_eq!(page.matches("<th ").count(), 3, "{page}");
        for part in [
            "<td>0.10</td>",
            "<td>1.123 ± 0.012</td>",
            "<td>87.5 ± 4.1</td>",
            "DP-SGD ±",
            "<td>0.1235</td>",
            "<td>1.0700 ± 0.0005</td>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn digits_are_few() {
        let shorts = [0.1, 1.0 / 3.0, 1234567.5, 1e-9, 12.0, -0.000_5].map(short);
        assert_eq!(shorts, ["0.1", "0.33333", "1.235e6", "1e-9", "12", "-5e-4"]);
        assert_eq!(measured(1.5, 0.0), "1.5 ± 0");
        assert_eq!(measured(724_215.3, 59_012.0), "724215 ± 5.9e4");
        assert_eq!(measured(1.0, f64::NAN), "1 ± NaN");
        assert_eq!(
            (measured(2.0, 0.000_012), measured(2.0, 250.0)),
            ("2.000000 ± 0.000012".into(), "2 ± 250".into())
        );
        // As the paper printed them.
        let printed = table(&["algorithm_1_paper"], &[&[1.188], &[1689.5905]]);
        let mut page = String::new();
        open(&mut page, &printed);
        assert!(page.contains("<td>1.1880</td>") && page.contains("<td>1689.5905</td>"), "{page}");
    }

    /// Figures of the paper are left out of smaller problems, and so are their columns.
    #[test]
    fn columns_without_an_entry_are_left_out() {
        let mut half = table(&["a", "a_paper", "b"], &[&[1.0, 2.0, 3.0], &[1e-7, 2.0, 3.0]]);
        assert_eq!(columns(&half).len(), 3);
        for row in &mut half.rows {
            row[1] = Cell::Empty;
        }
        let mut page = String::new();
        open(&mut page, &half);
        assert_eq!(page.matches("<td>").count(), 4, "{page}");
        assert!(page.contains("<td>1e-7</td>") && !page.contains("paper"), "{page}");
    }

    #[test]
    fn what_does_not_fit_a_page_is_folded() {
        assert!(fits(&table(&["a"; COLUMNS], &[&[1.0; COLUMNS][..]; ROWS])));
        assert!(!fits(&table(&["a"; COLUMNS + 1], &[&[1.0; COLUMNS + 1]])));
        assert!(!fits(&table(&["a"], &[&[1.0][..]; ROWS + 1])));
        let mut page = String::new();
        folded(&mut page, &table(&["a"; WIDE], &[&[1.0; WIDE]]));
        assert!(page.contains("scroll wide") && page.contains("(1 rows) <code>t.csv</code>"));
    }
}
