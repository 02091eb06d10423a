//! [`Slots`]: things with numbers, which are used again.

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slots<T> {
    pub(crate) fn new() -> Self {
        Slots { items: Vec::new(), free: Vec::new() }
    }

    /// Keeps an item; returns its number.
    pub(crate) fn put(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.items[place as usize] = item;
                place
            }
            None => {
                self.items.push(item);
                self.items.len() as u32 - 1
            }
        }
    }

    /// The item of that number.
    pub(crate) fn of(&mut self, place: u32) -> &mut T {
        &mut self.items[place as usize]
    }

    /// Forgets an item, whose number goes to another; returns what it was.
    pub(crate) fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        self.items[place as usize]
    }
}
