"""Matrix products of Gradus, OpenBLAS and MKL in the shapes of networks, on one core: python3 benches/peers/products.py [--rounds N] [--write].

Runs `gradus bench product` and products.c with both libraries in turn, and prints for each layer and number of rows the shares of the processor's peak: of the layer, and of the gradient
of its weights. The peak is that of `gradus bench product`, multiplications in registers. Each number is the median of the rounds; of the kernels that OpenBLAS has for other processors
(OPENBLAS_CORETYPE), and of MKL's instruction sets, the fastest for each shape counts. OpenBLAS is that of NumPy's wheel, and both come from requirements-products.txt; the script needs a C compiler.
With --write, results/speed/products.csv has the numbers.
"""

import argparse
import csv
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

from install import HERE, ROOT, gradus, output, processor, python, version

# what each library may choose by itself, and what else may be faster
KERNELS = {
    "OpenBLAS": [{}, {"OPENBLAS_CORETYPE": "Haswell"}, {"OPENBLAS_CORETYPE": "Zen"}, {"OPENBLAS_CORETYPE": "SkylakeX"}, {"OPENBLAS_CORETYPE": "SapphireRapids"}],
    "MKL": [{}, {"MKL_ENABLE_INSTRUCTIONS": "AVX2"}],
}
ROWS = (32, 64, 128)


def libraries():
    """The path, the symbol and the size of whole numbers of each library."""
    code = "import numpy, pathlib, sys; print(pathlib.Path(numpy.__file__).parents[1]); print(sys.prefix)"
    packages, prefix = (pathlib.Path(line) for line in output([python("products"), "-c", code]).splitlines())
    openblas = next((packages / "numpy.libs").glob("libscipy_openblas64_*"))
    mkl = next((prefix / "lib").glob("libmkl_rt.so*"))
    return {"OpenBLAS": (openblas, "scipy_cblas_sgemm64_", 64), "MKL": (mkl, "cblas_sgemm", 32)}


def ours():
    """The shares of Gradus's products in order, the layers, and the peak in GFLOP/s."""
    text = output([gradus(), "bench", "product", "--rounds", "3"])
    layers, shares = [], []
    for line in text.splitlines():
        if found := re.match(r" *(\d+) x (\d+) ", line):
            layers.append(f"{found[1]} x {found[2]}")
            shares += [float(share) for share in re.findall(r"\d\.\d\d", line)]
    return layers, shares, float(re.search(r"([\d.]+) GFLOP/s a core", text)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each [default: 3]")
    parser.add_argument("--seconds", type=float, default=0.05, help="of each product of a library [default: 0.05]")
    parser.add_argument("--write", action="store_true", help="write results/speed/products.csv")
    options = parser.parse_args()
    found = {name: [] for name in ("Gradus", *KERNELS)}
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "products")
        output([os.environ.get("CC", "cc"), "-O2", HERE / "products.c", "-o", program, "-ldl"])
        core = sorted(os.sched_getaffinity(0))[0]
        os.sched_setaffinity(0, {core})
        for _ in range(options.rounds):
            layers, shares, peak = ours()
            found["Gradus"].append(shares)
            for name, (library, symbol, bits) in libraries().items():
                rates = []
                for kernel in KERNELS[name]:
                    own = {"OPENBLAS_NUM_THREADS": "1", "MKL_THREADING_LAYER": "SEQUENTIAL", **kernel}
                    done = subprocess.run([program, library, symbol, str(bits), str(options.seconds)], env={**os.environ, **own}, capture_output=True, text=True)
                    # a kernel for another processor may use instructions that this one lacks
                    if done.returncode == 0:
                        rates.append([float(line) for line in done.stdout.split()])
                found[name].append([max(of_shape) / peak for of_shape in zip(*rates, strict=True)])
    medians = {name: [statistics.median(of_shape) for of_shape in zip(*rounds, strict=True)] for name, rounds in found.items()}
    print(f"{processor()}, one core, {peak:.0f} GFLOP/s; numpy {version('products', 'numpy')}, mkl {version('products', 'mkl')}")
    rows = []
    for i, (layer, rows_of) in enumerate((layer, n) for layer in layers for n in ROWS):
        for j, kind in enumerate(("layer", "gradient")):
            shares = [round(medians[name][2 * i + j], 2) for name in medians]
            rows.append([layer, rows_of, kind, *shares])
            print(f"{layer:>9} {rows_of:>4} {kind:<9}" + "".join(f" {name} {share:.2f}" for name, share in zip(medians, shares, strict=True)))
    for name, shares in medians.items():
        print(f"{name}: lowest {min(shares):.2f}, median {statistics.median(shares):.2f}")
    if options.write:
        with (ROOT / "results/speed/products.csv").open("w") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["layer", "rows", "kind", *(name.lower() for name in medians)])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
