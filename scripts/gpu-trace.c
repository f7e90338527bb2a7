// Lists the kernels and copies that a program launches on an NVIDIA GPU: how many of each, and the GPU's time. It is a library that CUDA loads into the
// program, and needs CUPTI, which PyTorch's wheels bring along (nvidia/cu13):
//
//     gcc -O2 -shared -fPIC -I$CU13/include scripts/gpu-trace.c -o gpu-trace.so $CU13/lib/libcupti.so.13
//     CUDA_INJECTION64_PATH=$PWD/gpu-trace.so LD_PRELOAD=$CU13/lib/libcupti.so.13 gradus bench device --device cuda
//
// The headers of CUPTI include those of the wheel nvidia-cuda-crt. The list is written to the standard error, or to the file in TRACE_OUT.
#include <cupti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 4096, SHOWN = 60, NAME = 200 };

typedef struct {
  char name[NAME];
  unsigned long long launches, nanoseconds, bytes;
} Kind;

static Kind kinds[KINDS];
static int used;
static unsigned long long first = ~0ull, last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add(const char *name, unsigned long long start, unsigned long long end, unsigned long long bytes) {
  pthread_mutex_lock(&lock);
  if (start < first) first = start;
  if (end > last) last = end;
  int i = 0;
  while (i < used && strncmp(kinds[i].name, name, NAME - 1)) i++;
  if (i == used && used < KINDS) strncpy(kinds[used++].name, name, NAME - 1);
  if (i < KINDS) {
    kinds[i].launches++;
    kinds[i].nanoseconds += end - start;
    kinds[i].bytes += bytes;
  }
  pthread_mutex_unlock(&lock);
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most) {
  *size = 8 << 20;
  *buffer = aligned_alloc(8, *size);
  *most = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  CUpti_Activity *record = NULL;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      CUpti_ActivityKernel9 *kernel = (void *)record;
      add(kernel->name ? kernel->name : "a kernel without a name", kernel->start, kernel->end, 0);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      CUpti_ActivityMemcpy5 *copy = (void *)record;
      const char *names[] = {"copy", "copy to the device", "copy to the host"};
      add(names[copy->copyKind < 3 ? copy->copyKind : 0], copy->start, copy->end, copy->bytes);
    }
  }
  free(buffer);
}

static int by_time(const void *a, const void *b) {
  unsigned long long x = ((const Kind *)a)->nanoseconds, y = ((const Kind *)b)->nanoseconds;
  return x < y ? 1 : x > y ? -1 : 0;
}

static void report(void) {
  cuptiActivityFlushAll(1);
  qsort(kinds, used, sizeof kinds[0], by_time);
  unsigned long long launches = 0, busy = 0;
  for (int i = 0; i < used; i++) launches += kinds[i].launches, busy += kinds[i].nanoseconds;
  const char *path = getenv("TRACE_OUT");
  FILE *file = path ? fopen(path, "w") : stderr;
  if (!file) file = stderr;
  fprintf(file, "from the first to the last: %.1f ms; the GPU was busy for %.1f ms with %llu launches\n", (last - first) / 1e6, busy / 1e6, launches);
  for (int i = 0; i < used && i < SHOWN; i++) {
    Kind *kind = &kinds[i];
    double each = kind->nanoseconds / 1e3 / kind->launches;
    fprintf(file, "%9.2f ms %7llu x %8.1f us %9.1f MB  %s\n", kind->nanoseconds / 1e6, kind->launches, each, kind->bytes / 1e6, kind->name);
  }
}

int InitializeInjection(void) {
  cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
  atexit(report);
  return 1;
}
