//! ANSI-C quoting: `$'\x72m'` is `rm`.

/// Decodes the inside of `$'…'`, or `None` if the bytes are not UTF-8.
pub(super) fn decode(inside: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(inside.len());
    let mut chars = inside.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\\' {
            push(&mut bytes, char);
            continue;
        }
        let Some(escape) = chars.next() else {
            bytes.push(b'\\');
            break;
        };
        let mut digits = |radix: u32, most: usize| {
            let mut number = 0u32;
            let mut count = 0;
            while count < most {
                let Some(digit) = chars.peek().and_then(|char| char.to_digit(radix)) else { break };
                number = number * radix + digit;
                chars.next();
                count += 1;
            }
            (count > 0).then_some(number)
        };
        match escape {
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'r' => bytes.push(b'\r'),
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'v' => bytes.push(11),
            '\\' | '\'' | '"' | '?' => push(&mut bytes, escape),
            'x' => bytes.push(u8::try_from(digits(16, 2)?).ok()?),
            'u' => push(&mut bytes, char::from_u32(digits(16, 4)?)?),
            'U' => push(&mut bytes, char::from_u32(digits(16, 7)?)?),
            'c' => bytes.push(u8::try_from(chars.next()?).ok()? & 0x1f),
            '0'..='7' => {
                let first = escape.to_digit(8)?;
                let mut number = first;
                for _ in 0..2 {
                    let Some(digit) = chars.peek().and_then(|char| char.to_digit(8)) else { break };
                    number = number * 8 + digit;
                    chars.next();
                }
                bytes.push(u8::try_from(number & 0xff).ok()?);
            }
            other => {
                bytes.push(b'\\');
                push(&mut bytes, other);
            }
        }
    }
    // A NUL ends the text for the shell.
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    String::from_utf8(bytes).ok()
}

fn push(bytes: &mut Vec<u8>, char: char) {
    bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}
