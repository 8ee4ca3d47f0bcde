import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from opsieve.errors import MissingInstallation
from opsieve.runtimes.wheel.local_version import (
    metadata_with_version,
    slim_version,
    version_py_with_version,
    wheel_with_generator,
)
from tests.unit.runtimes.wheel.fake_site import METADATA, VERSION_PY, WHEEL


@given(
    stock=st.sampled_from(["2.13.0+cpu", "2.13.0", "2.14.0a0+gitabc", "2.13.0.dev20261101+cpu"]),
    hashes=st.dictionaries(st.text(), st.text()),
)
def test_the_version_is_already_in_its_normal_form(stock, hashes):
    version = slim_version(stock, hashes)
    assert str(Version(version)) == version
    assert Version(version).public == Version(stock).public
    assert slim_version(version, hashes) == version, "cutting a slim package must not pile up suffixes"


def test_the_version_depends_on_content_and_not_on_order():
    first = slim_version("2.13.0+cpu", {"a": "1", "b": "2"})
    assert first == slim_version("2.13.0+cpu", {"b": "2", "a": "1"})
    assert first != slim_version("2.13.0+cpu", {"a": "1", "b": "3"})
    assert first != slim_version("2.13.0+cpu", {"a": "2", "b": "1"})


def test_version_py_keeps_everything_but_the_version():
    changed = version_py_with_version(VERSION_PY, "9+opsieve.h1")
    assert changed == VERSION_PY.replace("2.13.0+cpu", "9+opsieve.h1")


def test_only_the_version_header_of_the_metadata_changes():
    changed = metadata_with_version(METADATA, "9")
    assert changed.count("Version: 9\n") == 1
    assert "Metadata-Version: 2.4\n" in changed
    assert "Version: of the description" in changed


def test_wheel_names_its_generator_and_keeps_its_tags():
    changed = wheel_with_generator(WHEEL)
    assert "Generator: opsieve (" in changed
    assert changed.splitlines()[2:] == WHEEL.splitlines()[2:]


@pytest.mark.parametrize("text", ["", "__version__ = '1'\n__version__ = '2'\n"])
def test_a_version_file_that_we_do_not_understand_is_refused(text):
    with pytest.raises(MissingInstallation, match="expected one place"):
        version_py_with_version(text, "9")
