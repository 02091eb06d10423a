//! `samples.tidegate`: the counters of all endpoints at a number of moments.
//!
//! Layout: the 8 bytes `TIDEREC` and the version of the layout; then frames ([`tidegate_link::frames`]) until the end
//! of the file.
//!
//! * Kind 0, at the start: JSON, the [`Header`], which names the counters.
//! * Kind 1, an endpoint: JSON, [`EndpointFacts`]. Endpoints are numbered from 0 as they come.
//! * Kind 2, a sample: the nanoseconds since the sample before (or the start), the number of endpoints that changed,
//!   and for each the difference of its number to that of the one before (the first: its number), how many of its
//!   counters changed, and for each the difference of its number to that of the one before, and by how much it changed.
//!   What a counter was before its first sample is 0.
//!
//! A file whose last frame is not whole ends with the one before. Another kind is damage, as is anything else that
//! makes no sense; what came before is used. Counters are found by name, so versions of Tidegate with other counters
//! can read each other's files: one that is missing is 0.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_link::files::read_left;
use tidegate_link::frames::{Number, Numbers, frame, split};
use tidegate_message::Counter;

use super::facts::EndpointFacts;
use super::{RECORDING_SCHEMA, Values};

/// Name of the file in the folder of the recording.
pub const SAMPLES_FILE: &str = "samples.tidegate";
/// The last byte is the version of the layout.
const MAGIC: &[u8; 8] = b"TIDEREC\x02";
const HEADER: u8 = 0;
const ENDPOINT: u8 = 1;
const SAMPLE: u8 = 2;

/// The text at the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`RECORDING_SCHEMA`].
    pub schema: String,
    /// The names of the counters, in the order of their numbers here.
    pub counters: Vec<String>,
}

/// The bytes with which a file begins.
pub fn file_header() -> Vec<u8> {
    let counters = Counter::ALL.iter().map(|counter| counter.name().to_owned()).collect();
    let header = Header { schema: RECORDING_SCHEMA.to_owned(), counters };
    let text = serde_json::to_vec(&header).expect("names can be written as JSON");
    [MAGIC, &*frame(HEADER, &text)].concat()
}

/// The record of an endpoint.
pub fn endpoint_record(facts: &EndpointFacts) -> Vec<u8> {
    frame(ENDPOINT, &serde_json::to_vec(facts).expect("facts can be written as JSON"))
}

/// Makes records of samples; knows the sample before.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    time_ns: u64,
    values: Vec<Values>,
}

impl Encoder {
    /// The record of a sample at `time_ns` since the start, which is not before the one before. `values`: by endpoint.
    pub fn sample(&mut self, time_ns: u64, values: &[Values]) -> Vec<u8> {
        self.values.resize(values.len().max(self.values.len()), [0; Counter::COUNT]);
        let mut payload = Vec::new();
        put(&mut payload, time_ns.saturating_sub(self.time_ns));
        let changed = values.iter().zip(&self.values).enumerate().filter(|(_, (now, before))| now != before);
        let changed: Vec<usize> = changed.map(|(endpoint, _)| endpoint).collect();
        put(&mut payload, changed.len() as u64);
        let mut last = 0;
        for endpoint in changed {
            put(&mut payload, (endpoint - last) as u64);
            last = endpoint;
            put_changes(&mut payload, &self.values[endpoint], &values[endpoint]);
            self.values[endpoint] = values[endpoint];
        }
        self.time_ns = self.time_ns.max(time_ns);
        frame(SAMPLE, &payload)
    }
}

fn put_changes(payload: &mut Vec<u8>, before: &Values, now: &Values) {
    let changed = before.iter().zip(now).enumerate().filter(|(_, (before, now))| before != now);
    put(payload, changed.clone().count() as u64);
    let mut last = 0;
    for (counter, (before, now)) in changed {
        put(payload, (counter - last) as u64);
        last = counter;
        payload.extend(&*Number::between(*before, *now));
    }
}

fn put(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend(&*Number::of(value));
}

/// What a record says.
#[derive(Debug)]
pub enum Event {
    /// There is another endpoint; its number is that of the endpoints before.
    Endpoint(EndpointFacts),
    /// There is another sample: [`Reader::time_ns`] and [`Reader::values`].
    Sample,
}

