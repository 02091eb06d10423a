//! What to say when no process opened a Tidegate endpoint.

use crate::mpi::{Mpi, MpiKind};

/// What is known about a run without endpoints.
pub struct Absence<'a> {
    /// The MPI, if recognised.
    pub mpi: Option<&'a Mpi>,
    /// Settings that the command line replaces by its own.
    pub overridden: &'a [&'static str],
    /// Whether the program failed.
    pub failed: bool,
}

impl Absence<'_> {
    /// That nobody used Tidegate, and why that may be: what is certain alone, else what is likely, most likely first.
    pub fn explain(&self) -> String {
        let mut text = "no process opened a Tidegate endpoint, so there is nothing to report.".to_owned();
        for reason in self.reasons() {
            text += "\n  * ";
            text += &reason;
        }
        text
    }

    fn reasons(&self) -> Vec<String> {
        if !self.overridden.is_empty() {
            let names = self.overridden.join(", ");
            return vec![format!("The command line itself sets {names}: leave that out.")];
        }
        if let Some(mpi) = self.mpi.filter(|mpi| mpi.lacks_libfabric()) {
            let device = mpi.device.as_deref().unwrap_or_default();
            let title = mpi.title();
            return vec![format!(
                "This {title} was built without libfabric (--with-device={device}): use one with ch4:ofi."
            )];
        }
        let mut reasons = Vec::new();
        if self.failed {
            reasons.push(
                "The program may have failed before or in MPI_Init: see its messages, or set FI_LOG_LEVEL=info.".into(),
            );
        }
        reasons.push(match self.mpi.map(|mpi| mpi.kind) {
            None => {
                "The program may not use MPI, or it starts its MPI in a clean environment or on another host.".into()
            }
            Some(kind) => format!(
                "The program may not use MPI, or it is linked with another MPI than the launcher's {}.",
                self.mpi.map_or_else(|| kind.name().to_owned(), Mpi::title)
            ),
        });
        reasons.push(match self.mpi.map(|mpi| mpi.kind) {
            Some(MpiKind::OpenMpi) => {
                "Open MPI may lack its libfabric transport: `ompi_info` must list `MCA mtl: ofi`.".into()
            }
            Some(MpiKind::Mpich) => "MPICH may be built without libfabric: `mpichversion` must show ch4:ofi.".into(),
            Some(MpiKind::IntelMpi) => {
                "Intel MPI may be told otherwise by I_MPI_* variables: I_MPI_DEBUG=5 shows its choice.".into()
            }
            None => "The launcher was not recognised: --mpi names its MPI.".into(),
        });
        reasons.push(
            "A settings file of the MPI or a wrapper may replace FI_PROVIDER: compare with `tidegate env`.".into(),
        );
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mpich(device: &str) -> Mpi {
        Mpi { kind: MpiKind::Mpich, version: Some("4.0.2".into()), device: Some(device.into()) }
    }

    #[test]
    fn a_certain_reason_stands_alone() {
        let ucx = mpich("ch4:ucx");
        let text = Absence { mpi: Some(&ucx), overridden: &[], failed: true }.explain();
        assert!(text.contains("MPICH 4.0.2 was built without libfabric (--with-device=ch4:ucx)"), "{text}");
        assert_eq!(text.matches("\n  * ").count(), 1);
        let text = Absence { mpi: Some(&ucx), overridden: &["FI_PROVIDER", "OMPI_MCA_pml"], failed: false }.explain();
        assert!(text.ends_with("* The command line itself sets FI_PROVIDER, OMPI_MCA_pml: leave that out."), "{text}");
    }

    #[test]
    fn likely_reasons_come_in_order() {
        let ofi = mpich("ch4:ofi");
        let failed = Absence { mpi: Some(&ofi), overridden: &[], failed: true }.explain();
        assert!(failed.find("MPI_Init").unwrap() < failed.find("mpichversion").unwrap(), "{failed}");
        let went_well = Absence { mpi: None, overridden: &[], failed: false }.explain();
        assert!(!went_well.contains("MPI_Init") && went_well.contains("--mpi"), "{went_well}");
    }
}
