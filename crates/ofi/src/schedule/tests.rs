//! The functions as C calls them.

use super::layout::{ARRIVED, CPiece, FINISHED, LOST, SEND, SENT, WAIT};
use super::*;
use core::ptr::{null, null_mut};

fn settings() -> CSettings {
    Settings::default().into()
}

/// A handle of the exchange of node 0 of 2, which sends 10 bytes to node 1.
fn made(name: &CStr) -> *mut Handle {
    let blocks = [CBlock { to: 1, reserved: 0, bytes: 10 }];
    let mut handle = null_mut();
    // SAFETY: all pointers are valid.
    let code = unsafe {
        let number = tidegate_bulk_technique(name.as_ptr());
        tidegate_bulk_new(number, 0, 2, blocks.as_ptr(), 1, &settings(), &raw mut handle)
    };
    assert_eq!(code, 0);
    handle
}

#[test]
fn names_and_numbers_are_those_of_the_table() {
    for (number, name) in (0..).zip(TechniqueName::ALL) {
        // SAFETY: the names are C strings that live for ever.
        unsafe {
            let told = CStr::from_ptr(tidegate_bulk_technique_name(number));
            assert_eq!(told.to_str(), Ok(name.name()));
            assert_eq!(tidegate_bulk_technique(told.as_ptr()), number);
        }
        let text = WRONG.iter().find(|(wrong, _)| *wrong == Wrong::Technique).unwrap().1;
        assert!(text.to_str().unwrap().contains(name.name()));
    }
    assert!(tidegate_bulk_technique_name(TechniqueName::ALL.len() as c_int).is_null());
    assert!(tidegate_bulk_technique_name(-1).is_null());
    assert_eq!((tidegate_bulk_is_delivered(0), tidegate_bulk_is_delivered(3)), (0, 1));
    assert_eq!((tidegate_bulk_cuts(1), tidegate_bulk_cuts(3), tidegate_bulk_cuts(6)), (1, 0, 1));
}

#[test]
fn an_exchange_is_driven_and_ends() {
    let handle = made(c"in_order");
    let mut step = CStep::default();
    // SAFETY: the handle is open until it is freed, the structs are valid.
    unsafe {
        assert_eq!(tidegate_bulk_step(handle, 0, &raw mut step), 0);
        assert_eq!((step.kind, step.piece), (SEND, CPiece { block: 0, to: 1, offset: 0, bytes: 10 }));
        let piece = step.piece;
        assert_eq!(tidegate_bulk_step(handle, 1, &raw mut step), 0);
        assert_eq!(step.kind, WAIT);
        for kind in [ARRIVED, SENT] {
            let event = CEvent { kind, peer: 1, piece, ..CEvent::default() };
            assert_eq!(tidegate_bulk_handle(handle, &event), 0);
        }
        assert_eq!(tidegate_bulk_step(handle, 2, &raw mut step), 0);
        assert_eq!(step.kind, FINISHED);
        tidegate_bulk_free(handle);
    }
}

#[test]
fn bad_arguments_are_named() {
    let (mut handle, number) = (null_mut(), 4);
    let wrong = |code: c_int, wrong: Wrong| {
        assert_eq!(code, wrong as c_int);
        // SAFETY: the texts live for ever.
        assert!(!unsafe { CStr::from_ptr(tidegate_bulk_error(code)) }.is_empty());
    };
    let unfit: CSettings = Settings { window: 0, ..Settings::default() }.into();
    let stranger = [CBlock { to: 2, reserved: 0, bytes: 1 }];
    // SAFETY: what is not null is valid; the handle is open until it is freed.
    unsafe {
        wrong(tidegate_bulk_technique(null()), Wrong::Null);
        wrong(tidegate_bulk_technique(c"tokens ".as_ptr()), Wrong::Technique);
        wrong(tidegate_bulk_new(7, 0, 2, null(), 0, null(), &raw mut handle), Wrong::Technique);
        wrong(tidegate_bulk_new(-1, 0, 2, null(), 0, null(), &raw mut handle), Wrong::Technique);
        wrong(tidegate_bulk_new(number, 0, 2, null(), 1, null(), &raw mut handle), Wrong::Null);
        wrong(tidegate_bulk_new(number, 0, 2, null(), 0, null(), null_mut()), Wrong::Null);
        wrong(tidegate_bulk_new(number, 2, 2, null(), 0, null(), &raw mut handle), Wrong::Node);
        wrong(tidegate_bulk_new(number, 0, 2, stranger.as_ptr(), 1, null(), &raw mut handle), Wrong::Node);
        wrong(tidegate_bulk_new(number, 0, 2, null(), 0, &unfit, &raw mut handle), Wrong::Settings);
        assert!(handle.is_null());
        wrong(tidegate_bulk_step(null_mut(), 0, &mut CStep::default()), Wrong::Null);
        wrong(tidegate_bulk_handle(null_mut(), &CEvent::default()), Wrong::Null);
        let handle = made(c"tokens");
        wrong(tidegate_bulk_step(handle, 0, null_mut()), Wrong::Null);
        wrong(tidegate_bulk_handle(handle, null()), Wrong::Null);
        wrong(tidegate_bulk_handle(handle, &CEvent { kind: LOST + 1, ..CEvent::default() }), Wrong::Event);
        wrong(tidegate_bulk_handle(handle, &CEvent { kind: 2, ..CEvent::default() }), Wrong::Event);
        assert_eq!(tidegate_bulk_defaults(null_mut()), Wrong::Null as c_int);
        tidegate_bulk_free(handle);
        tidegate_bulk_free(null_mut());
    }
}

#[test]
fn a_panic_stops_at_the_border_and_the_exchange_is_not_used_again() {
    let handle = made(c"tokens");
    // SAFETY: the handle is open until it is freed.
    unsafe {
        assert_eq!(with(handle, |_| panic!("on purpose")), Wrong::Internal as c_int);
        assert_eq!(tidegate_bulk_step(handle, 0, &mut CStep::default()), Wrong::Internal as c_int);
        tidegate_bulk_free(handle);
    }
}
