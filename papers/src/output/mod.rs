//! Where reports go: text for the terminal, pictures, files, a page.

pub mod files;
pub mod opening;
pub mod overview;
pub mod page;
pub mod picture;
pub mod text;
pub mod times;