/// Reads a file, record by record.
#[derive(Debug)]
pub struct Reader {
    bytes: Vec<u8>,
    at: usize,
    /// Where the frame behind the header begins.
    first: usize,
    /// Our counter for each of the file's, if we have it.
    counters: Vec<Option<usize>>,
    time_ns: u64,
    values: Vec<Values>,
    is_torn: bool,
}

impl Reader {
    /// Opens the file.
    ///
    /// # Errors
    /// If it cannot be read, or is no such file of this version.
    pub fn open(path: &Path) -> io::Result<Self> {
        Reader::new(read_left(path, u64::MAX)?)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no samples that this version of tidegate reads"))
    }

    /// Reads these bytes of a file; `None` if they do not begin as such a file does.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let (kind, text, rest) = split(bytes.strip_prefix(MAGIC)?)?;
        let header: Header = (kind == HEADER).then(|| serde_json::from_slice(text).ok())??;
        let ours = |name: &String| Counter::ALL.iter().position(|counter| counter.name() == name);
        let counters = header.counters.iter().map(ours).collect();
        let first = bytes.len() - rest.len();
        Some(Reader { bytes, at: first, first, counters, time_ns: 0, values: Vec::new(), is_torn: false })
    }

    /// The next record that is whole and makes sense.
    pub fn next_event(&mut self) -> Option<Event> {
        let Reader { bytes, at, counters, time_ns, values, is_torn, .. } = self;
        let Some((kind, payload, rest)) = split(&bytes[*at..]) else {
            *is_torn |= *at < bytes.len();
            return None;
        };
        let event = match kind {
            ENDPOINT => serde_json::from_slice(payload).ok().map(|facts| {
                values.push([0; Counter::COUNT]);
                Event::Endpoint(facts)
            }),
            SAMPLE => apply(Numbers(payload), counters, time_ns, values),
            _ => None,
        };
        match event {
            Some(_) => *at = bytes.len() - rest.len(),
            None => *is_torn = true,
        }
        event
    }

    /// When the last sample was, since the start.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The counters by endpoint as of the last sample.
    #[must_use]
    pub fn values(&self) -> &[Values] {
        &self.values
    }

    /// Whether bytes at the end were left out, because they are no whole record or make no sense.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// Begins again with the first record.
    pub fn rewind(&mut self) {
        self.at = self.first;
        (self.time_ns, self.is_torn) = (0, false);
        self.values.clear();
    }
}

/// Changes time and values as the sample says. Nothing changes if it makes no sense.
fn apply(sample: Numbers, counters: &[Option<usize>], time_ns: &mut u64, values: &mut [Values]) -> Option<Event> {
    let mut is_known = true;
    let passed = changes(sample, |endpoint, counter, _| {
        is_known &= endpoint < values.len() && counter < counters.len();
    })?;
    let now = time_ns.checked_add(passed).filter(|_| is_known)?;
    changes(sample, |endpoint, counter, by| {
        if let Some(ours) = counters[counter] {
            let value = &mut values[endpoint][ours];
            *value = value.wrapping_add(by);
        }
    })?;
    *time_ns = now;
    Some(Event::Sample)
}

/// Tells each change in a sample: by how much a counter of an endpoint grew. Returns the time since the sample before;
/// `None` if it makes no sense.
fn changes(mut sample: Numbers, mut tell: impl FnMut(usize, usize, u64)) -> Option<u64> {
    let passed = sample.take()?;
    let mut endpoint = 0_usize;
    for _ in 0..sample.take()? {
        endpoint = endpoint.checked_add(index(&mut sample)?)?;
        let mut counter = 0_usize;
        for _ in 0..sample.take()? {
            counter = counter.checked_add(index(&mut sample)?)?;
            tell(endpoint, counter, sample.take_from(0)?);
        }
    }
    sample.0.is_empty().then_some(passed)
}

