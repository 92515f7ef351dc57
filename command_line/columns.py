"""A table of text. The format of each column is written once, for its headings and its cells.

Next: tables.py
"""

from itertools import chain


class Columns:
    """Columns of a table.

    Parameters
    ----------
    columns : (heading, format) or (heading, format, heading above)
        The format is that of a text, such as ">9" or "<14", including the gap to the previous column. A column grows
        if a cell is too long for it. A heading above starts where the heading below it starts, and may be longer.

    Examples
    --------
    >>> print(Columns(("name", "<6"), ("alpha", ">8", "of the row")).page([["some", "0.5"], ["longer", "0.25"]]))
              of the row
    name      alpha
    some        0.5
    longer     0.25
    """

    def __init__(self, *columns):
        self.headings, self.formats = [column[0] for column in columns], [column[1] for column in columns]
        self.above = [column[2] if len(column) > 2 else "" for column in columns]

    def page(self, rows):
        """The headings and the rows (lists of texts), without a newline at the end."""
        widths = [int(form[1:]) for form in self.formats]
        for i, cells in enumerate(zip(*rows)):
            widths[i] = max(widths[i], *(len(cell) + 1 for cell in cells)) if len(cells) else widths[i]
        formats = [f"{form[0]}{width}" for form, width in zip(self.formats, widths)]
        lines = [line(self.headings, formats)]
        if any(self.above):
            lines.insert(0, self.heading_above(formats, widths))
        return "\n".join(chain(lines, (line(row, formats) for row in rows)))

    def heading_above(self, formats, widths):
        text, place = "", 0
        for heading, form, width, above in zip(self.headings, formats, widths, self.above):
            if above:
                cell = f"{heading or above:{form}}"
                text = text.ljust(place + len(cell) - len(cell.lstrip())) + above
            place += width
        return text


def line(cells, formats):
    return "".join(f"{cell:{form}}" for cell, form in zip(cells, formats)).rstrip()
