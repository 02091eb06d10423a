//! The least of many settings that is enough, found by halving, with a check that halving was allowed.
//!
//! More slots, buffers or memory should never be worse. With flow control that is nearly so, and not quite: a few slots
//! more may change who waits for whom. So after the halving some settings are tried that it skipped. Where one above
//! the least turns out not to be enough, the search goes on above it; where one below turns out to be enough, it is
//! passed over, because between the two lies one that is not. Either way the outcome says so.

/// What came of a search over settings that are numbered from the least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The least that is enough, as is each larger one that was tried. `None`: the largest is not enough.
    pub least: Option<usize>,
    /// A smaller setting that was enough, and a larger one that was not.
    pub inversion: Option<(usize, usize)>,
    /// All that were tried, in order, and whether they were enough.
    pub tried: Vec<(usize, bool)>,
}

/// Settings that are tried above what halving found; below it one is tried.
const CHECKS_ABOVE: usize = 1;

/// Settings that are tried of sixteen or fewer, as long as more is never worse.
pub const TRIES_MOST: usize = 1 + 4 + CHECKS_ABOVE + 1;

/// Finds the least of `count` settings for which `is_enough`, which is asked once for each at most.
///
/// # Errors
/// If `is_enough` fails.
pub fn least<E>(count: usize, mut is_enough: impl FnMut(usize) -> Result<bool, E>) -> Result<Found, E> {
    let mut tried: Vec<(usize, bool)> = Vec::new();
    let mut ask = |at: usize, tried: &mut Vec<(usize, bool)>| -> Result<bool, E> {
        if let Some((_, known)) = tried.iter().find(|(known, _)| *known == at) {
            return Ok(*known);
        }
        let enough = is_enough(at)?;
        tried.push((at, enough));
        Ok(enough)
    };
    let Some(top) = count.checked_sub(1) else { return Ok(found(None, tried)) };
    if !ask(top, &mut tried)? {
        // If halving was allowed, no smaller one is enough either: one in the middle is asked.
        ask(top / 2, &mut tried)?;
        return Ok(found(None, tried));
    }
    let mut floor = 0;
    loop {
        let (mut low, mut high) = (floor, top);
        while low < high {
            let middle = low + (high - low) / 2;
            if ask(middle, &mut tried)? { high = middle } else { low = middle + 1 }
        }
        let checks = (1..=CHECKS_ABOVE).map(|part| high + (top - high) * part / (CHECKS_ABOVE + 1));
        for check in checks.filter(|check| *check > high) {
            ask(check, &mut tried)?;
        }
        if high > floor + 1 {
            ask(floor + (high - floor) / 2, &mut tried)?;
        }
        match tried.iter().filter(|(at, enough)| *at > high && !enough).map(|(at, _)| *at).max() {
            Some(highest) => floor = highest + 1,
            None => return Ok(found(Some(high), tried)),
        }
    }
}

fn found(least: Option<usize>, mut tried: Vec<(usize, bool)>) -> Found {
    tried.sort_unstable();
    let enough = |at: &usize| tried.iter().any(|(other, enough)| other == at && *enough);
    let inversion = tried.iter().find_map(|&(small, _)| {
        let larger = tried.iter().find(|(large, enough)| *large > small && !enough)?.0;
        enough(&small).then_some((small, larger))
    });
    Found { least, inversion, tried }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn search(enough: &[bool]) -> Found {
        let mut asked = Vec::new();
        let found = least(enough.len(), |at| {
            assert!(!asked.contains(&at), "{at} is asked twice");
            asked.push(at);
            Ok::<_, Infallible>(enough[at])
        });
        found.expect("it cannot fail")
    }

    #[test]
    fn a_smaller_one_that_is_enough_below_one_that_is_not_is_said() {
        let found = search(&[false, false, true, false, true, true, true, true]);
        assert_eq!((found.least, found.inversion), (Some(4), Some((2, 3))));
    }

    #[test]
    fn where_a_larger_one_is_not_enough_the_search_goes_on_above_it() {
        // Halving finds 1; of those above, 3 is checked.
        let found = search(&[false, true, true, false, true, true, true, true]);
        assert!(found.least > Some(3) || found.tried.iter().all(|(at, _)| *at != 3), "{found:?}");
        let found = search(&[false, true, true, true, true, false, true, true, true, true]);
        assert!(found.inversion.is_none() || found.least == Some(6), "{found:?}");
    }

    #[test]
    fn nothing_is_enough_if_the_largest_is_not() {
        assert_eq!(search(&[false, false, true, false]).least, None);
        assert_eq!(search(&[]).least, None);
        assert_eq!(search(&[true]).least, Some(0));
    }

    proptest! {
        #[test]
        fn where_more_is_never_worse_the_least_is_found_with_few_trials(count in 1_usize..200, first in 0_usize..220) {
            let enough: Vec<bool> = (0..count).map(|at| at >= first).collect();
            let found = search(&enough);
            prop_assert_eq!(found.least, (first < count).then_some(first));
            prop_assert_eq!(found.inversion, None);
            prop_assert!(found.tried.len() <= count.ilog2() as usize + 2 + CHECKS_ABOVE + 1, "{:?}", found);
            prop_assert!(count > 16 || found.tried.len() <= TRIES_MOST, "{:?}", found);
        }

        #[test]
        fn what_is_found_is_enough_and_so_is_all_above_it_that_was_tried(
            enough in proptest::collection::vec(any::<bool>(), 1..40),
        ) {
            let found = search(&enough);
            prop_assert_eq!(found.least.is_some(), *enough.last().unwrap());
            for (at, is_enough) in &found.tried {
                prop_assert_eq!(enough[*at], *is_enough);
                prop_assert!(found.least.is_none_or(|least| *at < least || *is_enough));
            }
            if let Some(least) = found.least {
                prop_assert!(enough[least]);
            }
            let has_inversion = found.tried.iter().any(|(small, good)| {
                *good && found.tried.iter().any(|(large, good)| large > small && !good)
            });
            prop_assert_eq!(found.inversion.is_some(), has_inversion);
        }
    }
}
