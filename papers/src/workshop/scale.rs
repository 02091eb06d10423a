//! [`Scale`]: how large experiments are run.

/// How large experiments are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The paper's number of processes, and the points that its statements need.
    Full,
    /// An eighth of the processes, fewer points: minutes on a laptop.
    Quick,
    /// The least with which the facts can be told: seconds. For tests.
    Smallest,
}

impl Scale {
    /// All of them.
    pub const ALL: [Scale; 3] = [Scale::Full, Scale::Quick, Scale::Smallest];

    /// As reports name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scale::Full => "full",
            Scale::Quick => "quick",
            Scale::Smallest => "smallest",
        }
    }

    /// The tables of a figure's runs that say what is different then, each laid over those before.
    pub(crate) fn changes(self) -> &'static [&'static str] {
        match self {
            Scale::Full => &[],
            Scale::Quick => &["quick"],
            Scale::Smallest => &["quick", "smallest"],
        }
    }
}
