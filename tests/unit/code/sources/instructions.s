# Instructions that compilers seldom write and hand-written kernels do.
        .text
        .macro function name
        .type   \name, @function
\name:
        .endm
        .macro end name
        .size   \name, . - \name
        .endm

        function operands
        mov     value(%rip), %eax
        mov     %eax, value(%rip)
        movl    $0x12345678, value(%rip)        # an immediate of four bytes behind the displacement
        movw    $0x1234, value(%rip)            # of two
        movb    $0x12, value(%rip)              # of one
        movq    $-1, value(%rip)
        cmpb    $5, value(%rip)
        shll    $3, value(%rip)
        testl   $0x1000, value(%rip)
        imul    $100, value(%rip), %eax
        imul    $100000, value(%rip), %eax
        movabs  $0x0505050505050505, %rax       # bytes that look like an operand
        movabs  0x0505050505050505, %al
        lock incl value(%rip)
        lock cmpxchg16b value(%rip)
        movzbl  value(%rip), %eax
        movss   value(%rip), %xmm8
        pshufb  value(%rip), %xmm1
        pshufd  $0x1b, value(%rip), %xmm1
        palignr $5, value(%rip), %xmm9
        crc32q  value(%rip), %rax
        vmovaps value(%rip), %ymm1
        vpshufb value(%rip), %ymm2, %ymm12
        vpermq  $0x4e, value(%rip), %ymm9
        vfmadd231ps value(%rip), %ymm9, %ymm1
        vmovups value(%rip), %zmm3
        vfmadd132pd value(%rip){1to8}, %zmm20, %zmm30{%k3}{z}
        vpternlogd $0xF0, value(%rip), %zmm1, %zmm2
        vgetmantps $1, value(%rip), %zmm1
        vprotb  $3, value(%rip), %xmm1          # XOP, of older AMD processors
        vfrczps value(%rip), %ymm9
        fldt    value(%rip)
        lea     value(%rip), %r15
        lea     outer(%rip), %rdi
        lea     4(%rip), %eax
        nopw    value(%rip)
        prefetcht0 value(%rip)
        push    value(%rip)
        data16 lea value(%rip), %rdi            # as the code for thread-local storage has it
        .byte   0x48, 0x66, 0x0f, 0x6f, 0x05    # a REX prefix before another one does not count
        .long   0
        ret
        end     operands

        function branches
        call    outer
        jmp     distant
        jne     distant
        .byte   0xeb, outer - . - 1             # a short jump out of the function
        .byte   0x74, outer - . - 1
        .byte   0xe3, outer - . - 1             # jrcxz
        .byte   0xe2, outer - . - 1             # loop
        xbegin  outer
        bnd jmp distant
        bnd call outer
        notrack jmp *%rax
        jne,pt  distant
        .byte   0x66, 0x48, 0xe8                # as the code for thread-local storage has it
        .long   outer - . - 4
        data16 rex.W call outer
        call    *value(%rip)
        jmp     *value(%rip)
        call    inner
        jne     inner
inner:  ret
        end     branches

        function outer
        nop
        ret
        end     outer

        .fill   200, 1, 0x90
        function distant
        ret
        end     distant

        .data
        .balign 64
value:  .fill   64, 1, 0
