//! Texts of recordings, which another user may have made: [`tidegate_link::plain()`] cleans them as they are read. A
//! field says so by `#[serde(deserialize_with = "text::one")]`, `text::perhaps`, `text::list` or `text::map`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use tidegate_link::plain;

/// A text.
pub fn one<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(plain(&String::deserialize(from)?))
}

/// A text that may be missing; the field needs `#[serde(default)]` too.
pub fn perhaps<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.as_deref().map(plain))
}

/// Texts.
pub fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<String>::deserialize(from)?.iter().map(|text| plain(text)).collect())
}

/// Texts by names that are texts.
pub fn map<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(from)?;
    Ok(texts.iter().map(|(name, text)| (plain(name), plain(text))).collect())
}

#[cfg(test)]
mod tests {
    use crate::recording::facts::{EndpointFacts, Facts};
    use crate::recording::folder::tests::facts;
    use crate::recording::rows::{EndpointRows, Last, OpenKind, OpenRow};

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}1m\u{202e}";

    fn read<T: serde::de::DeserializeOwned>(value: &impl serde::Serialize) -> T {
        serde_json::from_value(serde_json::to_value(value).unwrap()).unwrap()
    }

    #[test]
    fn no_text_of_a_recording_speaks_to_the_terminal() {
        let hostile = || HOSTILE.to_owned();
        let mut run = facts();
        (run.tidegate_version, run.host, run.mpi) = (hostile(), hostile(), Some(hostile()));
        (run.command, run.options) = (vec![hostile()], vec![hostile()]);
        run.environment = [(hostile(), hostile())].into();
        let end = run.end.as_mut().unwrap();
        (end.stopped, end.troubles) = (Some(hostile()), vec![hostile()]);
        let failure = &mut end.failure;
        (failure.ends, failure.lack, failure.reasons) = (vec![hostile()], Some(hostile()), vec![hostile()]);
        failure.signal = Some(hostile());
        let endpoint = EndpointFacts {
            host: hostile(),
            launch: Some(hostile()),
            program: hostile(),
            scheme: hostile(),
            ..EndpointFacts::default()
        };
        let open = OpenRow { kind: OpenKind::Send, peer: None, tag: hostile(), bytes: 0, age_ns: 0, waits_for: None };
        let last = Last {
            endpoints: vec![EndpointRows { bulk: hostile(), open: vec![open], ..EndpointRows::default() }],
            held_up: Some(hostile()),
            ..Last::default()
        };
        let shown = [
            format!("{}", serde_json::to_value(read::<Facts>(&run)).unwrap()),
            format!("{}", serde_json::to_value(read::<EndpointFacts>(&endpoint)).unwrap()),
            format!("{}", serde_json::to_value(read::<Last>(&last)).unwrap()),
        ];
        for text in shown {
            assert!(
                text.contains("a\u{fffd}[2J\u{fffd}1m\u{fffd}") && !text.contains(['\u{9b}', '\u{202e}']),
                "{text}"
            );
            assert!(!text.contains("\\u001b"), "{text}");
        }
    }
}
