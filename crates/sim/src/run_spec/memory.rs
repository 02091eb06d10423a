//! `[flow] memory`: the slots or buffers of a scheme that fit into the receive memory of a process.
//!
//! Schemes divide the same memory differently: a mailbox has slots for each peer, each connection has its own buffers,
//! and a pool has buffers for all peers. A sweep over memory compares schemes at equal cost; one over slots or buffers
//! does not.

use tidegate_flow::{Buffers, Config, PAYLOAD_BYTES, SchemeName};

use super::buffers::BufferFields;
use super::refusal::Refusal;
use crate::FlowChoice;

/// Bytes of a slot of a mailbox.
const SLOT_BYTES: u64 = 64;

/// What a draft says of flow control beside its memory.
pub struct Wishes<'a> {
    pub scheme: SchemeName,
    pub credit_slots: u32,
    pub piggyback: bool,
    pub quota_most: Option<u32>,
    pub buffers: &'a BufferFields,
}

impl Wishes<'_> {
    /// The scheme for so many peers with all that fits into so many bytes.
    ///
    /// # Errors
    /// If the scheme needs more: the refusal says how much.
    pub fn fitted(&self, peers: u32, bytes: u64) -> Result<FlowChoice, Refusal> {
        let peers = peers.max(1);
        let found = if self.scheme.lends().is_pool_of_slots() {
            self.pool_of_slots(bytes)
        } else if self.scheme.lends().is_pool() {
            self.pool(bytes)
        } else if self.scheme.lends().posts_buffers() {
            self.connections(peers, bytes)
        } else {
            self.mailbox(peers, bytes)
        };
        found.map_err(|least| {
            let what = format!(
                "[flow] memory: {bytes} B are too few for [flow] scheme = {} with {peers} peers of each process: give at \
                 least \"{least} B\"",
                self.scheme
            );
            let fields = [("flow", "memory"), ("flow", "scheme"), ("flow", "peers")];
            Refusal { needs_bytes: Some(least), ..Refusal::new(&fields, what) }
        })
    }

    /// A pool posts other buffers for those that are full, up to twice its largest window, and has a spare one.
    fn pool(&self, bytes: u64) -> Result<FlowChoice, u64> {
        let usual = self.buffers.of(self.scheme);
        let pool_most = Buffers::pool_most_within(whole(bytes / bytes_of(usual)));
        if pool_most == 0 {
            return Err(u64::from(Buffers { pool_most: 1, ..usual }.pool_bound()) * bytes_of(usual));
        }
        Ok(self.posted(Buffers { pool_first: usual.pool_first.min(pool_most), pool_most, ..usual }))
    }

    /// A slot is a packet, whoever sends it.
    fn pool_of_slots(&self, bytes: u64) -> Result<FlowChoice, u64> {
        match whole(bytes / SLOT_BYTES) {
            0 => Err(SLOT_BYTES),
            pool_slots => Ok(self.posted(Buffers { pool_slots, ..self.buffers.of(self.scheme) })),
        }
    }

    /// Each connection has as many buffers as there are; one that grows begins with fewer.
    fn connections(&self, peers: u32, bytes: u64) -> Result<FlowChoice, u64> {
        let usual = self.buffers.of(self.scheme);
        let most = whole(bytes / bytes_of(usual) / u64::from(peers));
        if most == 0 {
            return Err(u64::from(peers) * bytes_of(usual));
        }
        let first = if self.scheme.lends().may_grow() { usual.per_connection.min(most) } else { most };
        Ok(self.posted(Buffers { per_connection: first, per_connection_most: most, ..usual }))
    }

    fn posted(&self, buffers: Buffers) -> FlowChoice {
        FlowChoice::Posted { scheme: self.scheme, buffers, piggyback: self.piggyback }
    }

    /// Half of a mailbox's slots at most are for credits; of fewer than that one is.
    fn mailbox(&self, peers: u32, bytes: u64) -> Result<FlowChoice, u64> {
        let &Wishes { scheme, piggyback, quota_most, .. } = self;
        let slots_per_peer = whole(bytes / SLOT_BYTES / u64::from(peers));
        let is_legal = |slots: &u32| Config::new(scheme, peers, *slots, 1).regions().is_ok();
        if let Some(least) = (1..64).find(is_legal).filter(|least| slots_per_peer < *least) {
            return Err(u64::from(least) * u64::from(peers) * SLOT_BYTES);
        }
        let credit_slots = if slots_per_peer / 2 >= self.credit_slots { self.credit_slots } else { 1 };
        let piggyback = piggyback && scheme.lends().has_credits();
        Ok(FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots, piggyback, quota_most })
    }
}

