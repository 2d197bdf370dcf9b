//! The response of HTTP/1.1 (RFC 9112): head and body, of known length, in chunks, or until the end of the connection. Pure: bytes in, text
//! out.

/// Bytes of a response at most. Azure's document has some 5 kB; a machine with many tags has more.
pub const LEN_MAX: usize = 256 << 10;

/// Head and body; absent until the head is complete.
fn parted(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some((std::str::from_utf8(&answer[..end]).ok()?, &answer[end + 4..]))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Whether the answer of a server that keeps the connection open is complete.
pub fn is_whole(answer: &[u8]) -> bool {
    let Some((head, body)) = parted(answer) else { return false };
    match header(head, "transfer-encoding") {
        Some(coding) if coding.eq_ignore_ascii_case("chunked") => return unchunked(body).is_some(),
        // Its body is not read.
        Some(_) => return true,
        None => {}
    }
    let length = header(head, "content-length").and_then(|length| length.parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}

/// The body of an answer whose status is 200; `None` for 404.
///
/// # Errors
/// Why the answer is not one of HTTP, or has another status.
pub fn body(answer: &[u8]) -> Result<Option<String>, String> {
    if answer.len() > LEN_MAX {
        return Err(format!("more than {} KiB", LEN_MAX >> 10));
    }
    if answer.is_empty() {
        return Err("connection closed without an answer".to_owned());
    }
    let (head, body) = parted(answer).ok_or("not HTTP, or an incomplete header")?;
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (version, status) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !version.starts_with("HTTP/1.") {
        return Err("not HTTP".to_owned());
    }
    match status {
        "200" => {}
        "404" => return Ok(None),
        status => return Err(format!("status {status:?}")),
    }
    let body = match (header(head, "transfer-encoding"), header(head, "content-length")) {
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => {
            unchunked(body).ok_or("inconsistent chunked body")?
        }
        (Some(coding), _) => return Err(format!("unsupported transfer encoding {coding:?}")),
        (None, Some(length)) => {
            let length = length.parse().map_err(|_| format!("invalid Content-Length {length:?}"))?;
            let whole = body.get(..length);
            whole.ok_or_else(|| format!("{} of {length} bytes", body.len()))?.to_vec()
        }
        (None, None) => body.to_vec(),
    };
    let text = String::from_utf8(body).map_err(|_| "not UTF-8".to_owned())?;
    Ok(Some(text))
}

/// RFC 9112, section 7.1; trailers are ignored.
fn unchunked(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&body[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        body = &body[end + 2..];
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(body.get(..size)?);
        body = body.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of the body may arrive as data of a chunk before.
    #[test]
    fn response_in_chunks_is_complete_after_its_last_chunk_only() {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n0\r\n\r\nhi\r\n0\r\n\r\n";
        let whole: Vec<usize> = (0..=answer.len()).filter(|length| is_whole(&answer[..*length])).collect();
        // The size of the last chunk is 0; the empty line after it may be missing.
        assert_eq!(whole, [answer.len() - 2, answer.len() - 1, answer.len()]);
        assert_eq!(body(answer), Ok(Some("0\r\n\r\nhi".to_owned())));
    }

    #[test]
    fn answers_are_parsed_or_rejected_with_the_reason() {
        let good = [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
            "HTTP/1.0 200 OK\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
        ];
        for answer in good {
            assert_eq!(body(answer.as_bytes()), Ok(Some("hello".to_owned())), "{answer:?}");
        }
        assert_eq!(body(b"HTTP/1.1 404 Not Found\r\n\r\n<html>"), Ok(None));
        let bad = [
            ("", "without an answer"),
            ("SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
            ("HELLO 200\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\nContent-Le", "incomplete header"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "5 of 10 bytes"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello", "Content-Length"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nhello", "chunked"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "gzip"),
            ("HTTP/1.1 503 Busy\r\n\r\n", "503"),
        ];
        for (answer, why) in bad {
            let refused = body(answer.as_bytes()).unwrap_err();
            assert!(refused.contains(why), "{answer:?}: {refused}");
        }
    }
}
