/* Entries that have to keep their caller's registers or return address: the first use of a slot, and dlsym (which
   a statically linked tracer does not stand in for). */

#if defined(__x86_64__)

    .text
/* On the stack: slot index, return address. */
    .globl ioweir_lazy_common
    .hidden ioweir_lazy_common
    .type ioweir_lazy_common, @function
    .balign 16
ioweir_lazy_common:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    push %rax
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    .cfi_def_cfa_offset 72
    sub $136, %rsp              /* xmm0-7 and 8 to align: 8 (return) + 8 (index) + 56 (pushed) + 136 = 208 */
    .cfi_def_cfa_offset 208
    movdqu %xmm0, 0(%rsp)
    movdqu %xmm1, 16(%rsp)
    movdqu %xmm2, 32(%rsp)
    movdqu %xmm3, 48(%rsp)
    movdqu %xmm4, 64(%rsp)
    movdqu %xmm5, 80(%rsp)
    movdqu %xmm6, 96(%rsp)
    movdqu %xmm7, 112(%rsp)
    mov 192(%rsp), %rdi         /* the index: 136 + 56 */
    call ioweir_resolve_slot
    mov %rax, %r11
    movdqu 0(%rsp), %xmm0
    movdqu 16(%rsp), %xmm1
    movdqu 32(%rsp), %xmm2
    movdqu 48(%rsp), %xmm3
    movdqu 64(%rsp), %xmm4
    movdqu 80(%rsp), %xmm5
    movdqu 96(%rsp), %xmm6
    movdqu 112(%rsp), %xmm7
    add $136, %rsp
    .cfi_def_cfa_offset 72
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rax
    add $8, %rsp
    .cfi_def_cfa_offset 8
    jmp *%r11
    .cfi_endproc
    .size ioweir_lazy_common, . - ioweir_lazy_common

#ifndef IOWEIR_LINKED
/* dlsym: with RTLD_DEFAULT (0) and RTLD_NEXT (-1) the real one looks at its return address, so it is jumped to. With
   RTLD_DEFAULT a function that only we have is none. */
    .globl dlsym
    .type dlsym, @function
    .balign 16
dlsym:
    .cfi_startproc
    endbr64
    test %rdi, %rdi
    jz 3f
    cmp $-1, %rdi
    je 1f
    jmp ioweir_dlsym_of_handle
3:  push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    mov %rsi, %rdi
    mov 24(%rsp), %rsi
    call ioweir_stands_for_nothing
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %al, %al
    jz 1f
    xor %eax, %eax
    ret
1:  mov ioweir_real_dlsym(%rip), %rax
    test %rax, %rax
    jz 2f
    jmp *%rax
2:  push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call ioweir_find_real_dlsym
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size dlsym, . - dlsym
#endif

    .section .note.GNU-stack,"",@progbits

#elif defined(__aarch64__)

    .text
/* x17: slot index. */
    .globl ioweir_lazy_common
    .hidden ioweir_lazy_common
    .type ioweir_lazy_common, %function
    .balign 16
ioweir_lazy_common:
    stp x29, x30, [sp, #-224]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov x0, x17
    bl ioweir_resolve_slot
    mov x16, x0
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldr x8, [sp, #80]
    ldp x6, x7, [sp, #64]
    ldp x4, x5, [sp, #48]
    ldp x2, x3, [sp, #32]
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #224
    br x16
    .size ioweir_lazy_common, . - ioweir_lazy_common

#ifndef IOWEIR_LINKED
/* dlsym: with RTLD_DEFAULT (0) and RTLD_NEXT (-1) the real one looks at its return address, so it is jumped to. With
   RTLD_DEFAULT a function that only we have is none. */
    .globl dlsym
    .type dlsym, %function
    .balign 16
dlsym:
    bti c
    cbz x0, 3f
    cmn x0, #1
    b.eq 1f
    b ioweir_dlsym_of_handle
3:  stp x29, x30, [sp, #-32]!
    stp x0, x1, [sp, #16]
    mov x0, x1
    mov x1, x30
    bl ioweir_stands_for_nothing
    mov w9, w0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    tst w9, #0xff
    b.eq 1f
    mov x0, #0
    ret
1:  adrp x9, ioweir_real_dlsym
    ldr x16, [x9, :lo12:ioweir_real_dlsym]
    cbz x16, 2f
    br x16
2:  stp x29, x30, [sp, #-32]!
    stp x0, x1, [sp, #16]
    bl ioweir_find_real_dlsym
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    br x16
    .size dlsym, . - dlsym
#endif

    .section .note.GNU-stack,"",%progbits

#endif
