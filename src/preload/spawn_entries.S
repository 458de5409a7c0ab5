/* vfork and clone return twice, so that no frame of ours may be below them: the hooks jump to the real functions, with every
   argument kept. A C library has both. */

#if defined(__x86_64__)

    .macro IOWEIR_JUMP_AFTER name, before
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    push %rcx
    .cfi_adjust_cfa_offset 8
    push %r8
    .cfi_adjust_cfa_offset 8
    push %r9
    .cfi_adjust_cfa_offset 8
    push %rax
    .cfi_adjust_cfa_offset 8
    call \before
    mov %rax, %r11
    pop %rax
    .cfi_adjust_cfa_offset -8
    pop %r9
    .cfi_adjust_cfa_offset -8
    pop %r8
    .cfi_adjust_cfa_offset -8
    pop %rcx
    .cfi_adjust_cfa_offset -8
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%r11
    .cfi_endproc
    .size \name, . - \name
    .endm

    .text
    IOWEIR_JUMP_AFTER vfork, ioweir_before_vfork
    IOWEIR_JUMP_AFTER clone, ioweir_before_clone
    .section .note.GNU-stack,"",@progbits

#elif defined(__aarch64__)

    .macro IOWEIR_JUMP_AFTER name, before
    .globl \name
    .type \name, %function
\name:
    .cfi_startproc
    stp x29, x30, [sp, #-80]!
    .cfi_adjust_cfa_offset 80
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    bl \before
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x29, x30, [sp], #80
    .cfi_adjust_cfa_offset -80
    br x16
    .cfi_endproc
    .size \name, . - \name
    .endm

    .text
    IOWEIR_JUMP_AFTER vfork, ioweir_before_vfork
    IOWEIR_JUMP_AFTER clone, ioweir_before_clone
    .section .note.GNU-stack,"",%progbits

#endif
