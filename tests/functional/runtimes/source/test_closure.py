"""The closure of a real model, three ways: by the linker's pruning, by symbols, by repeated links with lists."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from benchmarks.models import MobileNetV2

from opsieve.code.elf import ElfFile
from opsieve.errors import MissingInstallation
from opsieve.models import read_models
from opsieve.operators import OperatorName
from opsieve.progress import SILENT
from opsieve.runtimes.source.association.names import parse_operator_symbol
from opsieve.runtimes.source.build import SourceRequest, link_runtime
from opsieve.runtimes.source.link.account.dispatch_symbols import dispatch_names, dispatched
from opsieve.runtimes.source.link.linker import find_linker, require_usable
from opsieve.runtimes.source.link.listed import entries_in
from opsieve.runtimes.source.objects import Compiler, ObjectStore
from opsieve.runtimes.source.tree import SourceTree
from opsieve.runtimes.source.wanted import wanted
from opsieve.runtimes.source.workspace import Workspace, open_workspace
from tests.functional.runtimes.source.built import save_lite

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("kept_objects")]


class Links:
    """Links of one model's runtime, not stripped."""

    def __init__(self, tree: SourceTree, folder: Path) -> None:
        self.folder = folder
        model = save_lite(MobileNetV2(), folder, "mobilenet_v2")
        self.request = SourceRequest(tree, tuple(read_models([model.path])), folding="none")
        self.compiler = Compiler.find()

    @property
    def workspace(self) -> Workspace:
        return open_workspace(self.request.tree, self.request.options, self.compiler)

    def kept(self, linker: str) -> tuple[Path, frozenset[OperatorName]]:
        """The program, and the operators whose schemas are in it."""
        workspace = self.workspace
        roots = wanted(self.request.models, (), workspace.sites)
        program = self.folder / linker
        chosen = find_linker(self.compiler, linker)
        with ObjectStore.of_user() as store:
            link_runtime(self.request, workspace, self.compiler, chosen, store, roots, program, SILENT)
        symbols = entries_in(program, workspace.sites.by_symbol.keys() - frozenset(roots.left_out))
        return program, frozenset(filter(None, map(parse_operator_symbol, symbols)))


@pytest.fixture(scope="module")
def links(source_tree: SourceTree, tmp_path_factory: pytest.TempPathFactory) -> Links:
    torch.manual_seed(0)
    return Links(source_tree, tmp_path_factory.mktemp("links"))


def test_what_the_link_kept_is_what_its_code_can_dispatch(links: Links) -> None:
    program, kept = links.kept("lld")
    names = dispatch_names(links.workspace.generated / "aten/src/ATen/ops")
    by_symbols = dispatched(ElfFile(program, or_program=True), names)
    asked = {operator.name for operator in wanted(links.request.models, (), links.workspace.sites).roots} & kept
    assert len(kept) > 100
    assert by_symbols | asked == kept


def test_repeated_links_with_lists_keep_the_same_operators(links: Links) -> None:
    if shutil.which("ld.gold") is None:
        pytest.skip("ld.gold is not here")
    assert links.kept("gold")[1] == links.kept("lld")[1]


def test_a_linker_that_loses_registrations_is_refused(links: Links) -> None:
    """mold finds fewer operators than the others for this very model; for a toy it finds them all."""
    if shutil.which("ld.mold") is None:
        pytest.skip("ld.mold is not here")
    with pytest.raises(MissingInstallation, match="mold"):
        require_usable(find_linker(links.compiler, "mold"))
