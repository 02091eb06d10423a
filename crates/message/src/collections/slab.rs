//! Storage with stable names, for what a peer may name by number.

/// The name of a slab's element: an index and how often its place was used before, so a stale or invented name finds
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(crate) u32);

const INDEX_BITS: u32 = 22;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

impl Key {
    fn new(index: usize, generation: u32) -> Key {
        Key(index as u32 | generation << INDEX_BITS)
    }
    fn index(self) -> usize {
        (self.0 & INDEX_MASK) as usize
    }
    fn generation(self) -> u32 {
        self.0 >> INDEX_BITS
    }
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Elements by [`Key`]. Never holds more than 2²² of them.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether one more element fits.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.places.len() <= INDEX_MASK as usize
    }

    /// Panics if the slab is full: ask [`has_room`](Self::has_room).
    pub(crate) fn insert(&mut self, value: T) -> Key {
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None => {
                assert!(self.has_room(), "slab is full");
                self.places.push(Place { generation: 0, value: None });
                self.places.len() - 1
            }
        };
        let place = &mut self.places[index];
        place.value = Some(value);
        Key::new(index, place.generation)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.index())?;
        if place.generation == key.generation() { place.value.as_mut() } else { None }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.index())?;
        if place.generation == key.generation() { place.value.as_ref() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.index())?;
        if place.generation != key.generation() {
            return None;
        }
        let value = place.value.take()?;
        place.generation = (place.generation + 1) & (u32::MAX >> INDEX_BITS);
        self.free.push(key.index() as u32);
        Some(value)
    }

    /// The elements in so many places from one on, with their keys.
    pub(crate) fn some(&self, from: usize, places: usize) -> impl Iterator<Item = (Key, &T)> {
        let places = self.places.iter().enumerate().skip(from).take(places);
        places.filter_map(|(index, place)| Some((Key::new(index, place.generation), place.value.as_ref()?)))
    }

    /// How many places there are, with elements or without.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Whether there is an element for which `wanted` holds. It is looked for from place `from` on, and around; then
    /// `from` is its place.
    pub(crate) fn find_around(&self, from: &mut usize, wanted: impl Fn(&T) -> bool) -> bool {
        let count = self.places.len();
        let found = (0..count)
            .map(|step| (*from + step) % count)
            .find(|&place| self.places[place].value.as_ref().is_some_and(&wanted));
        *from = found.unwrap_or(0);
        found.is_some()
    }

    /// The keys of all elements for which `wanted` holds.
    pub(crate) fn keys_where(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<Key> {
        let of_place = |(index, place): (usize, &Place<T>)| {
            let value = place.value.as_ref()?;
            wanted(value).then(|| Key::new(index, place.generation))
        };
        self.places.iter().enumerate().filter_map(of_place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_find_their_own_elements_however_often_places_are_used_again() {
        let mut slab = Slab::new();
        let mut keys = [0, 1, 2].map(|value| slab.insert(value));
        for value in 3..10_000 {
            let which = value % 3;
            assert_eq!(slab.remove(keys[which]), Some(value - 3));
            assert_eq!(slab.get(keys[which]), None);
            keys[which] = slab.insert(value);
            assert_eq!(
                keys.map(|key| slab.get(key).is_some_and(|of| of % 3 == which)).iter().filter(|it| **it).count(),
                1
            );
        }
        assert_eq!((slab.len(), slab.places()), (3, 3));
    }

    #[test]
    fn a_stale_key_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(first.index(), second.index());
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&'b'));
        assert_eq!(slab.get(Key(u32::MAX)), None);
    }

    #[test]
    fn an_element_is_looked_for_where_the_last_was_found_and_all_around() {
        let mut slab = Slab::new();
        let keys: Vec<_> = "abca".chars().map(|value| slab.insert(value)).collect();
        let mut from = 1;
        assert!(slab.find_around(&mut from, |&value| value == 'a') && from == 3);
        slab.remove(keys[3]);
        assert!(slab.find_around(&mut from, |&value| value == 'a') && from == 0);
        slab.remove(keys[0]);
        assert!(!slab.find_around(&mut from, |&value| value == 'a'));
        assert!(!Slab::<char>::new().find_around(&mut from, |_| true));
    }
}
