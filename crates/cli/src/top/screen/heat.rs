//! Colours of the terminal. Meaning never hangs on colour alone: each cell also has a number or a word. The scale of
//! heat follows cividis (Nuñez, Anderton, Renslow 2018), which people with and without deuteranopia see nearly alike
//! and whose lightness grows steadily; the others are of Okabe and Ito's palette.

use ratatui::style::{Color, Modifier, Style};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// 256 colours.
    Many,
    /// Bold and reversed only.
    None,
}

/// From which share on a cell has which background and foreground, of the 256 colours.
const SCALE: [(f64, u8, u8); 5] = [(0.85, 227, 16), (0.6, 143, 16), (0.3, 244, 16), (0.1, 60, 231), (0.0, 17, 231)];
const ORANGE: u8 = 214;
const SKY_BLUE: u8 = 117;
const GREY: u8 = 245;

impl Colours {
    /// As the environment says: NO_COLOR, TERM, COLORTERM.
    pub fn of_terminal(environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let is_set = |name| environment(name).is_some_and(|value| !value.is_empty());
        let has_many = environment("TERM").is_some_and(|term| term.contains("256color") || term.contains("direct"));
        if !is_set("NO_COLOR") && (has_many || is_set("COLORTERM")) { Colours::Many } else { Colours::None }
    }

    fn with(self, style: Style, colour: u8) -> Style {
        match self {
            Colours::Many => style.fg(Color::Indexed(colour)),
            Colours::None => style,
        }
    }

    /// A part of the time, 0 to 1.
    pub fn heat(self, share: f64) -> Style {
        let (_, background, foreground) = SCALE.into_iter().find(|(least, ..)| share >= *least).unwrap_or(SCALE[4]);
        match self {
            Colours::Many => Style::new().bg(Color::Indexed(background)).fg(Color::Indexed(foreground)),
            Colours::None if share >= SCALE[1].0 => Style::new().add_modifier(Modifier::REVERSED),
            Colours::None => Style::new(),
        }
    }

    /// The steps of the scale, least first, with a text for each.
    pub fn legend(self) -> Vec<(String, Style)> {
        let mut steps: Vec<_> = SCALE.iter().map(|(least, ..)| (percent_from(*least), self.heat(*least))).collect();
        steps.reverse();
        steps
    }

    /// What is wrong.
    pub fn alarm(self) -> Style {
        self.with(Style::new().add_modifier(Modifier::BOLD), ORANGE)
    }

    /// Heads of columns and the names of keys.
    pub fn head(self) -> Style {
        self.with(Style::new().add_modifier(Modifier::BOLD), SKY_BLUE)
    }

    /// What matters less.
    pub fn faint(self) -> Style {
        match self {
            Colours::Many => self.with(Style::new(), GREY),
            Colours::None => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// The line that is chosen.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

fn percent_from(least: f64) -> String {
    if least == 0.0 { " 1+ ".to_owned() } else { format!(" {:.0}+ ", least * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &'static [(&'static str, &'static str)]) -> Colours {
        Colours::of_terminal(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
        })
    }

    #[test]
    fn colours_are_used_where_the_terminal_has_them_and_the_user_wants_them() {
        assert_eq!(of(&[("TERM", "xterm-256color")]), Colours::Many);
        assert_eq!(of(&[("TERM", "xterm"), ("COLORTERM", "truecolor")]), Colours::Many);
        assert_eq!(of(&[("TERM", "linux")]), Colours::None);
        assert_eq!(of(&[("TERM", "tmux-256color"), ("NO_COLOR", "1")]), Colours::None);
        assert_eq!(of(&[("TERM", "tmux-256color"), ("NO_COLOR", "")]), Colours::Many);
    }

    /// Lightness of an indexed colour, 0 to 1, as the eye weighs red, green and blue (WCAG 2).
    fn lightness(index: u8) -> f64 {
        let level = |step: u8| if step == 0 { 0.0 } else { 55.0 + 40.0 * f64::from(step) };
        let [red, green, blue] = match index {
            232.. => [8.0 + 10.0 * f64::from(index - 232); 3],
            _ => [(index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6].map(level),
        };
        let linear = |value: f64| {
            let value = value / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    #[test]
    fn hotter_is_lighter_and_every_number_can_be_read() {
        for pair in SCALE.windows(2) {
            assert!(lightness(pair[0].1) > 1.4 * lightness(pair[1].1) + 0.02, "{pair:?}");
        }
        for (_, background, foreground) in SCALE {
            let (one, other) = (lightness(background) + 0.05, lightness(foreground) + 0.05);
            let contrast = one.max(other) / one.min(other);
            assert!(contrast >= 4.5, "{background} {foreground}: {contrast}");
        }
    }
}