fn index(sample: &mut Numbers) -> Option<usize> {
    usize::try_from(sample.take()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(usize, u64)]) -> Values {
        let mut values = [0; Counter::COUNT];
        pairs.iter().for_each(|(counter, value)| values[*counter] = *value);
        values
    }

    /// A file of two endpoints and three samples, and the samples.
    fn file() -> (Vec<u8>, Vec<(u64, Vec<Values>)>) {
        let samples = vec![
            (5, vec![values(&[(0, 7)])]),
            (1_000_000_007, vec![values(&[(0, 9), (3, u64::MAX)]), values(&[(Counter::COUNT - 1, 1 << 40)])]),
            (1_000_000_007, vec![values(&[(0, 9), (3, 2)]), values(&[])]),
        ];
        let mut bytes = file_header();
        let mut encoder = Encoder::default();
        for (index, (time, values)) in samples.iter().enumerate() {
            if index < 2 {
                bytes.extend(endpoint_record(&EndpointFacts { rank: Some(index as u32), ..EndpointFacts::default() }));
            }
            bytes.extend(encoder.sample(*time, values));
        }
        (bytes, samples)
    }

    fn read(bytes: &[u8]) -> (Vec<(u64, Vec<Values>)>, bool) {
        let mut reader = Reader::new(bytes.to_vec()).unwrap();
        let mut samples = Vec::new();
        while let Some(event) = reader.next_event() {
            if let Event::Sample = event {
                samples.push((reader.time_ns(), reader.values().to_vec()));
            }
        }
        (samples, reader.is_torn())
    }

    #[test]
    fn what_was_written_is_read() {
        let (bytes, samples) = file();
        assert_eq!(read(&bytes), (samples.clone(), false));
        let mut reader = Reader::new(bytes).unwrap();
        while reader.next_event().is_some() {}
        reader.rewind();
        assert!(matches!(reader.next_event(), Some(Event::Endpoint(facts)) if facts.rank == Some(0)));
        assert!(matches!(reader.next_event(), Some(Event::Sample)));
        assert_eq!((reader.time_ns(), reader.values()), (5, &samples[0].1[..]));
    }

    #[test]
    fn a_file_that_ends_anywhere_is_read_up_to_there() {
        let (bytes, samples) = file();
        let start = file_header().len();
        let mut whole = 0;
        for length in start..bytes.len() {
            let (read, torn) = read(&bytes[..length]);
            assert!(read.len() >= whole, "fewer samples of {length} bytes than of less");
            whole = read.len();
            assert_eq!(read, samples[..whole], "{length}");
            assert!(torn || [0, 1, 2].contains(&whole), "{length}");
        }
        assert_eq!(whole, 2, "without its last byte the file lacks its last sample");
        assert!((0..start).all(|length| Reader::new(bytes[..length].to_vec()).is_none()));
    }

    #[test]
    fn damage_ends_the_file_and_nothing_more() {
        let (bytes, samples) = file();
        // Zeros at the end, as a machine that lost its power leaves them.
        let (found, torn) = read(&[&bytes[..], &[0; 40]].concat());
        assert_eq!((found, torn), (samples, true));
        // Any other byte in any place: no panic, and no endless loop.
        for at in file_header().len()..bytes.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = byte;
                assert!(read(&damaged).0.len() <= 3);
            }
        }
    }

    #[test]
    fn a_damaged_sample_changes_nothing() {
        let (bytes, samples) = file();
        let mut encoder = Encoder::default();
        let mut damaged = encoder.sample(u64::MAX / 4, &[values(&[(0, 77)]), values(&[(1, 88)])]);
        // The last byte is part of a number that goes on.
        *damaged.last_mut().unwrap() |= 0x80;
        let mut reader = Reader::new([bytes, damaged].concat()).unwrap();
        while reader.next_event().is_some() {}
        let (time, values) = &samples[2];
        assert!(reader.is_torn() && reader.time_ns() == *time && reader.values() == &values[..], "{reader:?}");
    }

    #[test]
    fn counters_are_found_by_name() {
        let header =
            Header { schema: RECORDING_SCHEMA.into(), counters: vec!["of_the_future".into(), "sends_delayed".into()] };
        let text = serde_json::to_vec(&header).unwrap();
        let bytes = [MAGIC, &*frame(HEADER, &text), &endpoint_record(&EndpointFacts::default())].concat();
        let sample = Encoder::default().sample(1, &[values(&[(0, 3), (1, 4)])]);
        let (samples, torn) = read(&[bytes, sample].concat());
        assert_eq!(samples, [(1, vec![values(&[(Counter::SendsDelayed as usize, 4)])])]);
        assert!(!torn);
    }
}
