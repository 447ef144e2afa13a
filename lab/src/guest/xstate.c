/* Stands before ptrace(2) in user-mode Linux, which keeps the registers of its processes in an area of
   2.7 KB. On processors with AMX they take 11 KB, and the system refuses to set a part of them: so all
   of them are read first, and what the kernel knows of them is changed. It needs this before 6.13. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

/* Where the area says what is in it, and what of that fits into 2.7 KB: all up to PKRU. */
#define CONTENT 512
#define FITTING 0x2ff

typedef long (*call)(int, ...);

static long part(call real, int request, long pid, void *kind, struct iovec *part)
{
    static __thread uint8_t whole[1 << 16] __attribute__((aligned(64)));
    struct iovec all = { whole, sizeof whole };
    long result = real(PTRACE_GETREGSET, pid, kind, &all);
    size_t length = part->iov_len < all.iov_len ? part->iov_len : all.iov_len;

    if (result)
        return result;
    if (request == PTRACE_GETREGSET) {
        memcpy(part->iov_base, whole, length);
        part->iov_len = length;
        return 0;
    }
    memcpy(whole, part->iov_base, length);
    if (all.iov_len > length)
        *(uint64_t *)(whole + CONTENT) &= FITTING;
    return real(request, pid, kind, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
    static call real;
    va_list words;
    long pid;
    void *address, *data;

    va_start(words, request);
    pid = va_arg(words, int);
    address = va_arg(words, void *);
    data = va_arg(words, void *);
    va_end(words);
    if (!real)
        real = (call)dlsym(RTLD_NEXT, "ptrace");
    if ((request == PTRACE_GETREGSET || request == PTRACE_SETREGSET) && (long)address == NT_X86_XSTATE)
        return part(real, request, pid, address, data);
    return real(request, pid, address, data);
}
