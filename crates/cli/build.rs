//! Tells the command the commit of its sources.

#[path = "../ofi/commit.rs"]
mod commit;

fn main() {
    commit::tell(&["flow", "bulk", "message", "link", "ofi", "sim", "cli"]);
}
