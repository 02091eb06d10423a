//! What becomes of the simulator's reports: text for the terminal, pictures, files, a page.

pub mod files;
pub mod opening;
pub mod page;
pub mod picture;
pub mod progress;
pub mod store;
pub mod text;
pub mod times;
