//! One self-contained page for any number of outcomes: it reads on a screen, on a phone and on paper.

mod setting;
mod table;
mod words;

use crate::{Outcome, Result};
use std::fmt::Write;
use words::escape;

/// More findings than this keep a reader from the tables: then only the first come before those.
const MANY: usize = 10;
const FIRST: usize = 5;
const STYLE: &str = include_str!("report/style.css");

/// The page as HTML; charts are drawn into it, nothing is loaded from elsewhere.
pub fn report(outcomes: &[Outcome], version: &str) -> Result<String> {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>semidp: the paper reproduced</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>\n{STYLE}</style></head><body>\n\
         <h1 id=\"top\">The paper, reproduced by semidp {}</h1>\n<p>Lowy, Li, Huang and Razaviyayn, \
         <em>Optimal Differentially Private Model Training with Public Data</em>, ICML 2024. Every figure below was \
         computed by semidp, in the run that wrote this page or in an earlier one whose finished pieces it went on from; \
         what the paper says is quoted as the paper's.</p>\n\
         <p>Figures after ± are standard errors. Tables that are longer or wider than a page are folded: open those that you \
         want to read, or to print. Every table is also a CSV file beside this page, with all digits.</p>\n\
         <nav><h2>Contents</h2>\n<ol>\n",
        escape(version)
    );
    for outcome in outcomes {
        let (name, title) = (escape(outcome.name), escape(outcome.title));
        let _ = writeln!(page, "<li><a href=\"#{name}\">{title}</a> <code>{name}</code></li>");
    }
    page.push_str("</ol></nav>\n");
    for outcome in outcomes {
        section(&mut page, outcome)?;
    }
    page.push_str("</body></html>");
    Ok(page)
}

fn findings(page: &mut String, findings: &[String]) {
    page.push_str("<ul class=\"findings\">\n");
    for finding in findings {
        let _ = writeln!(page, "<li>{}</li>", escape(finding));
    }
    page.push_str("</ul>\n");
}

/// What was found; tables that fit a page, charts, and folded what does not.
fn section(page: &mut String, outcome: &Outcome) -> Result<()> {
    let (name, title) = (escape(outcome.name), escape(outcome.title));
    let _ =
        writeln!(page, "<section id=\"{name}\"><h2>{title} <a class=\"up\" href=\"#top\">contents</a></h2>");
    let first = if outcome.findings.len() > MANY { FIRST } else { outcome.findings.len() };
    let (first, further) = outcome.findings.split_at(first);
    findings(page, first);
    let (open, folded): (Vec<_>, Vec<_>) = outcome.tables.iter().partition(|table| table::fits(table));
    for table in open {
        table::open(page, table);
    }
    for (name, chart) in &outcome.charts {
        let _ =
            writeln!(page, "<figure class=\"chart\" id=\"chart-{}\">{}</figure>", escape(name), chart.svg()?);
    }
    if !further.is_empty() {
        page.push_str("<h3>Further findings</h3>\n");
        findings(page, further);
    }
    for table in folded {
        table::folded(page, table);
    }
    page.push_str("<details class=\"setting\"><summary>Setting: everything that was fixed</summary>");
    setting::list(page, &outcome.setting);
    page.push_str("</details>\n</section>\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Table};

    fn outcome() -> Outcome {
        Outcome {
            name: "a-name",
            title: "a < b",
            setting: serde_json::json!({ "n_public": 3, "panels": [{ "clip_norm": 1.5 }], "rates": [0.1, 2] }),
            findings: vec!["x & y".into()],
            tables: vec![Table {
                name: "t".into(),
                title: "figures".into(),
                headings: vec!["one".into(), "two".into()],
                rows: vec![vec![1.25.into(), "<b>".into()], vec![Cell::Empty, 1e-9.into()]],
            }],
            charts: Vec::new(),
        }
    }

    #[test]
    fn the_page_is_self_contained_and_escaped() {
        let outcome = outcome();
        let page = report(std::slice::from_ref(&outcome), "0").unwrap();
        assert!(page.contains("a &lt; b") && page.contains("x &amp; y") && page.contains("&lt;b&gt;"));
        assert!(page.contains("1.25") && page.contains("1e-9"));
        for way_out in ["src=", "href=\"http", "url(", "@import", "<script"] {
            assert!(!page.contains(way_out), "{way_out}");
        }
        assert_eq!(outcome.tables[0].csv(), "one,two\n1.25,<b>\n,0.000000001");
    }

    /// No finding is lost when there are many.
    #[test]
    fn many_findings_are_split() {
        for count in [MANY, MANY + 3] {
            let findings = (0..count).map(|number| format!("finding {number}.")).collect();
            let page = report(&[Outcome { findings, ..outcome() }], "0").unwrap();
            assert_eq!(page.matches("<li>finding").count(), count);
            assert_eq!(page.contains("Further findings"), count > MANY);
            let table = page.find("<figure").unwrap();
            let before = if count > MANY { FIRST } else { count };
            assert_eq!(page[..table].matches("<li>finding").count(), before);
        }
    }

    /// The contents name every experiment and lead to it; settings are words, not JSON.
    #[test]
    fn contents_lead_to_sections_and_settings_are_readable() {
        let page = report(&[outcome()], "0").unwrap();
        assert!(
            page.contains("<a href=\"#a-name\">a &lt; b</a>") && page.contains("<section id=\"a-name\">")
        );
        assert!(page.contains("<dt>n public</dt><dd>3</dd>"), "{page}");
        assert!(
            page.contains("<dt>clip norm</dt><dd>1.5</dd>") && page.contains("<dd>0.1, 2</dd>"),
            "{page}"
        );
        assert!(!page.contains("<pre>") && !page.contains("{&quot;"));
    }
}
