//! Every atomic operation on every type, against arithmetic written out the plain way.

use proptest::prelude::*;
use tidegate_message::{
    AtomicCall, AtomicError, AtomicInput, AtomicOp as Op, AtomicType as Type, atomic_apply, atomic_is_valid,
};

const CALLS: [AtomicCall; 3] = [AtomicCall::Update, AtomicCall::Fetch, AtomicCall::Compare];

/// Applies `op` to one element or many; gives back the target afterwards and the result.
fn run(datatype: Type, op: Op, target: &[u8], operand: &[u8], compare: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut after = target.to_vec();
    let mut result = vec![0xaa; target.len()];
    let input = AtomicInput {
        operand: if op == Op::Read { &[] } else { operand },
        compare: if op.compares() { compare } else { &[] },
    };
    atomic_apply(datatype, op, &mut after, input, Some(&mut result)).unwrap();
    (after, result)
}

fn bytes_of<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    values.into_iter().flatten().collect()
}

macro_rules! integer_test {
    ($name:ident, $type:ident, $datatype:expr) => {
        proptest! {
            #[test]
            fn $name(elements in prop::collection::vec(any::<($type, $type, $type)>(), 1..9), same in any::<bool>()) {
                // Half of the runs compare equal somewhere; random 64-bit numbers alone never would.
                let elements: Vec<_> = elements.into_iter().map(|(t, o, c)| (t, o, if same { t } else { c })).collect();
                for op in Op::ALL {
                    let expected = |(t, o, c): &($type, $type, $type)| -> $type {
                        let (t, o, c) = (*t, *o, *c);
                        match op {
                            Op::Min => t.min(o),
                            Op::Max => t.max(o),
                            Op::Sum => t.overflowing_add(o).0,
                            Op::Prod => t.overflowing_mul(o).0,
                            Op::Diff => t.overflowing_sub(o).0,
                            Op::Lor => $type::from(t != 0 || o != 0),
                            Op::Land => $type::from(t != 0 && o != 0),
                            Op::Lxor => $type::from((t != 0) != (o != 0)),
                            Op::Bor => t | o,
                            Op::Band => t & o,
                            Op::Bxor => t ^ o,
                            Op::Read => t,
                            Op::Write => o,
                            Op::CompareSwap => if c == t { o } else { t },
                            Op::CompareSwapNotEqual => if c != t { o } else { t },
                            Op::CompareSwapLessEqual => if c <= t { o } else { t },
                            Op::CompareSwapLess => if c < t { o } else { t },
                            Op::CompareSwapGreaterEqual => if c >= t { o } else { t },
                            Op::CompareSwapGreater => if c > t { o } else { t },
                            Op::MaskedSwap => (o & c) | (t & !c),
                        }
                    };
                    let target = bytes_of(elements.iter().map(|e| e.0.to_le_bytes()));
                    let operand = bytes_of(elements.iter().map(|e| e.1.to_le_bytes()));
                    let compare = bytes_of(elements.iter().map(|e| e.2.to_le_bytes()));
                    let (after, result) = run($datatype, op, &target, &operand, &compare);
                    prop_assert_eq!(after, bytes_of(elements.iter().map(|e| expected(e).to_le_bytes())), "{:?}", op);
                    prop_assert_eq!(result, target, "{:?} returns the values from before", op);
                }
            }
        }
    };
}

integer_test!(int8_is_native, i8, Type::Int8);
integer_test!(uint8_is_native, u8, Type::Uint8);
integer_test!(int16_is_native, i16, Type::Int16);
integer_test!(uint16_is_native, u16, Type::Uint16);
integer_test!(int32_is_native, i32, Type::Int32);
integer_test!(uint32_is_native, u32, Type::Uint32);
integer_test!(int64_is_native, i64, Type::Int64);
integer_test!(uint64_is_native, u64, Type::Uint64);
integer_test!(int128_is_native, i128, Type::Int128);
integer_test!(uint128_is_native, u128, Type::Uint128);

