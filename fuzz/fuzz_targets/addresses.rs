//! Arbitrary addresses, as a launcher may hand them on: each is refused, or is one, and then it is the same again as bytes.
//! With a first byte that is even, the rest gets a mark and a check value that are right.

#![no_main]

use tidegate_link::fabric::Contact;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let mut address = rest.to_vec();
    if first % 2 == 0 && address.len() >= Contact::BYTES {
        Contact::make_sound(&mut address);
    }
    if let Ok(contact) = Contact::from_bytes(&address) {
        let _ = (contact.to_string(), contact.lower.to_string(), contact.kind.to_string());
        let again = Contact::from_bytes(&contact.to_bytes()).expect("it was one");
        assert!(again == contact && again.to_bytes() == contact.to_bytes());
    }
});
