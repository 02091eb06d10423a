//! Quoting for POSIX shells.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// `text` as one word of a POSIX shell: as it is when every byte is harmless, in single quotes otherwise. Bytes that
/// are not UTF-8 come out as they went in.
pub fn quote(text: &OsStr) -> Vec<u8> {
    let bytes = text.as_bytes();
    let harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:=,@%+".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(harmless) {
        return bytes.to_vec();
    }
    let mut quoted = vec![b'\''];
    for &byte in bytes {
        if byte == b'\'' {
            quoted.extend(br"'\''");
        } else {
            quoted.push(byte);
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Words as one line for a shell that is shown to people; bytes that are not UTF-8 are replaced.
pub fn line(words: &[impl AsRef<OsStr>]) -> String {
    let words: Vec<Vec<u8>> = words.iter().map(|word| quote(word.as_ref())).collect();
    String::from_utf8_lossy(&words.join(&b' ')).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        let texts: [&[u8]; 8] = [
            b"tidegate",
            b"",
            b"/a b/c",
            b"it's",
            b"$HOME `id` $(id) \\ \"x\" ; & * ? ~ #",
            b"two\nlines",
            b"'''",
            b"not \xff utf-8",
        ];
        for text in texts {
            let mut script = b"printf %s ".to_vec();
            script.extend(quote(OsStr::from_bytes(text)));
            let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&script)).output().unwrap();
            assert_eq!(output.stdout, text, "quoted as {:?}", String::from_utf8_lossy(&script));
        }
    }

    #[test]
    fn harmless_words_stay_readable() {
        assert_eq!(quote(OsStr::new(":oversubscribe")), b":oversubscribe");
        assert_eq!(quote(OsStr::new("/usr/lib/tidegate")), b"/usr/lib/tidegate");
        assert_eq!(line(&["echo", "two words", ""]), "echo 'two words' ''");
    }
}