macro_rules! float_test {
    ($name:ident, $type:ident, $datatype:expr) => {
        proptest! {
            #[test]
            fn $name(t in prop::num::$type::ANY, o in prop::num::$type::ANY, c in prop::num::$type::ANY, same in any::<bool>()) {
                let c = if same { t } else { c };
                let truth = |value: bool| if value { 1.0 } else { 0.0 };
                for op in Op::ALL.into_iter().filter(|op| defined_on_reals(*op)) {
                    let expected: $type = match op {
                        Op::Min => if o < t { o } else { t },
                        Op::Max => if o > t { o } else { t },
                        Op::Sum => t + o,
                        Op::Prod => t * o,
                        Op::Diff => t - o,
                        Op::Lor => truth(t != 0.0 || o != 0.0),
                        Op::Land => truth(t != 0.0 && o != 0.0),
                        Op::Lxor => truth((t != 0.0) != (o != 0.0)),
                        Op::Write => o,
                        Op::CompareSwap if c == t => o,
                        Op::CompareSwapNotEqual if c != t => o,
                        Op::CompareSwapLessEqual if c <= t => o,
                        Op::CompareSwapLess if c < t => o,
                        Op::CompareSwapGreaterEqual if c >= t => o,
                        Op::CompareSwapGreater if c > t => o,
                        _ => t,
                    };
                    let (after, result) = run($datatype, op, &t.to_le_bytes(), &o.to_le_bytes(), &c.to_le_bytes());
                    let computed = $type::from_le_bytes(after.as_slice().try_into().unwrap());
                    if matches!(op, Op::Sum | Op::Prod | Op::Diff) && expected.is_nan() {
                        // Which NaN arithmetic yields is the processor's business.
                        prop_assert!(computed.is_nan(), "{:?}", op);
                    } else {
                        prop_assert_eq!(computed.to_bits(), expected.to_bits(), "{:?} of {} and {}", op, t, o);
                    }
                    prop_assert_eq!(result, t.to_le_bytes());
                }
            }
        }
    };
}

float_test!(float_is_native, f32, Type::Float);
float_test!(double_is_native, f64, Type::Double);

fn defined_on_reals(op: Op) -> bool {
    !matches!(op, Op::Bor | Op::Band | Op::Bxor | Op::MaskedSwap)
}

fn complex(real: f64, imaginary: f64) -> Vec<u8> {
    bytes_of([real.to_le_bytes(), imaginary.to_le_bytes()])
}

proptest! {
    #[test]
    fn double_complex_follows_the_textbook(a in -1e9..1e9f64, b in -1e9..1e9f64, c in -1e9..1e9f64, d in -1e9..1e9f64) {
        let apply = |op| run(Type::DoubleComplex, op, &complex(a, b), &complex(c, d), &complex(a, b)).0;
        prop_assert_eq!(apply(Op::Sum), complex(a + c, b + d));
        prop_assert_eq!(apply(Op::Diff), complex(a - c, b - d));
        prop_assert_eq!(apply(Op::Prod), complex(a * c - b * d, a * d + b * c));
        prop_assert_eq!(apply(Op::CompareSwap), complex(c, d));
        prop_assert_eq!(apply(Op::CompareSwapNotEqual), complex(a, b));
    }

    #[test]
    fn float_complex_follows_the_textbook(a in -1e4..1e4f32, b in -1e4..1e4f32, c in -1e4..1e4f32, d in -1e4..1e4f32) {
        let pair = |real: f32, imaginary: f32| bytes_of([real.to_le_bytes(), imaginary.to_le_bytes()]);
        let apply = |op| run(Type::FloatComplex, op, &pair(a, b), &pair(c, d), &pair(c, d)).0;
        prop_assert_eq!(apply(Op::Sum), pair(a + c, b + d));
        prop_assert_eq!(apply(Op::Diff), pair(a - c, b - d));
        prop_assert_eq!(apply(Op::Prod), pair(a * c - b * d, a * d + b * c));
    }
}

