//! The machine that a trace is replayed on: a file as for `tidegate sim`, made to fit the ranks.

use std::fs;
use std::path::Path;

use tidegate_sim::{NodeId, Noise, SimulationConfig, Time, Topology};

use crate::failure::Failure;
use tidegate_sim::run_spec::File;

/// Used where no file is given: what `tidegate calibrate` found on the machine that Tidegate was developed on.
pub const BUNDLED: &str = include_str!("machine.toml");

/// The interruptions of processes where the file says nothing of them, as with the figures of the paper: 2.5 % of the
/// time. Without any a seed would decide nothing, and processes that keep step would hide what a mailbox is for.
const NOISE: Noise = Noise { interval: Time::from_microseconds(1000), duration: Time::from_microseconds(25) };

/// Places for processes beyond those of the job with which a plan counts, unless the user says. The library has room
/// for several endpoints of each process; a plan for the least memory does without, and its options say so.
pub const PEERS_SPARE: u32 = 16;

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// With as many processes as the file says.
    config: SimulationConfig,
    /// What it is called.
    pub name: String,
}

impl Machine {
    /// Reads a file; without one it is the bundled machine.
    ///
    /// # Errors
    /// If it cannot be read, or describes no machine.
    pub fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            let machine = Self::parse(BUNDLED.into(), Path::new(""), "the bundled machine");
            return machine.map_err(|why| Failure::own(format!("the bundled machine: {why}")));
        };
        let refuse = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        let bytes = fs::read(path).map_err(|error| refuse(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(bytes, folder, &path.display().to_string()).map_err(refuse)
    }

    fn parse(bytes: Vec<u8>, folder: &Path, name: &str) -> Result<Self, String> {
        let sweep = match File::read(bytes, folder).map_err(|error| error.to_string())? {
            File::Jobs(sweep) => sweep,
            File::Fabrics(_) | File::Bulks(_) => {
                return Err(
                    "a table [fabric], [exchange] or [bulk] describes a network without processes: `plan` needs [network] and [cost], \
                            which `tidegate calibrate -o FILE` writes"
                        .to_owned(),
                );
            }
        };
        if !["machine", "network", "cost"].iter().any(|table| sweep.has_table(table)) {
            return Err(
                "there is no table [cost], [network] or [machine], so it describes no machine: `tidegate calibrate -o \
                        FILE` writes one"
                    .to_owned(),
            );
        }
        let [(_, scenario)] = sweep.points.as_slice() else {
            return Err(format!(
                "lists make a sweep ({}), and `plan` chooses by itself: give each field one value, and what is to be tried \
                 by --schemes, --slots, --pool-slots and --buffers",
                sweep.axes.join(", ")
            ));
        };
        let mut config = scenario.config.clone();
        if config.noise == Noise::default() {
            config.noise = NOISE;
        }
        Ok(Machine { config, name: name.to_owned() })
    }

    /// The machine with so many processes, each with a place for all others and for some more.
    /// `peers`: for so many others instead.
    ///
    /// # Errors
    /// If the machine has not so many.
    pub fn of_ranks(&self, ranks: u32, peers: Option<u32>) -> Result<SimulationConfig, Failure> {
        let mut config = self.config.clone();
        let needed = ranks.div_ceil(config.processes_per_node);
        match config.topology {
            // These grow by themselves: nothing in the file depends on their size.
            Topology::Switch(_) | Topology::Ideal(_) if config.nodes.is_none() => {
                let grown = match config.topology {
                    Topology::Switch(_) => Topology::switch(needed),
                    _ => Topology::ideal(needed),
                };
                config.topology = grown.map_err(|error| Failure::usage(format!("{}: {error}", self.name)))?;
            }
            _ if config.size() < ranks => {
                return Err(Failure::usage(format!(
                    "{}: the machine has {} processes and the job {ranks}: enlarge [network] sizes or [machine] \
                     processes_per_node, or make it a switch or ideal, which grow with the job",
                    self.name,
                    config.size()
                )));
            }
            _ => {
                let all = config.nodes.take().unwrap_or_else(|| (0..config.topology.nodes()).map(NodeId).collect());
                config.nodes = Some(all.into_iter().take(needed as usize).collect());
            }
        }
        let others = peers.unwrap_or(ranks + PEERS_SPARE);
        config.peers = None;
        config.spare_peers = others.saturating_sub(config.size() - 1);
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Machine, String> {
        Machine::parse(text.into(), Path::new(""), "test")
    }

    #[test]
    fn a_switch_grows_with_the_job_and_a_mesh_does_not() {
        let switch =
            parse("[machine]\nprocesses_per_node = 4\n[network]\ntopology = \"switch\"\nsizes = \"2\"\n").unwrap();
        let config = switch.of_ranks(10, None).unwrap();
        // Twelve processes, of which ten have something to do; each has a place for 26 others.
        assert_eq!((config.size(), config.spare_peers), (12, 26 - 11));
        let mesh = parse("[machine]\nprocesses_per_node = 4\n[network]\nsizes = \"2x2\"\n").unwrap();
        assert_eq!(mesh.of_ranks(8, Some(7)).map(|config| (config.size(), config.spare_peers)).unwrap(), (8, 0));
        let why = mesh.of_ranks(17, None).unwrap_err().to_string();
        assert!(why.contains("16 processes and the job 17: enlarge [network] sizes"), "{why}");
    }

    #[test]
    fn what_describes_no_machine_is_refused_with_the_remedy() {
        for (text, names) in [
            ("[flow]\nscheme = \"static\"\n", "there is no table [cost]"),
            ("[fabric]\ntopology = \"dragonfly\"\n", "calibrate -o FILE"),
            ("[network]\nsizes = \"2\"\n[flow]\nscheme = [\"static\", \"dynamic\"]\n", "flow.scheme"),
            ("[costs]\n", "line 1: there is no section costs: did you mean cost?"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(names), "{text}: {why}");
        }
    }

    #[test]
    fn the_bundled_machine_is_one() {
        assert!(Machine::read(None).and_then(|machine| machine.of_ranks(8, None)).is_ok());
    }
}
