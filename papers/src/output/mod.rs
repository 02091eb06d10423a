//! Where reports go: text for the terminal, pictures, and files of results with the pages that are made of them.

pub mod overview;
pub mod page;
pub mod picture;
pub mod results;
pub mod terminal;
pub mod text;
