//! What an atomic operation does to memory: every [`AtomicOp`] on every [`AtomicType`], element by element, on bytes.
//!
//! The idea: moving and bitwise operations do not care about the element type and work on plain bytes. Everything else
//! loads elements as a [`Value`]; ordering needs `PartialOrd` as well, which complex numbers do not have. So what
//! libfabric leaves undefined (bitwise on floating point, order on complex numbers) has no code here to call.
//!
//! Stated, because libfabric's manual page leaves it open:
//! * integers wrap on overflow;
//! * floating point compares as IEEE 754 says: nothing equals NaN, NaN is neither less nor greater, and `-0 == +0`. So
//!   `Min` and `Max` keep the target when either side is NaN, and `CompareSwapNotEqual` swaps when either is NaN;
//! * a swap moves bytes, so NaN payloads and the padding of `long double` arrive unchanged;
//! * logical operations take NaN for true (it is not zero), a complex number for true if either part is, and yield 1 or
//!   0;
//! * a complex product is the plain `(ac - bd) + (ad + bc)i`, without C's rescue of infinities (annex G);
//! * `long double` is the 80-bit x87 format in 16 bytes on x86-64 (written padding is zero), IEEE binary128 elsewhere.

use crate::operation::{AtomicOp, AtomicType};
use rustc_apfloat::Float;

#[cfg(not(target_arch = "x86_64"))]
type LongFormat = rustc_apfloat::ieee::Quad;
#[cfg(target_arch = "x86_64")]
type LongFormat = rustc_apfloat::ieee::X87DoubleExtended;

/// Which of libfabric's three atomic calls: each allows operations of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicCall {
    /// `fi_atomic`.
    Update,
    /// `fi_fetch_atomic`.
    Fetch,
    /// `fi_compare_atomic`.
    Compare,
}

/// Why an atomic was not applied. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicError {
    /// The operation is not defined for the element type.
    Unsupported,
    /// Target, operand, comparison and result are not the same whole number of elements.
    Length,
}

/// What an atomic brings to the target. Each slice is as long as the target, or empty where the operation does not use
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtomicInput<'a> {
    /// The operand (`buf` of fi_atomic(3)). [`AtomicOp::Read`] has none.
    pub operand: &'a [u8],
    /// What is compared, or the mask of [`AtomicOp::MaskedSwap`] (`compare`). Only compare operations have one.
    pub compare: &'a [u8],
}

impl AtomicType {
    /// Every type, in the order of the wire format.
    pub const ALL: [AtomicType; 16] = [
        AtomicType::Int8,
        AtomicType::Uint8,
        AtomicType::Int16,
        AtomicType::Uint16,
        AtomicType::Int32,
        AtomicType::Uint32,
        AtomicType::Int64,
        AtomicType::Uint64,
        AtomicType::Int128,
        AtomicType::Uint128,
        AtomicType::Float,
        AtomicType::Double,
        AtomicType::FloatComplex,
        AtomicType::DoubleComplex,
        AtomicType::LongDouble,
        AtomicType::LongDoubleComplex,
    ];

    /// The type that a byte from the wire means, if any.
    pub fn from_wire(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Bytes of one element in memory.
    pub fn size(self) -> usize {
        match self {
            AtomicType::Int8 | AtomicType::Uint8 => 1,
            AtomicType::Int16 | AtomicType::Uint16 => 2,
            AtomicType::Int32 | AtomicType::Uint32 | AtomicType::Float => 4,
            AtomicType::Int64 | AtomicType::Uint64 | AtomicType::Double | AtomicType::FloatComplex => 8,
            AtomicType::Int128 | AtomicType::Uint128 | AtomicType::DoubleComplex | AtomicType::LongDouble => 16,
            AtomicType::LongDoubleComplex => 32,
        }
    }

    fn is_integer(self) -> bool {
        self as u8 <= AtomicType::Uint128 as u8
    }

    fn is_complex(self) -> bool {
        matches!(self, AtomicType::FloatComplex | AtomicType::DoubleComplex | AtomicType::LongDoubleComplex)
    }
}

impl AtomicOp {
    /// Every operation, in the order of the wire format.
    pub const ALL: [AtomicOp; 20] = [
        AtomicOp::Min,
        AtomicOp::Max,
        AtomicOp::Sum,
        AtomicOp::Prod,
        AtomicOp::Lor,
        AtomicOp::Land,
        AtomicOp::Bor,
        AtomicOp::Band,
        AtomicOp::Lxor,
        AtomicOp::Bxor,
        AtomicOp::Read,
        AtomicOp::Write,
        AtomicOp::CompareSwap,
        AtomicOp::CompareSwapNotEqual,
        AtomicOp::CompareSwapLessEqual,
        AtomicOp::CompareSwapLess,
        AtomicOp::CompareSwapGreaterEqual,
        AtomicOp::CompareSwapGreater,
        AtomicOp::MaskedSwap,
        AtomicOp::Diff,
    ];

