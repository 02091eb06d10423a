//! [`Writer`]: samples into a file of bounded size.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Values;
use super::facts::EndpointFacts;
use super::folder::draft_of;
use super::samples::{self, Encoder, Event, Reader};
use tidegate_link::files::{create_new, named, replace};

/// With fewer samples than this nothing is left out, however large they are: a file of one sample says nothing.
const SAMPLES_LEAST: u64 = 16;

/// How much a file of samples may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes; the file is larger by a sample at most, and with fewer than `SAMPLES_LEAST` samples it may be.
    pub bytes: u64,
    /// Samples.
    pub samples: u64,
}

/// Writes samples as they come, each at once, so that a killed writer leaves what it had. When there are too many,
/// every second one is left out: the whole run stays covered, at twice the interval.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    encoder: Encoder,
    bounds: Bounds,
    bytes: u64,
    samples: u64,
    halvings: u32,
}

impl Writer {
    /// A new file in the folder.
    pub fn create(folder: &Path, bounds: Bounds) -> io::Result<Self> {
        let path = folder.join(samples::SAMPLES_FILE);
        let header = samples::file_header();
        let made = create_new(&path).and_then(|mut file| file.write_all(&header).map(|()| file));
        let file = made.map_err(|error| named(&path, error))?;
        let bytes = header.len() as u64;
        Ok(Writer { path, file, encoder: Encoder::default(), bounds, bytes, samples: 0, halvings: 0 })
    }

    /// Adds an endpoint.
    pub fn add_endpoint(&mut self, facts: &EndpointFacts) -> io::Result<()> {
        self.write(&samples::endpoint_record(facts))
    }

    /// Adds a sample: the counters of all endpoints, at a time that is not before that of the sample before.
    pub fn add_sample(&mut self, time_ns: u64, values: &[Values]) -> io::Result<()> {
        let record = self.encoder.sample(time_ns, values);
        self.write(&record)?;
        self.samples += 1;
        while self.samples > SAMPLES_LEAST && (self.bytes > self.bounds.bytes || self.samples > self.bounds.samples) {
            // Half a file would keep room from what is written at the end.
            let thinned = self.thin().inspect_err(|_| _ = fs::remove_file(draft_of(&self.path)));
            thinned.map_err(|error| named(&self.path, error))?;
        }
        Ok(())
    }

    /// How often every second sample was left out: the interval doubles each time.
    pub fn halvings(&self) -> u32 {
        self.halvings
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_all(record).map_err(|error| named(&self.path, error))?;
        self.bytes += record.len() as u64;
        Ok(())
    }

    /// Writes a file with every second sample and the last one, and puts it in the place of the present one.
    fn thin(&mut self) -> io::Result<()> {
        let mut reader = Reader::open(&self.path)?;
        let path = draft_of(&self.path);
        let mut file = io::BufWriter::new(create_new(&path).map_err(|error| named(&path, error))?);
        let mut bytes = samples::file_header();
        let (mut encoder, mut seen, mut kept) = (Encoder::default(), 0_u64, 0);
        let mut written = 0;
        while let Some(event) = reader.next_event() {
            match event {
                Event::Endpoint(facts) => bytes.extend(samples::endpoint_record(&facts)),
                Event::Sample if seen.is_multiple_of(2) || seen + 1 == self.samples => {
                    bytes.extend(encoder.sample(reader.time_ns(), reader.values()));
                    (seen, kept) = (seen + 1, kept + 1);
                }
                Event::Sample => seen += 1,
            }
            file.write_all(&bytes)?;
            written += bytes.len() as u64;
            bytes.clear();
        }
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        replace(&self.path, &path)?;
        (self.file, self.encoder, self.bytes, self.samples) = (file, encoder, written, kept);
        self.halvings += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_message::Counter;

    fn times(folder: &Path) -> (Vec<u64>, Vec<Vec<Values>>) {
        let mut reader = Reader::open(&folder.join(samples::SAMPLES_FILE)).unwrap();
        let (mut times, mut values) = (Vec::new(), Vec::new());
        while let Some(event) = reader.next_event() {
            if let Event::Sample = event {
                times.push(reader.time_ns());
                values.push(reader.values().to_vec());
            }
        }
        assert!(!reader.is_torn());
        (times, values)
    }

    /// A counter that is 3 at time 3, and one that comes and goes.
    fn at(time: u64) -> Values {
        let mut values = [0; Counter::COUNT];
        (values[0], values[5]) = (time, time % 3);
        values
    }

    #[test]
    fn too_many_samples_are_thinned_and_the_whole_run_stays_covered() {
        for bounds in [Bounds { bytes: u64::MAX, samples: 32 }, Bounds { bytes: 1_900, samples: u64::MAX }] {
            let folder = tempfile::tempdir().unwrap();
            let mut writer = Writer::create(folder.path(), bounds).unwrap();
            writer.add_endpoint(&EndpointFacts::default()).unwrap();
            // As a sampler does, which takes its next sample at the doubled interval.
            let mut time = 0;
            while time < 1_000 {
                writer.add_sample(time, &[at(time)]).unwrap();
                time += 1 << writer.halvings();
            }
            writer.add_endpoint(&EndpointFacts::default()).unwrap();
            writer.add_sample(1_000, &[at(1_000), at(9)]).unwrap();
            let (times, values) = times(folder.path());
            assert!(writer.halvings() >= 5, "{}", writer.halvings());
            assert!((SAMPLES_LEAST as usize / 2..=34).contains(&times.len()), "{times:?}");
            assert!(times[0] == 0 && *times.last().unwrap() == 1_000, "{times:?}");
            let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(gaps.iter().all(|gap| *gap <= 2 << writer.halvings()), "{gaps:?}");
            assert!(times.iter().zip(&values).all(|(time, values)| values[0] == at(*time)));
            assert_eq!(values.last().unwrap()[1], at(9));
            let length = folder.path().join(samples::SAMPLES_FILE).metadata().unwrap().len();
            assert!(length <= bounds.bytes && writer.bytes == length, "{length}");
        }
    }

    #[test]
    fn few_samples_are_kept_whatever_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(folder.path(), Bounds { bytes: 1, samples: u64::MAX }).unwrap();
        writer.add_endpoint(&EndpointFacts::default()).unwrap();
        (0..100).for_each(|time| writer.add_sample(time, &[at(time)]).unwrap());
        let kept = times(folder.path()).0.len();
        assert!((SAMPLES_LEAST as usize / 2..=SAMPLES_LEAST as usize).contains(&kept), "{kept}");
    }
}
