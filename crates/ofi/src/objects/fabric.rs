//! A fabric: the root of all objects.

use crate::border::bindings::fid_fabric;
use crate::border::object::{Fid, Object};
use tidegate_link::Maker;

/// A fabric.
#[repr(C)]
pub struct Fabric {
    fid: Fid<fid_fabric>,
    maker: Maker,
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for Fabric {
    type Fid = fid_fabric;
}

impl Fabric {
    /// The object that `fi_fabric` hands out.
    pub fn new(fid: fid_fabric) -> Fabric {
        Fabric { fid: Fid::new(fid), maker: Maker::here() }
    }

    /// Whether this process is a child that was forked from the one that opened the fabric. It may open domains of its
    /// own there all the same: a fabric is nothing but the root of what is opened.
    pub fn is_inherited(&self) -> bool {
        self.maker.is_ancestor()
    }

    /// The interface version that the application was built for, in libfabric's form. libfabric fills it in after
    /// `fi_fabric` has returned to it.
    pub fn api_version(&self) -> u32 {
        // SAFETY: libfabric wrote it before it gave the fabric to the application, which only reads it.
        unsafe { (*self.fid.raw()).api_version }
    }
}
