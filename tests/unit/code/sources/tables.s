# Tables with and without symbols, and code that refers to their starts, ends and middles.
        .text
        .macro function name
        .globl  \name
        .type   \name, @function
\name:
        .endm
        .macro leaf name
        .type   \name, @function
\name:  ret
        .size   \name, 1
        .endm

        leaf first
        leaf second
        leaf third
        leaf fourth
        leaf fifth
        leaf sixth

        function takes_first_table      # a loop over the first table: its start, and the address behind it
        lea     .Lfirst_table(%rip), %rax
        lea     .Lfirst_table_end(%rip), %rdx
        ret
        .size   takes_first_table, . - takes_first_table

        function reads_first_table      # one entry, read directly: must not cut the table in two
        mov     .Lfirst_table + 16(%rip), %rax
        ret
        .size   reads_first_table, . - reads_first_table

        function takes_second_table
        lea     .Lsecond_table(%rip), %rax
        ret
        .size   takes_second_table, . - takes_second_table

        function takes_middle_of_named  # an address inside a named object belongs to all of it
        lea     named_table + 16(%rip), %rax
        ret
        .size   takes_middle_of_named, . - takes_middle_of_named

        function takes_behind_named
        lea     named_table + 24(%rip), %rax
        ret
        .size   takes_behind_named, . - takes_behind_named

        function takes_pointer_to_third # the table is found through a pointer in data only
        mov     pointer(%rip), %rax
        ret
        .size   takes_pointer_to_third, . - takes_pointer_to_third

        .section .data.rel.ro, "aw"
        .balign 16
        .type   named_table, @object
named_table:
        .quad   first, second, third
        .size   named_table, 24
        .quad   fourth                  # nameless, right behind a named object
        .balign 16
.Lfirst_table:
        .quad   first, second, third
.Lfirst_table_end:
        .quad   0
.Lsecond_table:
        .quad   fourth, fifth
.Lthird_table:
        .quad   sixth, first

        .data
        .balign 8
        .type   pointer, @object
pointer: .quad  .Lthird_table
        .size   pointer, 8
