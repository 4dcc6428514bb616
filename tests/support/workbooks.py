"""Workbooks, written by hand."""

from __future__ import annotations

import zipfile
from pathlib import Path
from xml.sax.saxutils import escape


def workbook(path: Path, sheets: dict[str, list[list[str]]], *, texts: bool = False) -> None:
    """The least that Excel takes for a workbook; numbers as such, unless they are to be texts."""

    def cell(value: str) -> str:
        try:
            float(value)
        except ValueError:
            return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f'<c t="str"><v>{value}</v></c>' if texts else f"<c><v>{value}</v></c>"

    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    ours = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    names = list(enumerate(sheets, start=1))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        listed = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in names)
        file.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{ours}"><sheets>{listed}</sheets></workbook>',
        )
        links = "".join(
            f'<Relationship Id="r{i}" Type="{ours}/worksheet" Target="worksheets/s{i}.xml"/>'
            for i, _ in names
        )
        file.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships">{links}</Relationships>',
        )
        link = f'<Relationship Id="r1" Type="{ours}/officeDocument" Target="xl/workbook.xml"/>'
        file.writestr("_rels/.rels", f'<Relationships xmlns="{package}/relationships">{link}</Relationships>')
        parts = "".join(
            f'<Override PartName="/xl/worksheets/s{i}.xml" ContentType="{kind}.worksheet+xml"/>'
            for i, _ in names
        )
        whole = f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        file.writestr(
            "[Content_Types].xml", f'<Types xmlns="{package}/content-types">{rels}{whole}{parts}</Types>'
        )
        for i, name in names:
            rows = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in sheets[name])
            file.writestr(
                f"xl/worksheets/s{i}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
            )
