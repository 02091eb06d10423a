//! Tells the provider the commit of its sources.

mod commit;

fn main() {
    commit::tell(&["flow", "bulk", "message", "link", "ofi"]);
}
