//! A hash that is the same on every machine and with every compiler: FNV-1a of 128 bits. `build.rs` uses this file too.

/// Hashes bytes that come piece by piece.
pub(crate) struct Hash(u128);

impl Hash {
    pub(crate) fn new() -> Self {
        Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    /// As 16 hexadecimal digits, which is enough to tell some millions of things apart.
    pub(crate) fn digits(&self) -> String {
        format!("{:016x}", (self.0 >> 64) as u64 ^ self.0 as u64)
    }
}
