from __future__ import annotations

import base64
from pathlib import Path

import pytest

import reports
from planner.errors import InputFileError, UsageError
from reports.page.logo import MOST_BYTES, data_address
from tests.reports import sample

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 2"><script>alert(1)</script></svg>'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PNG, "image/png"),
        (SVG, "image/svg+xml"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_a_picture_is_told_by_its_content(tmp_path, content, kind):
    path = tmp_path / "logo.bin"
    path.write_bytes(content)

    assert data_address(path) == f"data:{kind};base64,{base64.b64encode(content).decode()}"


@pytest.mark.parametrize("content", [b"", b"<html></html>", b"text", b"%PDF-1.7"])
def test_what_is_no_picture_is_refused(tmp_path, content):
    path = tmp_path / "logo.png"
    path.write_bytes(content)

    with pytest.raises(InputFileError, match="not a PNG"):
        data_address(path)


def test_a_heavy_picture_is_refused_with_the_limit(tmp_path):
    path = tmp_path / "logo.png"
    path.write_bytes(PNG + b"\0" * MOST_BYTES)

    with pytest.raises(InputFileError, match="at most 60,000 fit"):
        data_address(path)


def test_a_missing_picture_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="--logo: cannot read"):
        data_address(tmp_path / "nothing.png")


def test_the_logo_stands_in_the_page_as_data(tmp_path):
    path = tmp_path / "logo.svg"
    path.write_bytes(SVG)
    page = reports.render(sample.document(), "html", logo=path)

    assert isinstance(page, str)
    assert f'<img class="logo" src="{data_address(path)}" alt="Logo">' in page


def test_a_device_is_refused_at_once():
    with pytest.raises(InputFileError, match="expected a file, found a device"):
        data_address(Path("/dev/zero"))