    /// The operation that a byte from the wire means, if any.
    pub fn from_wire(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Whether the operation takes something to compare (or a mask) beside its operand.
    pub fn compares(self) -> bool {
        (AtomicOp::CompareSwap as u8..=AtomicOp::MaskedSwap as u8).contains(&(self as u8))
    }

    /// Whether the operation ever changes the target.
    pub fn writes(self) -> bool {
        self != AtomicOp::Read
    }
}

/// Whether `call` may do `op` on elements of `datatype` (fi_atomicvalid and its two siblings).
pub fn is_valid(datatype: AtomicType, op: AtomicOp, call: AtomicCall) -> bool {
    let call_allows = match call {
        AtomicCall::Update => !op.compares() && op.writes(),
        AtomicCall::Fetch => !op.compares(),
        AtomicCall::Compare => op.compares(),
    };
    call_allows && is_defined(datatype, op)
}

/// Whether the operation makes sense for the type, whatever the call.
fn is_defined(datatype: AtomicType, op: AtomicOp) -> bool {
    match op {
        AtomicOp::Bor | AtomicOp::Band | AtomicOp::Bxor | AtomicOp::MaskedSwap => datatype.is_integer(),
        AtomicOp::Min
        | AtomicOp::Max
        | AtomicOp::CompareSwapLessEqual
        | AtomicOp::CompareSwapLess
        | AtomicOp::CompareSwapGreaterEqual
        | AtomicOp::CompareSwapGreater => !datatype.is_complex(),
        _ => true,
    }
}

/// Applies `op` to every element of `target` and puts the values from before into `result`, if there is one.
///
/// Bytes are little-endian elements in a row. On an error nothing has changed.
pub fn apply(
    datatype: AtomicType,
    op: AtomicOp,
    target: &mut [u8],
    input: AtomicInput<'_>,
    result: Option<&mut [u8]>,
) -> Result<(), AtomicError> {
    if !is_defined(datatype, op) {
        return Err(AtomicError::Unsupported);
    }
    let bytes = target.len();
    let fits = |wanted: bool, part: &[u8]| part.len() == if wanted { bytes } else { 0 };
    let operand_fits = fits(op.writes(), input.operand) && fits(op.compares(), input.compare);
    if !bytes.is_multiple_of(datatype.size()) || !operand_fits || result.as_ref().is_some_and(|r| r.len() != bytes) {
        return Err(AtomicError::Length);
    }
    if let Some(result) = result {
        result.copy_from_slice(target);
    }
    match op {
        AtomicOp::Read => {}
        AtomicOp::Write => target.copy_from_slice(input.operand),
        AtomicOp::Bor => each_byte(target, input.operand, |target, operand| target | operand),
        AtomicOp::Band => each_byte(target, input.operand, |target, operand| target & operand),
        AtomicOp::Bxor => each_byte(target, input.operand, |target, operand| target ^ operand),
        AtomicOp::MaskedSwap => masked_swap(target, input),
        _ => apply_values(datatype, op, target, input),
    }
    Ok(())
}

fn each_byte(target: &mut [u8], operand: &[u8], combine: impl Fn(u8, u8) -> u8) {
    for (target, operand) in target.iter_mut().zip(operand) {
        *target = combine(*target, *operand);
    }
}

fn masked_swap(target: &mut [u8], input: AtomicInput<'_>) {
    for ((target, operand), mask) in target.iter_mut().zip(input.operand).zip(input.compare) {
        *target = (operand & mask) | (*target & !mask);
    }
}

fn apply_values(datatype: AtomicType, op: AtomicOp, target: &mut [u8], input: AtomicInput<'_>) {
    match datatype {
        AtomicType::Int8 => ordered::<i8>(op, target, input),
        AtomicType::Uint8 => ordered::<u8>(op, target, input),
        AtomicType::Int16 => ordered::<i16>(op, target, input),
        AtomicType::Uint16 => ordered::<u16>(op, target, input),
        AtomicType::Int32 => ordered::<i32>(op, target, input),
        AtomicType::Uint32 => ordered::<u32>(op, target, input),
        AtomicType::Int64 => ordered::<i64>(op, target, input),
        AtomicType::Uint64 => ordered::<u64>(op, target, input),
        AtomicType::Int128 => ordered::<i128>(op, target, input),
        AtomicType::Uint128 => ordered::<u128>(op, target, input),
        AtomicType::Float => ordered::<f32>(op, target, input),
        AtomicType::Double => ordered::<f64>(op, target, input),
        AtomicType::LongDouble => ordered::<LongDouble>(op, target, input),
        AtomicType::FloatComplex => unordered::<Complex<f32>>(op, target, input),
        AtomicType::DoubleComplex => unordered::<Complex<f64>>(op, target, input),
        AtomicType::LongDoubleComplex => unordered::<Complex<LongDouble>>(op, target, input),
    }
}

/// Operations on numbers that have an order.
fn ordered<T: Value + PartialOrd>(op: AtomicOp, target: &mut [u8], input: AtomicInput<'_>) {
    match op {
        AtomicOp::Min => each(target, input, |target: T, operand| if operand < target { operand } else { target }),
        AtomicOp::Max => each(target, input, |target: T, operand| if operand > target { operand } else { target }),
        AtomicOp::CompareSwapLessEqual => swap_if(target, input, |compare: T, target| compare <= target),
        AtomicOp::CompareSwapLess => swap_if(target, input, |compare: T, target| compare < target),
        AtomicOp::CompareSwapGreaterEqual => swap_if(target, input, |compare: T, target| compare >= target),
        AtomicOp::CompareSwapGreater => swap_if(target, input, |compare: T, target| compare > target),
        _ => unordered::<T>(op, target, input),
    }
}

/// Operations on any number. Whatever else [`AtomicOp`] names was done before, or refused by [`is_defined`].
fn unordered<T: Value>(op: AtomicOp, target: &mut [u8], input: AtomicInput<'_>) {
    match op {
        AtomicOp::Sum => each(target, input, T::sum),
        AtomicOp::Prod => each(target, input, T::product),
        AtomicOp::Diff => each(target, input, T::difference),
        AtomicOp::Lor => each(target, input, |target: T, operand| T::truth(target.is_true() || operand.is_true())),
        AtomicOp::Land => each(target, input, |target: T, operand| T::truth(target.is_true() && operand.is_true())),
        AtomicOp::Lxor => each(target, input, |target: T, operand| T::truth(target.is_true() != operand.is_true())),
        AtomicOp::CompareSwap => swap_if(target, input, |compare: T, target| compare == target),
        AtomicOp::CompareSwapNotEqual => swap_if(target, input, |compare: T, target| compare != target),
        _ => debug_assert!(false, "{op:?} is no operation on values without order"),
    }
}

fn each<T: Value>(target: &mut [u8], input: AtomicInput<'_>, combine: impl Fn(T, T) -> T) {
    for (target, operand) in target.chunks_exact_mut(T::SIZE).zip(input.operand.chunks_exact(T::SIZE)) {
        combine(T::load(target), T::load(operand)).store(target);
    }
}

/// Replaces the elements for which `condition(compare, target)` holds.
fn swap_if<T: Value>(target: &mut [u8], input: AtomicInput<'_>, condition: impl Fn(T, T) -> bool) {
    let operands = input.operand.chunks_exact(T::SIZE).zip(input.compare.chunks_exact(T::SIZE));
    for (target, (operand, compare)) in target.chunks_exact_mut(T::SIZE).zip(operands) {
        if condition(T::load(compare), T::load(target)) {
            target.copy_from_slice(operand);
        }
    }
}

/// A number, as it lies in memory.
trait Value: Copy + PartialEq {
    const SIZE: usize;
    fn load(bytes: &[u8]) -> Self;
    fn store(self, bytes: &mut [u8]);
    fn truth(value: bool) -> Self;
    fn is_true(self) -> bool {
        self != Self::truth(false)
    }
    fn sum(self, other: Self) -> Self;
    fn difference(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
}

macro_rules! value {
    ($type:ty, $sum:expr, $difference:expr, $product:expr) => {
        impl Value for $type {
            const SIZE: usize = size_of::<$type>();
            #[inline]
            fn load(bytes: &[u8]) -> Self {
                let mut value = [0; size_of::<$type>()];
                value.copy_from_slice(bytes);
                <$type>::from_le_bytes(value)
            }
            #[inline]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn truth(value: bool) -> Self {
                u8::from(value) as $type
            }
            #[inline]
            fn sum(self, other: Self) -> Self {
                $sum(self, other)
            }
            #[inline]
            fn difference(self, other: Self) -> Self {
                $difference(self, other)
            }
            #[inline]
            fn product(self, other: Self) -> Self {
                $product(self, other)
            }
        }
    };
}

macro_rules! integers {
    ($($type:ident)*) => { $(value!($type, $type::wrapping_add, $type::wrapping_sub, $type::wrapping_mul);)* };
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64 i128 u128);
value!(f32, std::ops::Add::add, std::ops::Sub::sub, std::ops::Mul::mul);
value!(f64, std::ops::Add::add, std::ops::Sub::sub, std::ops::Mul::mul);

/// C's `long double`, computed in software: Rust has no such type.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct LongDouble(LongFormat);

impl Value for LongDouble {
    const SIZE: usize = 16;

