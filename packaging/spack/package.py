# Spack's recipe for Tidegate. Not built: Spack could not be had where it was written (UNTRIED). It
# passes flake8 with the rules that Spack has for packages.
#
# The sources are not published, so Spack is told where they are. For Spack 1.0 and later, in the
# folder of sources:
#
#     repo=build/spack_repo/mine
#     mkdir -p $repo/packages/tidegate && cp packaging/spack/package.py $repo/packages/tidegate/
#     printf 'repo:\n  namespace: mine\n  api: v2.0\n' > $repo/repo.yaml
#     spack repo add $repo && spack dev-build --source-path "$PWD" tidegate@0.2.0

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Tidegate(Package):
    """Carries the messages of unmodified MPI programs with end-to-end flow control: a provider for
    libfabric, and the command that runs programs over it and reports who waited for whom."""

    license("MIT OR Apache-2.0")

    version("0.2.0")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("gmake", type="build")

    conflicts("platform=darwin", msg="Tidegate is for Linux")
    conflicts("platform=windows", msg="Tidegate is for Linux")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_that_it_starts(self):
        """The command finds the provider at its installed place."""
        Executable(self.prefix.bin.tidegate)("env")
