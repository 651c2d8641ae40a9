//! Bytes as text.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Two digits a byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    encode_onto(bytes, &mut text);
    text
}

/// The same at the end of a text, which does not move if it has room.
pub(crate) fn encode_onto(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Exactly so many bytes; no other digits than those that [`encode`] writes.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    decode_into(text, &mut bytes).then_some(bytes)
}

/// The same in place: secrets are not moved. Whether the text was one of so many bytes.
pub(crate) fn decode_into(text: &str, bytes: &mut [u8]) -> bool {
    let digit = |letter: u8| match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    };
    let letters = text.as_bytes();
    letters.len() == 2 * bytes.len()
        && bytes.iter_mut().zip(letters.chunks_exact(2)).all(|(byte, pair)| {
            let both = digit(pair[0]).zip(digit(pair[1]));
            *byte = both.map_or(0, |(high, low)| high << 4 | low);
            both.is_some()
        })
}
