//! Text that cannot become markup, whatever a program is called.

use tidegate_link::plain;

/// Text between tags or inside a quoted attribute.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in plain(text).chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// JSON inside a script element: no `<` is left that could end it.
#[must_use]
pub fn json_in_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let hostile = "</script><img src=x onerror='alert(1)'>&amp;\"\u{1b}[31m\u{202e}\n";
        let escaped = escape(hostile);
        assert_eq!(
            escaped,
            "&lt;/script&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&amp;amp;&quot;\u{fffd}[31m\u{fffd} "
        );
        let json = json_in_html(&serde_json::to_string(hostile).unwrap());
        assert!(!json.contains(['<', '>', '&']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }
}
