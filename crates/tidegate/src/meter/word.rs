//! The integers that scaled times are kept in.

use core::fmt::Debug;
use core::hash::Hash;

use crate::Timestamp;

/// A scaled time: nanoseconds times the numerator of a rate, so that one permit costs a whole
/// number of units and no rate is ever rounded.
///
/// `u64` holds it for rates whose numerator is small (all that divide a second evenly: 1/month,
/// 10/min, 80,000/s, 3/s); `u128` for every rate there is.
pub trait Word:
    Copy + Ord + Default + Debug + Hash + Send + Sync + Into<u128> + 'static + private::Sealed
{
    /// The largest value that a state may hold.
    const LARGEST: Self;
    /// `self * factor`, saturating at [`LARGEST`](Self::LARGEST).
    #[must_use]
    fn times(self, factor: u64) -> Self;
    /// `self + other`, saturating at [`LARGEST`](Self::LARGEST).
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// `self - other`, or 0.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// `self / divisor` (not 0), rounded down; saturates at `u64::MAX`.
    fn div_floor(self, divisor: u64) -> u64;
    /// `self / divisor` (not 0), rounded up; saturates at `u64::MAX`.
    fn div_ceil(self, divisor: u64) -> u64;
    /// From a `u64`.
    fn of(value: u64) -> Self;
    /// From a `u128`, saturating at [`LARGEST`](Self::LARGEST).
    fn of_wide(value: u128) -> Self;
    /// The scaled time of `now` for a rate with this numerator.
    fn scaled(now: Timestamp, numerator: u64) -> Self {
        Self::of(now.as_nanos()).times(numerator)
    }
}

impl Word for u64 {
    // The one above it is the lock of the atomic cell.
    const LARGEST: Self = u64::MAX - 1;

    #[inline]
    fn times(self, factor: u64) -> Self {
        self.saturating_mul(factor).min(Self::LARGEST)
    }
    #[inline]
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other).min(Self::LARGEST)
    }
    #[inline]
    fn minus(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
    #[inline]
    fn div_floor(self, divisor: u64) -> u64 {
        self / divisor.max(1)
    }
    #[inline]
    fn div_ceil(self, divisor: u64) -> u64 {
        u64::div_ceil(self, divisor.max(1))
    }
    #[inline]
    fn of(value: u64) -> Self {
        value.min(Self::LARGEST)
    }
    fn of_wide(value: u128) -> Self {
        u64::try_from(value).unwrap_or(u64::MAX).min(Self::LARGEST)
    }
}

impl Word for u128 {
    const LARGEST: Self = u128::MAX - 1;

    #[inline]
    fn times(self, factor: u64) -> Self {
        self.saturating_mul(u128::from(factor)).min(Self::LARGEST)
    }
    #[inline]
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other).min(Self::LARGEST)
    }
    #[inline]
    fn minus(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
    #[inline]
    fn div_floor(self, divisor: u64) -> u64 {
        u64::try_from(self / u128::from(divisor.max(1))).unwrap_or(u64::MAX)
    }
    #[inline]
    fn div_ceil(self, divisor: u64) -> u64 {
        u64::try_from(u128::div_ceil(self, u128::from(divisor.max(1)))).unwrap_or(u64::MAX)
    }
    #[inline]
    fn of(value: u64) -> Self {
        Self::from(value)
    }
    fn of_wide(value: u128) -> Self {
        value.min(Self::LARGEST)
    }
}

/// Scaled times that forced permits never lead to: debts that no one lives to pay, and room for
/// what is added to them.
pub(super) const MOST_OWED: u128 = 1 << 124;

/// `whole * part / of`, rounded down, where `part` is at most `of` and that is below 2^126: by
/// long multiplication, since the product need not fit.
pub(super) const fn mul_div(whole: u128, part: u128, of: u128) -> u128 {
    let (mut quotient, mut rest) = (0, 0);
    let mut bit = u128::BITS - whole.leading_zeros();
    while bit > 0 {
        bit -= 1;
        quotient *= 2;
        rest *= 2;
        if whole >> bit & 1 == 1 {
            rest += part;
        }
        // Below 2 * of + part: at most two of them.
        quotient += rest / of;
        rest %= of;
    }
    quotient
}

/// A debt in time scaled by `from`, scaled by `to` instead; rounded up. At most 2^120, which no
/// one lives to pay.
pub(super) fn rescaled(debt: u128, from: u64, to: u64) -> u128 {
    let (from, to) = (u128::from(from), u128::from(to));
    let (whole, rest) = (debt / from, debt % from);
    let owed = whole.saturating_mul(to);
    owed.saturating_add((rest * to).div_ceil(from))
        .min(1 << 120)
}

mod private {
    /// Nobody else's integers.
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}
