/* Jumps through a table, for the exported MPI symbols. A jump changes no register but the scratch ones, so a hook looks
   to the program exactly like the function it stands for, whatever its signature. */

#if defined(__x86_64__)

.macro IOWEIR_TRAMPOLINE_BODY name, index
    .globl \name
    .type \name, @function
    .balign 16
\name:
    endbr64
    jmp *(ioweir_slots + 8 * \index)(%rip)
    .size \name, . - \name
.endm

.macro IOWEIR_LAZY_BODY name, index
    .balign 16
\name:
    endbr64
    push $\index
    jmp ioweir_lazy_common
.endm

#elif defined(__aarch64__)

.macro IOWEIR_TRAMPOLINE_BODY name, index
    .globl \name
    .type \name, %function
    .balign 16
\name:
    bti c
    adrp x16, ioweir_slots
    add x16, x16, :lo12:ioweir_slots
    ldr x16, [x16, #(8 * \index)]
    br x16
    .size \name, . - \name
.endm

.macro IOWEIR_LAZY_BODY name, index
    .balign 16
\name:
    bti j
    mov x17, #\index
    b ioweir_lazy_common
.endm

#else
#error "ioweir runs on x86-64 and aarch64"
#endif

#define IOWEIR_TRAMPOLINE(name, index) IOWEIR_TRAMPOLINE_BODY name, index
#define IOWEIR_LAZY(name, index) IOWEIR_LAZY_BODY name, index
