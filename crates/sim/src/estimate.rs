//! [`Estimate`]: a number that was found once with each seed, its mean and how sure that is.

/// A number that was found once with each seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate(Vec<f64>);

impl Estimate {
    /// From what each seed gave, in the order of the seeds.
    pub fn new(each: impl IntoIterator<Item = f64>) -> Self {
        Estimate(each.into_iter().collect())
    }

    /// For each seed the mean of what `parts` found with it; the parts are of the same seeds.
    pub fn mean_of(parts: &[Estimate]) -> Self {
        let seeds = parts.iter().map(|part| part.0.len()).min().unwrap_or(0);
        let of = |seed: usize| parts.iter().map(|part| part.0[seed]).sum::<f64>() / parts.len() as f64;
        Estimate::new((0..seeds).map(of))
    }

    /// This divided by `other`, seed by seed.
    pub fn over(&self, other: &Estimate) -> Self {
        Estimate::new(self.0.iter().zip(&other.0).map(|(one, other)| one / other))
    }

    /// The mean over the seeds; 0 if there are none.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    /// The 95 % confidence interval of the mean (Student's t). `None` for fewer than two seeds, of which nobody can
    /// tell how far they spread.
    ///
    /// It answers what a reader of the mean wants to know, namely how far another set of seeds would move it. The least
    /// and the most of the seeds would not: they drift apart the more seeds there are.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let (count, mean) = (self.0.len(), self.mean());
        if count < 2 {
            return None;
        }
        let squares: f64 = self.0.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1) as f64 / count as f64).sqrt();
        let half = students_t(count - 1) * error;
        Some((mean - half, mean + half))
    }

    /// What each seed gave, in the order of the seeds.
    #[must_use]
    pub fn each(&self) -> &[f64] {
        &self.0
    }
}

/// The 97.5th percentile of Student's t distribution, within 0.2 % above 12 degrees of freedom.
fn students_t(degrees: usize) -> f64 {
    const TABLE: [f64; 12] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179];
    /// The same percentile of the normal distribution.
    const NORMAL: f64 = 1.959_964;
    let first = (NORMAL.powi(3) + NORMAL) / 4.0;
    let second = (5.0 * NORMAL.powi(5) + 16.0 * NORMAL.powi(3) + 3.0 * NORMAL) / 96.0;
    let degrees_of = degrees as f64;
    TABLE.get(degrees.wrapping_sub(1)).copied().unwrap_or(NORMAL + first / degrees_of + second / degrees_of.powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        assert_eq!(Estimate::new([3.0]).interval(), None);
        // Mean 3, standard deviation 1.5811, standard error 0.70711, t of 4 degrees 2.776.
        let (least, most) = Estimate::new([1.0, 2.0, 3.0, 4.0, 5.0]).interval().unwrap();
        assert!((least - 1.0371).abs() < 1e-3 && (most - 4.9629).abs() < 1e-3, "{least} {most}");
        assert_eq!(Estimate::new([2.0, 2.0]).interval(), Some((2.0, 2.0)));
        for (degrees, published) in [(13, 2.160), (20, 2.086), (30, 2.042), (120, 1.980)] {
            assert!((students_t(degrees) - published).abs() < 2e-3 * published, "{degrees}");
        }
    }

    #[test]
    fn parts_are_averaged_seed_by_seed() {
        let parts = [Estimate::new([1.0, 5.0]), Estimate::new([3.0, 9.0])];
        assert_eq!(Estimate::mean_of(&parts), Estimate::new([2.0, 7.0]));
    }
}