#[test]
fn a_complex_number_is_true_if_either_part_is() {
    let (zero, only_imaginary) = (complex(0.0, -0.0), complex(0.0, 3.0));
    let apply = |op, target: &[u8], operand: &[u8]| run(Type::DoubleComplex, op, target, operand, &[]).0;
    assert_eq!(apply(Op::Lor, &zero, &only_imaginary), complex(1.0, 0.0));
    assert_eq!(apply(Op::Land, &only_imaginary, &only_imaginary), complex(1.0, 0.0));
    assert_eq!(apply(Op::Land, &only_imaginary, &zero), complex(0.0, 0.0));
    assert_eq!(apply(Op::Lxor, &only_imaginary, &only_imaginary), complex(0.0, 0.0));
}

#[test]
fn nan_is_never_smaller_larger_or_equal_and_always_different() {
    let (nan, one) = (f64::NAN.to_le_bytes(), 1f64.to_le_bytes());
    for (op, target, operand, expected) in [
        (Op::Min, nan, one, nan),
        (Op::Min, one, nan, one),
        (Op::Max, nan, one, nan),
        (Op::Max, one, nan, one),
        (Op::Lor, nan, nan, one),
    ] {
        assert_eq!(run(Type::Double, op, &target, &operand, &[]).0, expected, "{op:?}");
    }
    for op in Op::ALL.into_iter().filter(|op| op.compares() && *op != Op::MaskedSwap) {
        let swaps = run(Type::Double, op, &nan, &one, &nan).0 == one;
        assert_eq!(swaps, op == Op::CompareSwapNotEqual, "{op:?}");
    }
}

#[test]
fn both_zeros_are_equal() {
    let (plus, minus, seven) = (0f32.to_le_bytes(), (-0f32).to_le_bytes(), 7f32.to_le_bytes());
    assert_eq!(run(Type::Float, Op::CompareSwap, &minus, &seven, &plus).0, seven);
}

/// `long double` as exponent with sign, and significand with the explicit integer bit; padding as C leaves it: garbage.
#[cfg(target_arch = "x86_64")]
fn long_double((exponent, significand): (u16, u64), padding: u8) -> Vec<u8> {
    let mut bytes = significand.to_le_bytes().to_vec();
    bytes.extend(exponent.to_le_bytes());
    bytes.extend([padding; 6]);
    bytes
}

/// Two operands, then their sum, difference and product as x87 hardware computes them (printed by a C program).
#[cfg(target_arch = "x86_64")]
type LongDoubleCase = [(u16, u64); 5];

#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const LONG_DOUBLE_CASES: [LongDoubleCase; 14] = [
    [(0x3fff, 0x8000000000000000), (0x3fc0, 0x8000000000000000), (0x3fff, 0x8000000000000001), (0x3ffe, 0xfffffffffffffffe), (0x3fc0, 0x8000000000000000)],
    [(0x3fff, 0x8000000000000000), (0x3fbf, 0x8000000000000000), (0x3fff, 0x8000000000000000), (0x3ffe, 0xffffffffffffffff), (0x3fbf, 0x8000000000000000)],
    [(0x3fff, 0xffffffffffffffff), (0x3fbf, 0x8000000000000000), (0x4000, 0x8000000000000000), (0x3fff, 0xfffffffffffffffe), (0x3fbf, 0xffffffffffffffff)],
    [(0x3ffb, 0xcccccccccccccccd), (0x3ffb, 0xcccccccccccccccd), (0x3ffc, 0xcccccccccccccccd), (0x0000, 0x0000000000000000), (0x3ff8, 0xa3d70a3d70a3d70b)],
    [(0x3ffb, 0xcccccccccccccccd), (0xc000, 0xa000000000000000), (0xc000, 0x999999999999999a), (0x4000, 0xa666666666666666), (0xbffd, 0x8000000000000000)],
    [(0x73e6, 0xd1ba8323fe558c61), (0x73e6, 0xd1ba8323fe558c61), (0x73e7, 0xd1ba8323fe558c61), (0x0000, 0x0000000000000000), (0x7fff, 0x8000000000000000)],
    [(0x0000, 0x0000000663278e62), (0x0000, 0x0000000663278e62), (0x0000, 0x0000000cc64f1cc4), (0x0000, 0x0000000000000000), (0x0000, 0x0000000000000000)],
    [(0x0000, 0x0000000663278e62), (0x3ffb, 0xcccccccccccccccd), (0x3ffb, 0xcccccccccccccccd), (0xbffb, 0xcccccccccccccccd), (0x0000, 0x00000000a383f4a3)],
    [(0x3fff, 0xffffffffffffffff), (0x3fff, 0xffffffffffffffff), (0x4000, 0xffffffffffffffff), (0x0000, 0x0000000000000000), (0x4000, 0xfffffffffffffffe)],
    [(0x73e6, 0xd1ba8323fe558c61), (0x7fff, 0x8000000000000000), (0x7fff, 0x8000000000000000), (0xffff, 0x8000000000000000), (0x7fff, 0x8000000000000000)],
    [(0x8000, 0x0000000000000000), (0x8000, 0x0000000000000000), (0x8000, 0x0000000000000000), (0x0000, 0x0000000000000000), (0x0000, 0x0000000000000000)],
    [(0x3fff, 0x8000000000000000), (0x8000, 0x0000000000000000), (0x3fff, 0x8000000000000000), (0x3fff, 0x8000000000000000), (0x8000, 0x0000000000000000)],
    [(0x3ffb, 0xcccccccccccccccd), (0x3fff, 0xffffffffffffffff), (0x4000, 0x8666666666666666), (0xbfff, 0xf333333333333332), (0x3ffc, 0xcccccccccccccccc)],
    [(0x73e6, 0xd1ba8323fe558c61), (0x0000, 0x0000000663278e62), (0x73e6, 0xd1ba8323fe558c61), (0x73e6, 0xd1ba8323fe558c61), (0x33cc, 0xa7735373d33f892e)],
];

