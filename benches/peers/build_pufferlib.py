"""Fetches PufferLib's source and compiles its CartPole for the Python that runs this script.

PufferLib's setup.py compiles about thirty environments and a PyTorch extension, and downloads libraries for them. Only CartPole is
measured, so only CartPole is compiled, with the compiler options of that setup.py. The library that CartPole needs is part of the source.
"""

import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

import numpy
from setuptools.package_index import PackageIndex

VERSION = "3.0.0"
RAYLIB = "raylib-5.5_linux_amd64"


def main():
    if sys.platform != "linux":
        sys.exit(f"expected Linux, because the source includes a library only for Linux, got {sys.platform}")
    site = Path(sysconfig.get_path("purelib"))
    with tempfile.TemporaryDirectory() as folder:
        # unlike pip, this fetches a source distribution without running its setup.py, and checks its hash against the index
        archive = PackageIndex().download(f"pufferlib=={VERSION}", folder)
        with tarfile.open(archive) as source:
            source.extractall(folder, filter="data")
        source = Path(folder) / f"pufferlib-{VERSION}"
        cartpole = source / "pufferlib" / "ocean" / "cartpole"
        command = ["cc", "-shared", "-fPIC", "-O2", "-flto", "-fwrapv", "-DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION", "-DPLATFORM_DESKTOP"]
        command += ["-Wno-implicit-function-declaration", "-Bsymbolic-functions"]
        command += [f"-I{path}" for path in (sysconfig.get_path("include"), numpy.get_include(), source / RAYLIB / "include")]
        command += [cartpole / "binding.c", "-o", cartpole / f"binding{sysconfig.get_config_var('EXT_SUFFIX')}"]
        command += [source / RAYLIB / "lib" / "libraylib.a"]
        subprocess.run(list(map(str, command)), check=True)
        for part in sorted((source / "pufferlib").rglob("*")):
            name = part.relative_to(source)
            if part.is_file() and (part.suffix == ".py" or part.parent == cartpole):
                (site / name).parent.mkdir(parents=True, exist_ok=True)
                (site / name).write_bytes(part.read_bytes())
        facts = site / f"pufferlib-{VERSION}.dist-info"
        facts.mkdir(exist_ok=True)
        (facts / "METADATA").write_bytes((source / "PKG-INFO").read_bytes())


if __name__ == "__main__":
    main()
