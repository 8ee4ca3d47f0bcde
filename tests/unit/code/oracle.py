"""What iced-x86 says of each instruction, asked one by one: slow, and plain to read."""

from __future__ import annotations

from dataclasses import dataclass, field

from iced_x86 import Code, Decoder, FlowControl, Instruction, Mnemonic, OpKind, Register

STOPS = (
    FlowControl.RETURN,
    FlowControl.UNCONDITIONAL_BRANCH,
    FlowControl.INDIRECT_BRANCH,
)
RETURNS = (Mnemonic.RET, Mnemonic.RETF)
# Compilers end a function with a call only if it never returns.
ENDS = (Mnemonic.CALL, Mnemonic.INT3, Mnemonic.UD0, Mnemonic.UD1, Mnemonic.UD2, Mnemonic.HLT)


@dataclass
class Expected:
    """The same facts as Decoded, as plain sets, and what is known of instructions that are none."""

    operands: set[tuple[int, int, bool]] = field(default_factory=set)
    branches: set[tuple[int, int, bool]] = field(default_factory=set)
    falls_through: set[int] = field(default_factory=set)
    instructions: int = 0
    invalid: set[int] = field(default_factory=set)
    narrow: set[int] = field(default_factory=set)
    """Sites of what no assembler writes for 64-bit code: operands of 32 bits, and XBEGIN with 16."""

    unclear: set[int] = field(default_factory=set)
    """Ends of functions behind no instruction, or one that only a kernel can execute: both answers are right."""


def is_padding(instruction: Instruction, raw: bytes) -> bool:
    return instruction.mnemonic in (Mnemonic.NOP, Mnemonic.PAUSE) or not any(raw)


def oracle(code: bytes, base: int, functions: list[tuple[int, int]]) -> Expected:
    """Decode instruction by instruction and ask iced-x86 for everything."""
    found = Expected()
    for start, end in functions:
        body = code[start - base : end - base]
        instructions = list(Decoder(64, body, ip=start))
        found.instructions += len(instructions)
        for instruction in instructions:
            if instruction.code == Code.INVALID:
                found.invalid.add(instruction.ip)
            elif instruction.memory_base == Register.EIP:
                found.narrow.add(instruction.ip)
            elif instruction.is_ip_rel_memory_operand:
                is_lea = instruction.mnemonic == Mnemonic.LEA
                found.operands.add((instruction.ip, instruction.ip_rel_memory_address, is_lea))
            if instruction.code == Code.XBEGIN_REL16:
                found.narrow.add(instruction.ip)
            elif instruction.op_count and instruction.op0_kind == OpKind.NEAR_BRANCH64:
                target = instruction.near_branch64
                if not start <= target < end:
                    found.branches.add((instruction.ip, target, instruction.is_call_near))
        while len(instructions) > 1 and _ends_in_padding(instructions[-1], body, start):
            instructions.pop()
        last = instructions[-1]
        if last.code == Code.INVALID or (last.flow_control == FlowControl.RETURN and last.mnemonic not in RETURNS):
            found.unclear.add(end)
        elif not (last.flow_control in STOPS or last.mnemonic in ENDS or _ends_in_padding(last, body, start)):
            found.falls_through.add(end)
    return found


def _ends_in_padding(instruction: Instruction, body: bytes, start: int) -> bool:
    at = instruction.ip - start
    return is_padding(instruction, body[at : at + instruction.len])