fn bytes_of(buffers: Buffers) -> u64 {
    u64::from(buffers.packets) * PAYLOAD_BYTES as u64
}

/// A count that is too large for its type is refused as too large afterwards.
fn whole(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_spec::{JobDraft, Sweep};
    use std::path::Path;

    const KIB: u64 = 1024;

    fn fitted(scheme: SchemeName, processes: u32, bytes: u64) -> Result<FlowChoice, Option<u64>> {
        let buffers = BufferFields::default();
        let wishes = Wishes { scheme, credit_slots: 2, piggyback: true, quota_most: None, buffers: &buffers };
        wishes.fitted(processes - 1, bytes).map_err(|refusal| refusal.needs_bytes)
    }

    #[test]
    fn what_schemes_need_at_least_grows_with_the_job_but_for_a_pool() {
        let needs = |scheme, processes| fitted(scheme, processes, 4 * KIB).err().flatten();
        assert_eq!(needs(SchemeName::Static, 64), Some(2 * 63 * 64));
        assert_eq!(needs(SchemeName::Static, 1024), Some(2 * 1023 * 64));
        assert_eq!(needs(SchemeName::Rnr, 1024), Some(1023 * 2072));
        // One posted, one in use meanwhile, and the spare one.
        assert_eq!(needs(SchemeName::SharedWindow, 64), Some(3 * 2072));
        assert_eq!(needs(SchemeName::SharedWindow, 1024), Some(3 * 2072));
        assert_eq!((needs(SchemeName::Speculative, 64), needs(SchemeName::Speculative, 1024)), (None, None));
        assert!(fitted(SchemeName::Rnr, 1024, 4096 * KIB).is_ok(), "4 MiB are one buffer for each connection");
    }

    /// How the papers' comparison of all schemes divided memory before a file could say it, which its published numbers
    /// depend on.
    fn as_in_the_comparison(scheme: SchemeName, processes: u32, bytes: u64) -> Result<FlowChoice, Option<u64>> {
        const BUFFER_BYTES: u64 = 2072;
        let (peers, usual) = (u64::from(processes) - 1, Buffers { packets: 37, ..Buffers::of(scheme) });
        let posted = |buffers| Ok(FlowChoice::Posted { scheme, buffers, piggyback: true });
        if scheme == SchemeName::SharedWindow {
            let pool_most = Buffers::pool_most_within((bytes / BUFFER_BYTES) as u32);
            let pool_first = usual.pool_first.min(pool_most);
            return if pool_most == 0 {
                Err(Some(3 * BUFFER_BYTES))
            } else {
                posted(Buffers { pool_first, pool_most, ..usual })
            };
        }
        if scheme == SchemeName::Speculative {
            let pool_slots = (bytes / 64) as u32;
            return if pool_slots == 0 { Err(Some(64)) } else { posted(Buffers { packets: 1, pool_slots, ..usual }) };
        }
        if scheme.lends().posts_buffers() {
            let each = (bytes / BUFFER_BYTES / peers) as u32;
            let first = if scheme == SchemeName::Growing { 1 } else { each };
            let buffers = Buffers { per_connection: first, per_connection_most: each, ..usual };
            return if each == 0 { Err(Some(peers * BUFFER_BYTES)) } else { posted(buffers) };
        }
        let slots_per_peer = (bytes / 64 / peers) as u32;
        let credit_slots = if slots_per_peer >= 4 { 2 } else { 1 };
        let fits = |slots, credits| Config::new(scheme, peers as u32, slots, credits).regions().is_ok();
        if slots_per_peer == 0 || !fits(slots_per_peer, credit_slots) {
            return Err((1..64).find(|slots| fits(*slots, 1)).map(|slots| u64::from(slots) * peers * 64));
        }
        let piggyback = scheme.lends().has_credits();
        Ok(FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots, piggyback, quota_most: None })
    }

    #[test]
    fn all_schemes_get_what_the_comparison_gave_them() {
        for scheme in SchemeName::OFFERED {
            for processes in [2, 16, 21, 64, 128, 1024] {
                for bytes in [0, 64, 4, 8, 10, 20, 32, 80, 127, 128, 320, 512, 4096].map(|kib| kib * KIB) {
                    let (now, then) =
                        (fitted(*scheme, processes, bytes), as_in_the_comparison(*scheme, processes, bytes));
                    assert_eq!(now, then, "{scheme}, {processes} processes, {bytes} bytes");
                }
            }
        }
    }

    #[test]
    fn the_least_memory_that_a_refusal_names_is_enough() {
        for scheme in SchemeName::OFFERED {
            let least = fitted(*scheme, 64, 0).unwrap_err().unwrap();
            assert!(fitted(*scheme, 64, least).is_ok(), "{scheme}");
            assert_eq!(fitted(*scheme, 64, least - 1).unwrap_err(), Some(least), "{scheme}");
        }
    }

    #[test]
    fn each_scheme_divides_the_memory_in_its_own_way() {
        let mailbox = |bytes| match fitted(SchemeName::Static, 64, bytes) {
            Ok(FlowChoice::Mailbox { slots_per_peer, credit_slots, .. }) => (slots_per_peer, credit_slots),
            other => panic!("{other:?}"),
        };
        assert_eq!((mailbox(8 * KIB), mailbox(32 * KIB)), ((2, 1), (8, 2)));
        let buffers = |scheme, kib| match fitted(scheme, 64, kib * KIB) {
            Ok(FlowChoice::Posted { buffers, .. }) => buffers,
            other => panic!("{other:?}"),
        };
        let of_connection = |buffers: Buffers| (buffers.per_connection, buffers.per_connection_most);
        assert_eq!(of_connection(buffers(SchemeName::Preposted, 4096)), (32, 32));
        assert_eq!(of_connection(buffers(SchemeName::Growing, 4096)), (1, 32));
        let of_pool = |buffers: Buffers| (buffers.pool_first, buffers.pool_most);
        assert_eq!(of_pool(buffers(SchemeName::SharedWindow, 8)), (1, 1));
        assert_eq!(of_pool(buffers(SchemeName::SharedWindow, 4096)), (8, 1011));
    }

    #[test]
    fn a_file_is_told_how_much_memory_is_needed_and_what_memory_decides_already() {
        let refused = |text: &str| Sweep::<JobDraft>::read(text, Path::new("")).unwrap_err();
        let text = "[flow]\nmemory = \"8 KiB\"\nscheme = [\"shared_window\", \"rnr\"]\n";
        let job = "[machine]\nprocesses_per_node = 2\n[network]\nsizes = \"4x8\"\n";
        let error = refused(&format!("{text}{job}"));
        assert_eq!((error.line, error.needs_bytes), (Some(2), Some(130_536)));
        let said =
            "8192 B are too few for [flow] scheme = rnr with 63 peers of each process: give at least \"130536 B\"";
        assert!(error.what.contains(said), "{error}");
        let both = "[flow]\nscheme = \"static\"\nmemory = \"64 KiB\"\nslots_per_peer = 8\n[network]\nsizes = \"2\"\n";
        let error = refused(both);
        assert_eq!(error.line, Some(4));
        assert!(
            error.what.contains("[flow] slots_per_peer = 8 changes nothing in a run with [flow] memory"),
            "{error}"
        );
        let shared = "[flow]\nscheme = \"speculative\"\nslots_per_peer = 8\n[network]\nsizes = \"2\"\n";
        let error = refused(shared);
        assert_eq!(error.line, Some(3));
        let said = "slots_per_peer = 8 changes nothing in a run under speculative, where no sender has slots of its own: \
                    set [flow] pool_slots instead";
        assert!(error.what.contains(said), "{error}");
    }
}
