//! One self-contained page for any number of outcomes.

use crate::{Cell, Outcome, Result, Table};
use std::fmt::Write;

const STYLE: &str = "body{font-family:system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;line-height:1.45}\
table{border-collapse:collapse;font-size:.85rem;display:block;overflow-x:auto}\
th,td{border:1px solid #ddd;padding:.2rem .5rem;text-align:right;white-space:nowrap}th{background:#f4f4f4}\
svg{max-width:100%;height:auto}pre{background:#f7f7f7;padding:.6rem;overflow-x:auto;font-size:.85rem}\
details{margin:.6rem 0}nav a{margin-right:1rem}";

/// The page as HTML; charts are drawn into it, nothing is loaded from elsewhere.
pub fn report(outcomes: &[Outcome], version: &str) -> Result<String> {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>semidp: the paper reproduced</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\n\
         <h1>The paper, reproduced by semidp {}</h1>\n<p>Lowy, Li, Huang and Razaviyayn, \
         <em>Optimal Differentially Private Model Training with Public Data</em>, ICML 2024. Every figure below was \
         computed by the run that wrote this page; what the paper says is quoted as the paper's.</p>\n<nav>",
        escape(version)
    );
    for outcome in outcomes {
        let _ = write!(page, "<a href=\"#{0}\">{0}</a>", escape(outcome.name));
    }
    page.push_str("</nav>\n");
    for outcome in outcomes {
        section(&mut page, outcome)?;
    }
    page.push_str("</body></html>");
    Ok(page)
}

fn section(page: &mut String, outcome: &Outcome) -> Result<()> {
    let _ = write!(page, "<section id=\"{}\"><h2>{}</h2>\n<ul>", escape(outcome.name), escape(outcome.title));
    for finding in &outcome.findings {
        let _ = write!(page, "<li>{}</li>", escape(finding));
    }
    page.push_str("</ul>\n");
    for (_, chart) in &outcome.charts {
        let _ = writeln!(page, "<figure>{}</figure>", chart.svg()?);
    }
    let setting = serde_json::to_string_pretty(&outcome.setting).unwrap_or_default();
    let _ = writeln!(page, "<details><summary>Setting</summary><pre>{}</pre></details>", escape(&setting));
    for table in &outcome.tables {
        let _ = write!(page, "<details><summary>{}</summary>", escape(&table.title));
        html_table(page, table);
        page.push_str("</details>\n");
    }
    page.push_str("</section>\n");
    Ok(())
}

fn html_table(page: &mut String, table: &Table) {
    page.push_str("<table><tr>");
    for heading in &table.headings {
        let _ = write!(page, "<th>{}</th>", escape(&heading.replace('_', " ")));
    }
    page.push_str("</tr>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for cell in row {
            let text = match cell {
                Cell::Number(value) => short(*value),
                Cell::Text(text) => escape(text),
                Cell::Empty => String::new(),
            };
            let _ = write!(page, "<td>{text}</td>");
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>");
}

/// Five significant digits.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || value.fract() == 0.0 && size < 1e9 {
        return format!("{value}");
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{value:.4e}");
    }
    let digits = (4 - size.log10().floor() as i32).max(0) as usize;
    format!("{value:.digits$}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_self_contained_and_escaped() {
        let outcome = Outcome {
            name: "a-name",
            title: "a < b",
            setting: serde_json::json!({ "n": 3 }),
            findings: vec!["x & y".into()],
            tables: vec![Table {
                name: "t".into(),
                title: "figures".into(),
                headings: vec!["one".into(), "two".into()],
                rows: vec![vec![1.25.into(), "<b>".into()], vec![Cell::Empty, 1e-9.into()]],
            }],
            charts: Vec::new(),
        };
        let page = report(std::slice::from_ref(&outcome), "0").unwrap();
        assert!(page.contains("a &lt; b") && page.contains("x &amp; y") && page.contains("&lt;b&gt;"));
        assert!(page.contains("1.2500") && page.contains("1.0000e-9"));
        assert!(!page.contains("src=") && !page.contains("href=\"http"));
        assert_eq!(outcome.tables[0].csv(), "one,two\n1.25,<b>\n,0.000000001");
    }
}