#[test]
#[cfg(target_arch = "x86_64")]
fn long_double_computes_as_x87_hardware_does() {
    for case @ [target, operand, sum, difference, product] in LONG_DOUBLE_CASES {
        for (op, expected) in [(Op::Sum, sum), (Op::Diff, difference), (Op::Prod, product)] {
            let after = run(Type::LongDouble, op, &long_double(target, 0x5a), &long_double(operand, 0xa5), &[]).0;
            assert_eq!(after, long_double(expected, 0), "{op:?} in {case:x?}");
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn long_double_compares_values_and_moves_all_sixteen_bytes() {
    let (small, large) =
        (long_double((0x3ffb, 0xcccccccccccccccd), 0x11), long_double((0x3fff, 0xffffffffffffffff), 0x22));
    let small_padded_otherwise = long_double((0x3ffb, 0xcccccccccccccccd), 0x33);
    assert_eq!(run(Type::LongDouble, Op::CompareSwap, &small, &large, &small_padded_otherwise).0, large);
    assert_eq!(run(Type::LongDouble, Op::CompareSwap, &small, &large, &large).0, small);
    assert_eq!(run(Type::LongDouble, Op::CompareSwapGreater, &small, &large, &large).0, large);
    assert_eq!(run(Type::LongDouble, Op::Write, &small, &large, &[]).0, large);
    assert_eq!(run(Type::LongDouble, Op::Min, &large, &small, &[]).0[..10], small[..10]);
    assert_eq!(run(Type::LongDouble, Op::Max, &large, &small, &[]).0[..10], large[..10]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn long_double_complex_multiplies() {
    // (1 + 2^-63 i) * (2^-63 + i) = 0 + (1 + 2^-126) i, which rounds to i.
    let (one, tiny, zero) = ((0x3fff, 1 << 63), (0x3fc0, 1 << 63), (0, 0));
    let number = |real, imaginary| [long_double(real, 0), long_double(imaginary, 0)].concat();
    let (after, _) = run(Type::LongDoubleComplex, Op::Prod, &number(one, tiny), &number(tiny, one), &[]);
    assert_eq!(after, number(zero, one));
}

#[test]
fn what_is_not_defined_is_refused_and_changes_nothing() {
    for datatype in Type::ALL {
        for op in Op::ALL {
            let mut target = vec![0x5a; 2 * datatype.size()];
            let mut result = vec![0xa5; 2 * datatype.size()];
            let operand = if op == Op::Read { vec![] } else { vec![1; target.len()] };
            let compare = if op.compares() { vec![2; target.len()] } else { vec![] };
            let input = AtomicInput { operand: &operand, compare: &compare };
            let applied = atomic_apply(datatype, op, &mut target, input, Some(&mut result));
            let valid = CALLS.into_iter().any(|call| atomic_is_valid(datatype, op, call));
            assert_eq!(applied.is_ok(), valid, "{op:?} on {datatype:?}");
            if !valid {
                assert_eq!(applied, Err(AtomicError::Unsupported));
                assert!(target.iter().all(|byte| *byte == 0x5a) && result.iter().all(|byte| *byte == 0xa5));
            }
        }
    }
}

#[test]
fn validity_follows_the_manual_page() {
    let real = Type::Double;
    assert!(atomic_is_valid(real, Op::Sum, AtomicCall::Update) && atomic_is_valid(real, Op::Sum, AtomicCall::Fetch));
    assert!(!atomic_is_valid(real, Op::Sum, AtomicCall::Compare));
    assert!(!atomic_is_valid(real, Op::Read, AtomicCall::Update) && atomic_is_valid(real, Op::Read, AtomicCall::Fetch));
    assert!(
        !atomic_is_valid(real, Op::Bxor, AtomicCall::Update)
            && !atomic_is_valid(real, Op::MaskedSwap, AtomicCall::Compare)
    );
    assert!(atomic_is_valid(Type::Int8, Op::MaskedSwap, AtomicCall::Compare));
    assert!(!atomic_is_valid(Type::Int8, Op::CompareSwap, AtomicCall::Fetch));
    for complex in [Type::FloatComplex, Type::DoubleComplex, Type::LongDoubleComplex] {
        assert!(!atomic_is_valid(complex, Op::Min, AtomicCall::Update));
        assert!(!atomic_is_valid(complex, Op::CompareSwapLess, AtomicCall::Compare));
        assert!(atomic_is_valid(complex, Op::CompareSwapNotEqual, AtomicCall::Compare));
        assert!(atomic_is_valid(complex, Op::Land, AtomicCall::Fetch));
    }
    let defined = Type::ALL.iter().flat_map(|t| Op::ALL.map(|op| (*t, op)));
    let count = defined.filter(|(t, op)| CALLS.iter().any(|call| atomic_is_valid(*t, *op, *call))).count();
    assert_eq!(count, 10 * 20 + 3 * 16 + 3 * 10, "integers everything, reals no bits, complex no order either");
}

#[test]
fn lengths_that_do_not_fit_are_refused_and_change_nothing() {
    let apply = |target: &mut [u8], operand: &[u8], compare: &[u8], op, result: Option<&mut [u8]>| {
        atomic_apply(Type::Int32, op, target, AtomicInput { operand, compare }, result)
    };
    let mut target = [7; 8];
    assert_eq!(apply(&mut target[..6], &[1; 6], &[], Op::Sum, None), Err(AtomicError::Length), "half an element");
    assert_eq!(apply(&mut target, &[1; 4], &[], Op::Sum, None), Err(AtomicError::Length), "operand too short");
    assert_eq!(apply(&mut target, &[1; 8], &[1; 8], Op::Sum, None), Err(AtomicError::Length), "nothing to compare");
    assert_eq!(
        apply(&mut target, &[1; 8], &[1; 4], Op::CompareSwap, None),
        Err(AtomicError::Length),
        "compare too short"
    );
    assert_eq!(
        apply(&mut target, &[1; 8], &[], Op::Sum, Some(&mut [0; 4])),
        Err(AtomicError::Length),
        "result too short"
    );
    assert_eq!(target, [7; 8]);
}

#[test]
fn types_and_operations_survive_the_wire() {
    for (index, datatype) in Type::ALL.into_iter().enumerate() {
        assert_eq!((datatype as usize, Type::from_wire(index as u8)), (index, Some(datatype)));
    }
    for (index, op) in Op::ALL.into_iter().enumerate() {
        assert_eq!((op as usize, Op::from_wire(index as u8)), (index, Some(op)));
    }
    assert_eq!((Type::from_wire(16), Op::from_wire(20)), (None, None));
}
