"""Tables in HTML, which notebooks and the site show alike."""

from IPython.display import HTML, display


def show(heads, rows):
    """Display a table."""
    html = ""
    for tag, line in [("th", heads), *(("td", row) for row in rows)]:
        html += "<tr>" + "".join(f'<{tag} style="padding-right: 1.5em">{cell}</{tag}>' for cell in line) + "</tr>"
    display(HTML(f"<table>{html}</table>"))
