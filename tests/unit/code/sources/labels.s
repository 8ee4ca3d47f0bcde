# Every way in which code can be delimited. Each instruction is one byte, so that addresses can be counted.
# Bytes from the start of the section stand on the right.
        .text
        .globl  sized, alias_short, alias_long, unsized, behind_gap, small, nested_outer, last
        .type   sized, @function
        .type   alias_long, @function
        .type   alias_short, @function
        .type   unsized, @function
        .type   behind_gap, @function
        .type   small, @function
        .type   nested_outer, @function
        .type   nested_inner, @function
        .type   last, @function
        .fill   16, 1, 0x90             # 0: a gap at the very start
sized:
alias_short:
alias_long:
        .fill   15, 1, 0x90             # 16
own_label:                              # 31: inside a sized function, so its own business
        ret
        .size   sized, 16
        .size   alias_short, 4
        .size   alias_long, 16
        .fill   15, 1, 0x90             # 32: padding, too short for a gap
small:
        ret                             # 47
        .size   small, 1
        .fill   8, 1, 0x90              # 48: a gap with two labels in it
first_label:
        .fill   24, 1, 0x90             # 56
second_label:
        .fill   16, 1, 0x90             # 80
unsized:
        .fill   40, 1, 0x90             # 96: reaches to the next start
        .size   unsized, 0
behind_gap:
        .fill   8, 1, 0x90              # 136
nested_outer:
        .fill   16, 1, 0x90             # 144
nested_inner:
        .fill   16, 1, 0x90             # 160
        .size   nested_inner, 16
        .fill   32, 1, 0x90             # 176: still part of nested_outer
        .size   nested_outer, 64
        .size   behind_gap, 8
        .fill   16, 1, 0x90             # 208: a gap
last:
        .fill   31, 1, 0x90             # 224
        ret                             # 255
        .size   last, 16
