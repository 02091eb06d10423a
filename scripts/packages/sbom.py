"""The software bill of materials of packages: what is linked into program and library, as CycloneDX 1.6 in JSON.

    python -m packages.sbom MACHINE FILE VERSION COMMIT EPOCH RUST     (RUST: the version of the compiler)

The library of the CycloneDX project writes it, and checks it by the schema that it brings along. Nothing is asked from the network.
"""

from __future__ import annotations

import sys
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from harness.paths import ROOT

from .licences import linked_and_uses
from .machine import MACHINES, Machine

LICENCES = LicenseFactory()


def checksums() -> dict[tuple[str, str], str]:
    """SHA-256 of each crate's archive by name and version, as Cargo.lock has them."""
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return {(package["name"], package["version"]): package["checksum"] for package in packages if "checksum" in package}


def licences(text: str) -> list:
    """A crate's licences. Old crates have `/` where SPDX has `OR`."""
    return [LICENCES.make_from_string(text.replace("/", " OR "))]


def component(package: dict, digests: dict[tuple[str, str], str]) -> Component:
    """One crate."""
    name, version = package["name"], package["version"]
    url = PackageURL("cargo", None, name, version)
    places = [ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(package["repository"]))] if package["repository"] else []
    return Component(type=ComponentType.LIBRARY, name=name, version=version, purl=url, bom_ref=str(url), description=package["description"].strip(),
                     licenses=licences(package["license"]), hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digests[name, version])],
                     external_references=places)


def bill(machine: Machine, version: str, commit: str, epoch: str, rust: str) -> Bom:
    """All components and which uses which. The same sources give the same bytes: the serial number comes from what is described."""
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, f"tidegate {version} {commit} {machine.name} {epoch} {rust}"))
    bom.metadata.timestamp = datetime.fromtimestamp(int(epoch), timezone.utc)
    ours = Component(type=ComponentType.APPLICATION, name="tidegate", version=version, bom_ref=f"tidegate@{version}", licenses=licences("MIT OR Apache-2.0"),
                     properties=[Property(name="tidegate:commit", value=commit), Property(name="tidegate:machine", value=machine.name)])
    bom.metadata.component = ours
    (packages, uses), digests = linked_and_uses(machine), checksums()
    crates = {package["id"]: component(package, digests) for package in packages}
    standard = Component(type=ComponentType.LIBRARY, name="rust-std", version=rust, bom_ref=f"rust-std@{rust}", licenses=licences("MIT OR Apache-2.0"),
                         description="Rust's standard library, from the compiler's distribution")
    bom.components.update([standard, *crates.values()])
    for key, crate in crates.items():
        bom.register_dependency(crate, [crates[used] for used in uses[key]])
    # Crates of ours are one component, which uses all that any of them does.
    direct = {used for key, all_used in uses.items() if key not in crates for used in all_used if used in crates}
    bom.register_dependency(ours, [standard, *(crates[key] for key in sorted(direct))])
    return bom


def main() -> None:
    """Writes the file, unless the schema refuses it."""
    machine, path, version, commit, epoch, rust = sys.argv[1:]
    text = JsonV1Dot6(bill(MACHINES[machine], version, commit, epoch, rust)).output_as_string(indent=2) + "\n"
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong:
        sys.exit(f"the bill of materials is not CycloneDX 1.6: {wrong}")
    Path(path).write_text(text)


if __name__ == "__main__":
    main()