    fn load(bytes: &[u8]) -> Self {
        let mut value = [0; 16];
        let significant = LongFormat::BITS / 8;
        value[..significant].copy_from_slice(&bytes[..significant]);
        LongDouble(LongFormat::from_bits(u128::from_le_bytes(value)))
    }

    fn store(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0.to_bits().to_le_bytes());
    }

    fn truth(value: bool) -> Self {
        LongDouble(LongFormat::from_u128(u128::from(value)).value)
    }

    fn sum(self, other: Self) -> Self {
        LongDouble((self.0 + other.0).value)
    }

    fn difference(self, other: Self) -> Self {
        LongDouble((self.0 - other.0).value)
    }

    fn product(self, other: Self) -> Self {
        LongDouble((self.0 * other.0).value)
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Complex<T> {
    real: T,
    imaginary: T,
}

impl<T: Value> Value for Complex<T> {
    const SIZE: usize = 2 * T::SIZE;

    fn load(bytes: &[u8]) -> Self {
        let (real, imaginary) = bytes.split_at(T::SIZE);
        Complex { real: T::load(real), imaginary: T::load(imaginary) }
    }

    fn store(self, bytes: &mut [u8]) {
        let (real, imaginary) = bytes.split_at_mut(T::SIZE);
        self.real.store(real);
        self.imaginary.store(imaginary);
    }

    fn truth(value: bool) -> Self {
        Complex { real: T::truth(value), imaginary: T::truth(false) }
    }

    fn sum(self, other: Self) -> Self {
        Complex { real: self.real.sum(other.real), imaginary: self.imaginary.sum(other.imaginary) }
    }

    fn difference(self, other: Self) -> Self {
        Complex { real: self.real.difference(other.real), imaginary: self.imaginary.difference(other.imaginary) }
    }

    fn product(self, other: Self) -> Self {
        let real = self.real.product(other.real).difference(self.imaginary.product(other.imaginary));
        let imaginary = self.real.product(other.imaginary).sum(self.imaginary.product(other.real));
        Complex { real, imaginary }
    }
}
