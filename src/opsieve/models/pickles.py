"""Pickles read as data: nothing is imported, called or looked up, whatever the opcodes say.

`pickletools.genops` of the standard library splits the bytes; this module keeps the stack and the memo.
What a pickle would import becomes a `Global`, what it would call a `Call`, so a reader can look at the parts.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from opsieve.errors import InvalidModel

MAX_OPCODES = 4_000_000
"""The bytecode of a large model is well below a million; each opcode makes at most one small object."""

MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Global:
    """A name that unpickling would have imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(slots=True, eq=False)
class Call:
    """A call or construction that unpickling would have made."""

    function: object
    arguments: object
    state: object = None


@dataclass(slots=True, eq=False)
class Persistent:
    """A reference to something outside of the pickle: for PyTorch, the storage of a tensor."""

    identity: object


@dataclass(slots=True, eq=False)
class Pairs:
    """A dictionary as its pairs. Keys are never hashed: nested tuples would make that take for ever."""

    items: list[tuple[object, object]] = field(default_factory=list)


class _Mark:
    """Where a group of stack items begins."""


_MARK = _Mark()


def read_pickle(data: bytes, where: str) -> object:
    """Build plain values from a pickle of any protocol.

    Lists, tuples and `Pairs` may contain themselves: whoever walks them needs a limit of his own.
    Raises InvalidModel, which names `where` and the byte offset, for anything that is not a well-formed pickle.
    """
    if len(data) > MAX_BYTES:
        raise InvalidModel(f"the pickle has {len(data)} bytes", where=where, expected=f"at most {MAX_BYTES}")
    machine = _Machine()
    position = 0
    try:
        for count, (opcode, argument, offset) in enumerate(pickletools.genops(data)):
            position = offset or 0
            if count >= MAX_OPCODES:
                raise _MalformedError(f"more than {MAX_OPCODES} opcodes")
            machine.step(opcode.name, argument)
        return machine.result()
    except (_MalformedError, ValueError, IndexError, struct.error, OverflowError, RecursionError) as error:
        raise InvalidModel(
            f"this is not a well-formed pickle ({error})",
            where=f"{where}: byte {position}",
            remedy="get the file again, or save the model again",
        ) from error


class _MalformedError(Exception):
    """The opcodes ask for what the stack or memo does not hold."""


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}

    def step(self, opcode: str, argument: object) -> None:
        if opcode in _CONSTANTS:
            self.stack.append(_CONSTANTS[opcode])
        elif opcode in _LITERALS:
            self.stack.append(argument)
        elif opcode in _PUTS:
            self.memo[len(self.memo) if argument is None else int(str(argument))] = self.top()
        elif opcode in _GETS:
            self.stack.append(self.recall(int(str(argument))))
        elif opcode in _ACTIONS:
            _ACTIONS[opcode](self, argument)
        elif opcode not in _IGNORED:
            raise _MalformedError(f"opcode {opcode} has no place in a model")

    def result(self) -> object:
        if len(self.stack) != 1:
            raise _MalformedError(f"{len(self.stack)} values are left at the end instead of one")
        return self.pop()

    def pop(self) -> object:
        value = self.top()
        self.stack.pop()
        return value

    def top(self) -> object:
        if not self.stack or self.stack[-1] is _MARK:
            raise _MalformedError("the stack is empty")
        return self.stack[-1]

    def recall(self, key: int) -> object:
        if key not in self.memo:
            raise _MalformedError(f"memo entry {key} was never stored")
        return self.memo[key]

    def pop_to_mark(self) -> list[object]:
        for index in range(len(self.stack) - 1, -1, -1):
            if self.stack[index] is _MARK:
                group = self.stack[index + 1 :]
                del self.stack[index:]
                return group
        raise _MalformedError("there is no mark on the stack")

    def call(self, count: int) -> None:
        """Replace the function and its `count` arguments by the call that is not made."""
        arguments = [self.pop() for _ in range(count)][::-1]
        self.stack.append(Call(self.pop(), tuple(arguments)))

    def discard(self) -> None:
        if not self.stack:
            raise _MalformedError("the stack is empty")
        self.stack.pop()

    def discard_to_mark(self) -> None:
        self.pop_to_mark()

    def tuple_of(self, count: int) -> None:
        self.stack.append(tuple([self.pop() for _ in range(count)][::-1]))

    def extend(self, group: list[object]) -> None:
        target = self.top()
        if not isinstance(target, list):
            raise _MalformedError(f"items for a {type(target).__name__} instead of a list")
        target.extend(group)

    def set_items(self, group: list[object]) -> None:
        target = self.top()
        if isinstance(target, Call):  # an OrderedDict() that would have been filled
            target.state = Pairs() if target.state is None else target.state
            target = target.state
        if not isinstance(target, Pairs) or len(group) % 2:
            raise _MalformedError(f"{len(group)} keys and values for a {type(target).__name__}")
        target.items.extend(zip(group[::2], group[1::2], strict=True))

    def build(self) -> None:
        state = self.pop()
        target = self.top()
        if not isinstance(target, Call):
            raise _MalformedError(f"a state for a {type(target).__name__} instead of an object")
        target.state = state

    def named(self, argument: object) -> None:
        """INST: the class by name, its arguments down to the mark."""
        module, _, name = str(argument).partition(" ")
        group = self.pop_to_mark()
        self.stack.append(Call(Global(module, name), tuple(group)))

    def object_to_mark(self) -> None:
        """OBJ: the class is the first item above the mark."""
        group = self.pop_to_mark()
        if not group:
            raise _MalformedError("an object without a class")
        self.stack.append(Call(group[0], tuple(group[1:])))

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise _MalformedError("a global whose name is no text")
        self.stack.append(Global(module, name))

    def dictionary(self) -> None:
        group = self.pop_to_mark()
        self.stack.append(Pairs())
        self.set_items(group)


_CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "MARK": _MARK, "EMPTY_TUPLE": ()}

_LITERALS = frozenset(
    code.name
    for code in pickletools.opcodes
    if code.arg and not code.stack_before and code.stack_after and code.stack_after[0] is not pickletools.anyobject
)
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"))
_GETS = frozenset(("GET", "BINGET", "LONG_BINGET"))
_IGNORED = frozenset(("PROTO", "FRAME", "STOP"))

_Action = Callable[[_Machine, object], None]
_ACTIONS: dict[str, _Action] = {
    "EMPTY_LIST": lambda m, _: m.stack.append([]),
    "EMPTY_SET": lambda m, _: m.stack.append([]),
    "EMPTY_DICT": lambda m, _: m.stack.append(Pairs()),
    "POP": lambda m, _: m.discard(),
    "POP_MARK": lambda m, _: m.discard_to_mark(),
    "DUP": lambda m, _: m.stack.append(m.top()),
    "LIST": lambda m, _: m.stack.append(m.pop_to_mark()),
    "FROZENSET": lambda m, _: m.stack.append(m.pop_to_mark()),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.pop_to_mark())),
    "DICT": lambda m, _: m.dictionary(),
    "TUPLE1": lambda m, _: m.tuple_of(1),
    "TUPLE2": lambda m, _: m.tuple_of(2),
    "TUPLE3": lambda m, _: m.tuple_of(3),
    "APPEND": lambda m, _: m.extend([m.pop()]),
    "APPENDS": lambda m, _: m.extend(m.pop_to_mark()),
    "ADDITEMS": lambda m, _: m.extend(m.pop_to_mark()),
    "SETITEM": lambda m, _: m.set_items([m.pop(), m.pop()][::-1]),
    "SETITEMS": lambda m, _: m.set_items(m.pop_to_mark()),
    "GLOBAL": lambda m, argument: m.stack.append(Global(*str(argument).split(" ", 1))),
    "STACK_GLOBAL": lambda m, _: m.stack_global(),
    "INST": lambda m, argument: m.named(argument),
    "OBJ": lambda m, _: m.object_to_mark(),
    "REDUCE": lambda m, _: m.call(1),
    "NEWOBJ": lambda m, _: m.call(1),
    "NEWOBJ_EX": lambda m, _: m.call(2),
    "BUILD": lambda m, _: m.build(),
    "PERSID": lambda m, argument: m.stack.append(Persistent(argument)),
    "BINPERSID": lambda m, _: m.stack.append(Persistent(m.pop())),
}
