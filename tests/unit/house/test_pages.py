"""The pages name commands, options and files that exist."""

import re
from pathlib import Path

import click
import pytest
from scripts.fill_docs import PLACE, RESULTS, filled, numbers

from opsieve.cli.main import COMMANDS, opsieve

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LONG_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#([^)]*))?\)")


def command_section(name: str) -> str:
    page = (ROOT / "docs" / "commands.md").read_text()
    found = re.search(rf"^## opsieve {name}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/commands.md has no section on opsieve {name}"
    # What commands print may show options of other commands.
    return re.sub(r"^```.*?^```", "", found[1], flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_commands_names_only_real_options(name):
    command = opsieve.get_command(click.Context(opsieve), name)
    assert command is not None
    commands = [command, *getattr(command, "commands", {}).values()]
    real = {option for each in commands for parameter in each.params for option in parameter.opts}
    assert set(LONG_OPTION.findall(command_section(name))) - real == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings_of_this_repository(page):
    for target, heading in LINK.findall(page.read_text()):
        file = page.parent / target
        assert file.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_place_for_numbers_and_output_has_an_end(page):
    text = page.read_text()
    assert len(re.findall(r"<!-- (?:numbers|output): ", text)) == text.count("<!-- end -->")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_numbers_on_the_pages_are_those_that_were_measured(page):
    if not any(RESULTS.glob("*.json")):
        assert [
            content for _, kind, _, content, _ in PLACE.findall(page.read_text()) if kind == "numbers" and content
        ] == []
        return
    assert filled(page.read_text(), "numbers", numbers) == page.read_text()


def test_the_makefile_has_every_target_that_the_pages_name():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|^ {4}|\$ )make ([a-z]+)", page.read_text(), re.M)}
    assert {"demo", "test"} <= named <= targets
