//! [`Choice`]: the value of `FI_TIDEGATE_FABRIC`, which says what reaches other hosts.

use super::networks::{SPEAK_TCP, environment};
use std::fmt;
use std::str::FromStr;

/// Which provider carries what goes to other hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// TCP, if the launcher says that the job has ranks on other hosts; else none.
    #[default]
    Auto,
    /// None: processes of one host only.
    None,
    /// The provider of this name, and of its domains the one of this name, or the best (`interfaces`).
    Named {
        /// As `fi_info` shows it, such as `tcp` or `verbs;ofi_rxm`.
        provider: String,
        /// As `fi_info` shows it: for `tcp`, an interface.
        domain: Option<String>,
    },
}

impl Choice {
    /// The providers that may be taken, the best first.
    pub fn providers(&self) -> Vec<&str> {
        match self {
            Choice::None => Vec::new(),
            Choice::Auto => SPEAK_TCP.to_vec(),
            Choice::Named { provider, .. } if provider == "tcp" => SPEAK_TCP.to_vec(),
            Choice::Named { provider, .. } => vec![provider],
        }
    }

    /// The parts of the provider that the user has named, if it has several: libfabric asks for each of them as if it
    /// were the application.
    pub fn parts(&self) -> Vec<&str> {
        match self {
            Choice::Named { provider, .. } if provider.contains(';') => {
                provider.split(';').filter(|part| !part.is_empty()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Variables of the provider below that help it, with values.
    pub fn environment(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Choice::Named { provider, .. } => environment(provider),
            Choice::Auto | Choice::None => &[],
        }
    }

    /// The domain that must be taken, if the user said.
    pub fn domain(&self) -> Option<&str> {
        match self {
            Choice::Named { domain, .. } => domain.as_deref(),
            Choice::Auto | Choice::None => None,
        }
    }
}

impl FromStr for Choice {
    type Err = ();

    fn from_str(text: &str) -> Result<Choice, ()> {
        let text = text.trim();
        match text.to_ascii_lowercase().as_str() {
            "auto" => return Ok(Choice::Auto),
            "none" => return Ok(Choice::None),
            _ => {}
        }
        let (provider, domain) = match text.split_once('/') {
            Some((provider, domain)) => (provider, Some(domain)),
            None => (text, None),
        };
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        // Tidegate over Tidegate would never end.
        let is_allowed = is_name(provider) && domain.is_none_or(is_name) && !provider.contains("tidegate");
        let domain = domain.map(str::to_owned);
        if is_allowed { Ok(Choice::Named { provider: provider.to_owned(), domain }) } else { Err(()) }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Auto => f.write_str("auto"),
            Choice::None => f.write_str("none"),
            Choice::Named { provider, domain: None } => f.write_str(provider),
            Choice::Named { provider, domain: Some(domain) } => write!(f, "{provider}/{domain}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_providers_and_domains_are_told_apart() {
        for text in ["auto", "none", "tcp", "verbs;ofi_rxm", "tcp/eth0", "efa/rdmap0s6-rdm"] {
            assert_eq!(text.parse::<Choice>().map(|choice| choice.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("tcp/eth0".parse::<Choice>().unwrap().domain(), Some("eth0"));
        for text in ["", "tcp/", "/eth0", "tidegate", "tcp,verbs", "tc p"] {
            assert_eq!(text.parse::<Choice>(), Err(()), "{text}");
        }
    }
}
