//! Text that is safe to print. A name of a file, a column or a certificate may hold characters that a terminal obeys: escape
//! sequences, bells, marks that reverse the direction of text or that nobody sees. They are shown as escapes such as `\u{1b}`.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal shows something else than this character in its place.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// One line: line breaks and tabs are escaped, too.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Several lines: all but line breaks is escaped. What goes into a line of it should have gone through [`line`].
pub fn page(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter != '\n' && is_hidden(letter))
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            letter if !is_hidden(letter) => safe.push(letter),
            '\n' | '\r' | '\t' => safe.extend(letter.escape_default()),
            // Writing to a string does not fail.
            letter => drop(write!(safe, "\\u{{{:x}}}", u32::from(letter))),
        }
    }
    safe.into()
}

/// JSON that reads back to the same text: such characters can only stand within its strings, and JSON has escapes for them.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_hidden = |letter| letter != '\n' && is_hidden(letter);
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_hidden(letter) {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(letter);
        }
    }
    safe.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_others_are_not() {
        let plain = "Größe [m²] “quoted” \\ 年龄 \u{1f600}";
        assert_eq!((line(plain), page(plain), json(plain)), (plain.into(), plain.into(), plain.into()));
        assert_eq!(line("a\u{1b}[2Jb\nc\td\u{202e}e"), "a\\u{1b}[2Jb\\nc\\td\\u{202e}e");
        assert_eq!(page("a\nb\u{9b}\r"), "a\nb\\u{9b}\\r");
        let hidden: String = (0..=0x1f).chain(0x7f..=0x9f).filter_map(char::from_u32).collect();
        assert!(line(&hidden).chars().all(|letter| letter.is_ascii_graphic()));
    }

    #[test]
    fn escaped_json_reads_back_to_the_same() {
        let value =
            serde_json::json!({ "na\u{9b}me\u{1b}": ["\u{202e}x\n", "\u{e0041}", 1.5], "b": "\u{7f}" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let safe = json(&text);
        assert!(!safe.contains(|letter| letter != '\n' && is_hidden(letter)));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
