//! Blank lines as rows, which a reader of CSV does not take them for.

use std::io::Read;

/// Writes `""` on the blank lines after the header, where a reader of CSV would see no row.
pub(super) struct BlankLines<R> {
    bytes: R,
    /// What is still to be handed out.
    ready: Vec<u8>,
    handed: usize,
    is_quoted: bool,
    is_line_start: bool,
    /// Whether the last byte was a carriage return: a line feed after it ends the same line.
    is_after_return: bool,
    is_past_header: bool,
}

impl<R: Read> BlankLines<R> {
    pub(super) fn new(bytes: R) -> Self {
        Self {
            bytes,
            ready: Vec::new(),
            handed: 0,
            is_quoted: false,
            is_line_start: true,
            is_after_return: false,
            is_past_header: false,
        }
    }

    fn take_in(&mut self, byte: u8) {
        let ends_line = !self.is_quoted && (byte == b'\n' || byte == b'\r');
        let is_second_half = byte == b'\n' && self.is_after_return;
        if ends_line && self.is_line_start && self.is_past_header && !is_second_half {
            self.ready.extend_from_slice(b"\"\"");
        }
        self.ready.push(byte);
        self.is_after_return = ends_line && byte == b'\r';
        match byte {
            _ if ends_line => {
                self.is_past_header |= !self.is_line_start;
                self.is_line_start = true;
            }
            b'"' => {
                self.is_quoted = !self.is_quoted;
                self.is_line_start = false;
            }
            _ => self.is_line_start = false,
        }
    }
}

impl<R: Read> Read for BlankLines<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.handed == self.ready.len() {
            self.ready.clear();
            self.handed = 0;
            let mut chunk = [0u8; 1 << 13];
            let count = self.bytes.read(&mut chunk)?;
            chunk[..count].iter().for_each(|&byte| self.take_in(byte));
        }
        let count = out.len().min(self.ready.len() - self.handed);
        out[..count].copy_from_slice(&self.ready[self.handed..self.handed + count]);
        self.handed += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_become_rows() {
        for (text, expected) in [
            ("x\n1\n\n2\n", "x\n1\n\"\"\n2\n"),
            ("x\r\n1\r\n\r\n2", "x\r\n1\r\n\"\"\r\n2"),
            ("x\r1\r\r2\r", "x\r1\r\"\"\r2\r"),
            // Before the header, and within quotes, they are what they were.
            ("\n\nx\n\n", "\n\nx\n\"\"\n"),
            ("x\n\"a\n\nb\"\n", "x\n\"a\n\nb\"\n"),
            ("x\n", "x\n"),
            ("", ""),
        ] {
            let mut found = String::new();
            BlankLines::new(text.as_bytes()).read_to_string(&mut found).unwrap();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
