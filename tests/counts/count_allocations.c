// Preloaded into Python by test_allocations.py: counts what this thread asks of the allocator. operator new comes
// through malloc.
#include <stddef.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static __thread unsigned long allocations __attribute__((tls_model("initial-exec")));

unsigned long counted_allocations(void) { return allocations; }

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** at, size_t alignment, size_t size) {
  *at = memalign(alignment, size);
  return *at == NULL ? 12 : 0;
}
