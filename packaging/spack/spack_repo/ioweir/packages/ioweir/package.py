"""Spack's recipe for ioweir, for Spack 1.0 and later: `spack repo add packaging/spack/spack_repo/ioweir`.

The versions of Python packages are those of pyproject.toml, to which tests/tools/test_recipes.py holds this file.
How to use it: docs/how-to/for-a-whole-site.md.
"""

from pathlib import Path

from spack.package import conflicts, depends_on, license, requires, variant, version
from spack_repo.builtin.build_systems.python import PythonPackage

CHECKOUT = Path(__file__).resolve().parents[6]


class Ioweir(PythonPackage):
    """Watches the I/O of an unmodified MPI program, explains it, and moves the same bytes in a better way."""

    homepage = CHECKOUT.as_uri()
    git = CHECKOUT.as_uri()
    # There is no release yet: packaging/source.sh makes the archive of this checkout, and prints its checksum.
    url = f"{CHECKOUT.as_uri()}/build/source/ioweir-0.1.0.tar.gz"

    license("BSD-3-Clause")

    version("main", branch="main")
    version("0.1.0")

    variant("openmpi", default=True, description="The back end for Open MPI")
    variant("mpich", default=False, description="The back end for MPICH, Cray MPICH, Intel MPI and MVAPICH")
    variant("pictures", default=False, description="--picture and --plot: what draws them is built with a network")
    conflicts("~openmpi~mpich", msg="without a back end no MPI-IO call is seen")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("py-nanobind@2.4:", type="build")
    # Of both only headers are used.
    depends_on("tomlplusplus@3.1:")
    depends_on("xxhash@0.8:")

    # A back end needs headers alone, and programs bring their own MPI library. So none is in the run environment, and
    # the include directories of one do not reach what is compiled for the other.
    depends_on("openmpi", type="build", when="+openmpi")
    depends_on("mpich", type="build", when="+mpich")

    depends_on("python@3.10:", type=("build", "link", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-pyarrow@18:", type=("build", "run"))
    depends_on("py-scipy@1.16:", type=("build", "run"))
    depends_on("py-typer@0.15:0.28", type=("build", "run"))
    depends_on("py-rich@13.9:", type=("build", "run"))
    depends_on("py-zstandard@0.23:", type=("build", "run"))
    depends_on("py-pyelftools@0.31:", type=("build", "run"))
    depends_on("py-tomli@2.2:", type=("build", "run"), when="^python@:3.10")
    depends_on("py-vl-convert-python@1.8:", type=("build", "run"), when="+pictures")
    requires("^arrow+compute+dataset+filesystem+parquet+zstd", msg="master logs and a site's stores are Parquet files")

    def config_settings(self, spec, prefix):  # noqa: ARG002 (Spack's signature)
        """Name the wrapper of each MPI library: every one of Spack's is called mpicc."""
        settings = {}
        for kind in ("openmpi", "mpich"):
            wrapper = spec[kind].prefix.bin.mpicc if spec.satisfies(f"+{kind}") else "OFF"
            settings[f"cmake.define.IOWEIR_MPICC_{kind.upper()}"] = wrapper
        return settings
