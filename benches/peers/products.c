// Measures single-precision matrix products of a BLAS, one thread: products LIBRARY SYMBOL BITS SECONDS, where BITS is the size of its whole numbers.
//
// For each layer and each number of rows, C = A B (rows x inputs, inputs x outputs), and the gradient of the weights, A^T C. Prints the GFLOP/s of each, one per line, in the order of
// `gradus bench product`. The matrices of a product are used again and again, as there.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
typedef void (*gemm32)(int, int, int, int32_t, int32_t, int32_t, float, const float *, int32_t, const float *, int32_t, float, float *, int32_t);
typedef void (*gemm64)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t, float, float *, int64_t);

static void *gemm;
static int bits;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static float *numbers(size_t n) {
    float *all = aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
    for (size_t i = 0; i < n; i++) all[i] = (float)((i * 2654435761u >> 16) & 255) / 256 - 0.5f;
    return all;
}

// C (m x n) = A B, k products each; A is stored with `stride` numbers a row
static void multiply(int a_is, int m, int n, int k, const float *a, int stride, const float *b, float *c) {
    if (bits == 64)
        ((gemm64)gemm)(ROW_MAJOR, a_is, PLAIN, m, n, k, 1, a, stride, b, n, 0, c, n);
    else
        ((gemm32)gemm)(ROW_MAJOR, a_is, PLAIN, m, n, k, 1, a, stride, b, n, 0, c, n);
}

static double rate(int a_is, int m, int n, int k, const float *a, int stride, const float *b, float *c, double seconds) {
    multiply(a_is, m, n, k, a, stride, b, c);
    double best = 0;
    for (double end = now() + seconds; now() < end;) {
        int calls = 1 + (int)(2e7 / ((double)m * n * k)); // some hundred microseconds
        double began = now();
        for (int i = 0; i < calls; i++) multiply(a_is, m, n, k, a, stride, b, c);
        double speed = 2e-9 * m * n * k * calls / (now() - began);
        if (speed > best) best = speed;
    }
    return best;
}

int main(int count, char **arguments) {
    if (count != 5) return fprintf(stderr, "products LIBRARY SYMBOL BITS SECONDS\n"), 2;
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
    gemm = library ? dlsym(library, arguments[2]) : NULL;
    if (!gemm) return fprintf(stderr, "%s\n", dlerror()), 2;
    bits = atoi(arguments[3]);
    double seconds = atof(arguments[4]);
    static const int layers[][2] = {{32, 32}, {64, 64}, {128, 64}, {112, 128}, {128, 128}, {256, 256}, {304, 400}, {400, 304}, {512, 512}};
    static const int all_rows[] = {32, 64, 128};
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++) {
        for (size_t r = 0; r < 3; r++) {
            int k = layers[l][0], n = layers[l][1], rows = all_rows[r];
            float *a = numbers((size_t)rows * k), *b = numbers((size_t)k * n), *c = numbers((size_t)rows * n);
            printf("%.2f\n", rate(PLAIN, rows, n, k, a, k, b, c, seconds));
            printf("%.2f\n", rate(TRANSPOSED, k, n, rows, a, k, c, b, seconds));
            free(a), free(b), free(c);
        }
    }
}
