"""Excel workbooks for tests, written without a library: no package that tests need writes one."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKED = "http://schemas.openxmlformats.org/package/2006"
_STYLES = f'''<styleSheet xmlns="{_MAIN}"><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/>
</cellXfs></styleSheet>'''


def write_workbook(
    path: Path,
    sheets: Mapping[str, Sequence[Sequence[Any]]],
    *,
    hidden: Sequence[str] = (),
    merged: Mapping[str, str] | None = None,
    workbook: str = "",
) -> Path:
    """Write rows of cells as sheets; a text that begins with < is the XML inside a cell, as of a formula.

    `merged` maps a sheet to a range of cells such as A1:C1, and `workbook` is XML at the end of workbook.xml.
    """
    names = "".join(
        f'<sheet name="{name}" sheetId="{at}" state="{"hidden" if name in hidden else "visible"}" r:id="s{at}"/>'
        for at, name in enumerate(sheets)
    )
    links = "".join(
        f'<Relationship Id="s{at}" Type="{_LINKS}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at in range(len(sheets))
    )
    links += f'<Relationship Id="st" Type="{_LINKS}/styles" Target="styles.xml"/>'
    with ZipFile(path, "w", ZIP_DEFLATED) as packed:
        packed.writestr(
            "[Content_Types].xml", f'<Types xmlns="{_PACKED}/content-types"><Default Extension="xml"/></Types>'
        )
        packed.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>{names}</sheets>{workbook}</workbook>',
        )
        packed.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{_PACKED}/relationships">{links}</Relationships>'
        )
        packed.writestr("xl/styles.xml", _STYLES)
        packed.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKED}/relationships"><Relationship Id="w" Type="{_LINKS}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        for at, (name, rows) in enumerate(sheets.items()):
            cells = "".join(
                f'<row r="{number}">{"".join(_cell(value, column, number) for column, value in enumerate(row))}</row>'
                for number, row in enumerate(rows, 1)
            )
            merge = f'<mergeCells><mergeCell ref="{merged[name]}"/></mergeCells>' if merged and name in merged else ""
            sheet = f'<worksheet xmlns="{_MAIN}"><sheetData>{cells}</sheetData>{merge}</worksheet>'
            packed.writestr(f"xl/worksheets/sheet{at}.xml", sheet)
    return path


def _cell(value: Any, column: int, row: int) -> str:
    place = f'r="{chr(ord("A") + column)}{row}"'
    if value is None:
        return ""
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())
        days = moment - datetime(1899, 12, 30)
        return f'<c {place} s="{1 + isinstance(value, datetime)}"><v>{days.total_seconds() / 86400!r}</v></c>'
    if isinstance(value, int | float):
        return f'<c {place} t="{"b" if isinstance(value, bool) else "n"}"><v>{float(value):g}</v></c>'
    if value.startswith("#"):
        return f'<c {place} t="e"><v>{value}</v></c>'
    if value.startswith("<"):
        return f"<c {place}>{value}</c>"
    return f'<c {place} t="inlineStr"><is><t>{escape(value)}</t></is></c>'
